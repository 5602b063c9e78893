"""A chat answer as a message of the Messages API."""

import hashlib
from dataclasses import dataclass

from conformance.reference.capture import jsontext
from conformance.reference.capture.jsontext import JSON, JSONObject
from conformance.reference.capture.streams import text_of

BROKEN_FINISHES = (None, "abort", "error")


@dataclass(frozen=True)
class Call:
    """A tool call as the engine gave it; ``arguments`` is text that may be anything but is meant to be JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Content:
    """What was generated, apart by kind and in the order in which it is told."""

    thinking: str
    text: str
    calls: list[Call]
    refused: bool = False


def message_of(view: JSONObject) -> JSONObject:
    """The buffered answer."""
    content = content_of(view)
    blocks: list[JSONObject] = []
    if content.thinking:
        signature = signature_of(content.thinking)
        blocks.append({"type": "thinking", "thinking": content.thinking, "signature": signature})
    if content.text:
        blocks.append({"type": "text", "text": content.text})
    for call in content.calls:
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": input_of(call.arguments)}
        blocks.append(block)
    told = ending(first_choice(view), content)
    return {**opening(view), "content": blocks, **told, "usage": usage_of(view.get("usage"))}


def opening(view: JSONObject) -> JSONObject:
    """The message before anything is said. Its id is the engine's, so that a record can be found for an answer."""
    return {
        "id": str(view["id"]),
        "type": "message",
        "role": "assistant",
        "model": str(view["model"]),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def first_choice(view: JSONObject) -> JSONObject:
    """The dialect has one answer a call."""
    choices = view.get("choices")
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}


def content_of(view: JSONObject) -> Content:
    """The content of the answer, as every mode tells it."""
    message: JSONObject = first_choice(view).get("message") or {}
    text = text_of(message.get("content"))
    refusal = message.get("refusal")
    refused = not text and isinstance(refusal, str) and refusal != ""
    calls = [call_of(call, view, place) for place, call in enumerate(message.get("tool_calls") or [])]
    return Content(reasoning_of(message), str(refusal if refused else text or ""), calls, refused)


def reasoning_of(message: JSONObject) -> str:
    """The reasoning, under its new name or its old one."""
    texts = (message.get("reasoning"), message.get("reasoning_content"))
    return next((text for text in texts if isinstance(text, str) and text), "")


def call_of(call: JSONObject, view: JSONObject, place: int) -> Call:
    """The engine's id is kept as it is; harnesses need one, and no other call's."""
    function: JSONObject = call["function"]
    given = call.get("id")
    call_id = given if isinstance(given, str) and given else f"{view.get('id')}-{place}"
    arguments = function.get("arguments")
    if arguments is None:
        arguments = ""
    elif not isinstance(arguments, str):
        arguments = jsontext.write(arguments).decode()
    return Call(call_id, str(function.get("name") or ""), arguments)


def input_of(arguments: str) -> JSONObject:
    """The arguments as an object. What is none stands in it as it came, in the form that Claude Code gives it."""
    if not arguments.strip():
        return {}
    try:
        value: JSON = jsontext.read(arguments.encode("utf-8", "surrogatepass"))
    except ValueError:
        value = None
    if isinstance(value, dict):
        return value
    length = len(arguments.encode("utf-16-le", "surrogatepass")) // 2
    return {"__unparsedToolInput": {"raw": arguments, "len": length}}


def ending(choice: JSONObject, content: Content) -> JSONObject:
    """``stop_reason`` and ``stop_sequence``. Of a broken answer all that can be said is that it was cut short."""
    finish = choice.get("finish_reason")
    matched = choice.get("stop_reason")
    reason = "end_turn"
    if finish == "length":
        reason = "max_tokens"
    elif content.calls:
        reason = "tool_use"
    elif finish in BROKEN_FINISHES:
        reason = "max_tokens"
    elif finish == "content_filter" or content.refused:
        reason = "refusal"
    elif finish == "stop" and isinstance(matched, str):
        return {"stop_reason": "stop_sequence", "stop_sequence": matched}
    return {"stop_reason": reason, "stop_sequence": None}


def usage_of(usage: JSON) -> JSONObject:
    """The engine's counts. Anthropic does not count tokens that came from the cache as input."""
    counts = usage if isinstance(usage, dict) else {}
    prompt = _count(counts.get("prompt_tokens"))
    details = counts.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else 0
    told: JSONObject = {"input_tokens": max(0, prompt - cached)}
    if cached:
        told["cache_read_input_tokens"] = cached
    return told | {"output_tokens": _count(counts.get("completion_tokens"))}


def _count(value: JSON) -> int:
    return value if type(value) is int and value > 0 else 0


def signature_of(thinking: str) -> str:
    """Clients echo it and demand that there is one; nobody checks it."""
    return hashlib.sha256(thinking.encode("utf-8", "surrogatepass")).hexdigest()
