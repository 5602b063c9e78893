"""What of a chat request decides its prompt, and what keeps it from being continued."""

import hashlib
import json

from conformance.reference.capture.config import Route
from conformance.reference.capture.continuity.reasons import Fallback, Plain, Reason
from conformance.reference.capture.jsontext import JSON, JSONObject

NEVER_RENDERED = (
    *("documents", "chat_template", "mm_processor_kwargs", "media_io_kwargs", "truncate_prompt_tokens"),
    *("functions", "function_call", "audio", "modalities"),
)
"""Keys that change the prompt, and that the engine's tokenizer does not take."""

RENDERED_KEYS = ("tools", "chat_template_kwargs", "reasoning_effort", "add_special_tokens", *NEVER_RENDERED)
"""Keys that decide what a prompt looks like besides its messages."""

CHAT_ONLY_KEYS = (
    *("prompt_logprobs", "return_prompt_text", "thinking_token_budget", "bad_words"),
    *("response_format", "structured_outputs"),
)
"""Keys that a completion would not know, or would not know to begin behind the reasoning."""

PLAIN_FORMAT = {"type": "text"}


def rendering_of(route: Route, body: JSONObject) -> str:
    """One name for all that a prompt is rendered with besides the messages: engine, model, tools, template settings."""
    told: JSONObject = {key: body[key] for key in RENDERED_KEYS if body.get(key)}
    told |= {"engine": route.base_url, "model": route.target, "no_tools": body.get("tool_choice") == "none"}
    return hashlib.sha256(json.dumps(told).encode("utf-8", "surrogatepass")).hexdigest()


def not_to_be_continued(body: JSONObject, *, by_chat: bool) -> Reason | None:
    """Why the tokens of a known history cannot stand in this request, or None. ``by_chat`` is the prefix transport."""
    if body.get("continue_final_message") or body.get("add_generation_prompt") is False:
        return Plain.NOTHING_ADDED
    if any(body.get(key) for key in NEVER_RENDERED):
        return Fallback.CHAT_ONLY_KEY
    if any(_has_more_than_text(message.get("content")) for message in body["messages"]):
        return Fallback.NOT_TEXT
    if by_chat:
        return None
    if body.get("tools") and _is_bound(body):
        return Fallback.FORCED_TOOL
    if any(body.get(key) and body[key] != PLAIN_FORMAT for key in CHAT_ONLY_KEYS):
        return Fallback.CHAT_ONLY_KEY
    return None


def template_kwargs(body: JSONObject) -> JSONObject:
    """What the engine tells its template, an effort included, which reaches it as a setting of its own."""
    given, effort = body.get("chat_template_kwargs"), body.get("reasoning_effort")
    told: JSONObject = dict(given) if isinstance(given, dict) else {}
    if effort is None:
        return told
    return {"enable_thinking": effort != "none", **told, "reasoning_effort": effort}


def thinks(body: JSONObject) -> bool:
    """Whether the engine's parser looks for thoughts. It looks for none where thinking is null or 0, too."""
    return bool(template_kwargs(body).get("enable_thinking", True))


def answer_limit(body: JSONObject) -> int | None:
    """How many tokens the client allows for the answer; the newer key wins."""
    given = (body.get("max_completion_tokens"), body.get("max_tokens"))
    return next((limit for limit in given if type(limit) is int), None)


def _is_bound(body: JSONObject) -> bool:
    """Whether a chat call would be held to a tool or to the schema of one; or, with a choice of null, hear of none."""
    tools = body["tools"] if isinstance(body["tools"], list) else []
    functions = [tool.get("function") for tool in tools if isinstance(tool, dict)]
    strict = any(isinstance(function, dict) and function.get("strict") is True for function in functions)
    return strict or body.get("tool_choice", "auto") not in ("auto", "none")


def _has_more_than_text(content: JSON) -> bool:
    if content is None or isinstance(content, str):
        return False
    if not isinstance(content, list):
        return True
    return not all(isinstance(part, dict) and part.get("type") in ("text", "refusal") for part in content)
