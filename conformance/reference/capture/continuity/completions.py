"""The transport over ``/v1/completions``: a token prompt up, and its answer in the form of a chat answer."""

from uuid import uuid4

from conformance.reference.capture import jsontext
from conformance.reference.capture.answers import read_choices
from conformance.reference.capture.config import Injection
from conformance.reference.capture.continuity.chains import Turn
from conformance.reference.capture.continuity.parsers import parsed
from conformance.reference.capture.continuity.question import CHAT_ONLY_KEYS, NEVER_RENDERED, thinks
from conformance.reference.capture.errors import engine_garbage
from conformance.reference.capture.jsontext import JSON, JSONObject

LEFT_OUT = (
    *("messages", "tools", "tool_choice", "parallel_tool_calls", "chat_template_kwargs", "reasoning_effort"),
    *("logprobs", "top_logprobs", "max_tokens", "max_completion_tokens", "stream", "add_generation_prompt"),
    *("continue_final_message", "suffix", "prompt_embeds", "best_of", *CHAT_ONLY_KEYS, *NEVER_RENDERED),
)
"""Keys of a chat request that have become the prompt, have another form here, or mean something here only."""


def completion_request(body: JSONObject, injection: Injection, prompt: list[int], max_tokens: int) -> bytes:
    """The chat request with its prompt as tokens; everything that steers the sampling is the same."""
    asked: JSONObject = {key: value for key, value in body.items() if key not in LEFT_OUT}
    if injection.reasoning_parser or _offers_tools(body, injection):
        # The marks that the parsers look for are special tokens in some vocabularies.
        # What the client says of special tokens does not reach them on a chat call either.
        asked["skip_special_tokens"] = False
    asked |= {"prompt": prompt, "max_tokens": max_tokens, "logprobs": body.get("top_logprobs", 0)}
    return jsontext.write(asked)


def reads_otherwise(body: JSONObject, injection: Injection, before: Turn) -> bool:
    """Whether the engine may read its chat answers with other parsers than the route's.

    An engine without a parser for tools refuses calls that offer some. One of whose chat answers a thought was taken
    apart has a parser for thoughts. To that parser all is thought until a thought ends, so an engine of which the chain
    holds none may well have no such parser, and what it says over completions would be taken for thoughts.
    """
    if body.get("tools") and body.get("tool_choice") != "none" and injection.tool_parser is None:
        return True
    thoughts_told = any(turn.reasoning is not None for turn in before.chain())
    if injection.reasoning_parser is None:
        return thoughts_told
    return thinks(body) and not thoughts_told


def chat_answer(answer_body: bytes, body: JSONObject, injection: Injection) -> bytes:
    """The completion as the chat completion that the engine would have answered; raises Refusal for no completion."""
    answer = read_choices(answer_body)
    choices: list[JSONObject] = answer["choices"]
    if not all(isinstance(choice, dict) and isinstance(choice.get("text"), str) for choice in choices):
        raise engine_garbage("a choice that holds no text")
    prompts = [choice.get("prompt_token_ids") for choice in choices]
    told = {**answer, "object": "chat.completion", "choices": [_choice(one, body, injection) for one in choices]}
    told["prompt_token_ids"] = prompts[0] if prompts else None
    return jsontext.write(told)


def _choice(choice: JSONObject, body: JSONObject, injection: Injection) -> JSONObject:
    said = parsed(
        choice["text"],
        reasons=injection.reasoning_parser is not None and thinks(body),
        calls=_offers_tools(body, injection),
    )
    calls = said.calls[:1] if body.get("parallel_tool_calls") is False else said.calls
    message: JSONObject = {
        "role": "assistant",
        "content": said.content,
        **dict.fromkeys(("refusal", "annotations", "audio", "function_call")),
    }
    if calls:
        message["tool_calls"] = [
            {
                "id": f"chatcmpl-tool-{uuid4().hex[:16]}",
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
            for name, arguments in calls
        ]
    message["reasoning"] = said.reasoning
    kept = {key: value for key, value in choice.items() if key not in ("text", "logprobs", "prompt_token_ids")}
    told = {**kept, "message": message, "logprobs": _chat_log_probs(choice.get("logprobs"), body)}
    if calls and choice.get("finish_reason") == "stop":
        told["finish_reason"] = "tool_calls"
    return told


def _offers_tools(body: JSONObject, injection: Injection) -> bool:
    return injection.tool_parser is not None and bool(body.get("tools")) and body.get("tool_choice") != "none"


def _chat_log_probs(log_probs: JSON, body: JSONObject) -> JSON:
    """One entry a token; what the engine did not give in rows of equal length is not made up."""
    rows = log_probs if isinstance(log_probs, dict) else {}
    values, tokens, tops = (rows.get(key) for key in ("token_logprobs", "tokens", "top_logprobs"))
    if not isinstance(values, list):
        return None
    texts = tokens if isinstance(tokens, list) and len(tokens) == len(values) else [None] * len(values)
    most = body.get("top_logprobs", 0)
    wanted = tops if most and isinstance(tops, list) and len(tops) == len(values) else [None] * len(values)
    entries = zip(texts, values, wanted, strict=True)
    return {"content": [{**_entry(text, value), "top_logprobs": _top(top, most)} for text, value, top in entries]}


def _entry(token: JSON, log_prob: JSON) -> JSONObject:
    text = token if isinstance(token, str) else ""
    return {"token": text, "logprob": log_prob, "bytes": list(text.encode("utf-8", "surrogatepass"))}


def _top(candidates: JSON, most: int) -> list[JSONObject]:
    if not isinstance(candidates, dict):
        return []
    entries = [_entry(token, log_prob) for token, log_prob in candidates.items()]
    return entries if most < 0 else entries[:most]
