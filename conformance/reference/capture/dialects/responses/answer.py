"""A chat answer as a response: its output items, status and usage."""

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.reference.capture import jsontext
from conformance.reference.capture.jsontext import JSON, JSONObject

COMPLETE = ("stop", "tool_calls", "function_call")
CUT = {"length": "max_output_tokens", "content_filter": "content_filter"}


@dataclass(frozen=True)
class Ending:
    """How a response ended; ``status`` is completed, incomplete or failed."""

    status: str
    incomplete_details: JSON = None
    error: JSON = None


def ending(finish_reason: JSON) -> Ending:
    """A generation that did not end by itself never looks as if it had."""
    if isinstance(finish_reason, str) and finish_reason in CUT:
        return Ending("incomplete", incomplete_details={"reason": CUT[finish_reason]})
    if finish_reason in COMPLETE:
        return Ending("completed")
    message = f"the engine ended the generation with finish_reason {str(finish_reason)[:80]}"
    return Ending("failed", error={"code": "server_error", "message": message})


class Items:
    """Makes the output items of one response. Their ids are made from ``name``."""

    def __init__(self, name: str, namespaced: Mapping[str, tuple[str, str]]) -> None:
        self._name = name
        self._namespaced = namespaced
        self._count = 0

    def reasoning(self, text: str) -> JSONObject:
        """What was thought; told as its own summary."""
        summary = [{"type": "summary_text", "text": text}]
        return {"type": "reasoning", "id": self._id("rs"), "summary": summary, "status": "completed"}

    def message(self, *parts: JSONObject) -> JSONObject:
        """What was said."""
        said = {"role": "assistant", "status": "completed", "content": [*parts]}
        return {"type": "message", "id": self._id("msg"), **said}

    def call(self, call_id: JSON, function: JSONObject) -> JSONObject:
        """One call, its arguments as the engine wrote them; a call without an id gets one, to be answered by."""
        told = function.get("name")
        namespace: JSONObject = {}
        if isinstance(told, str) and told in self._namespaced:
            space, told = self._namespaced[told]
            namespace = {"namespace": space}
        item_id = self._id("fc")
        return {
            "type": "function_call",
            "id": item_id,
            "call_id": call_id if isinstance(call_id, str) and call_id else f"call_{item_id}",
            "name": told if isinstance(told, str) else "",
            **namespace,
            "arguments": _arguments(function.get("arguments")),
            "status": "completed",
        }

    def _id(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}_{self._name}_{self._count}"


def text_part(text: str) -> JSONObject:
    """A text of a message."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def refusal_part(text: str) -> JSONObject:
    """A refusal in a message."""
    return {"type": "refusal", "refusal": text}


def output_items(choice: JSONObject, items: Items) -> list[JSONObject]:
    """Reasoning, then the message, then the calls; an empty turn is one empty message."""
    message: JSONObject = choice.get("message") or {}
    found: list[JSONObject] = []
    thought = reasoning_of(message)
    if thought:
        found.append(items.reasoning(thought))
    parts = _parts(message)
    if parts:
        found.append(items.message(*parts))
    found += [items.call(call.get("id"), call["function"]) for call in message.get("tool_calls") or []]
    found = found or [items.message(text_part(""))]
    mark_cut(found, ending(choice.get("finish_reason")))
    return found


def mark_cut(items: list[JSONObject], end: Ending) -> None:
    """The last item of a response that is not complete is not complete either."""
    if items and end.status != "completed":
        items[-1]["status"] = "incomplete"


def reasoning_of(message: JSONObject) -> str:
    """The reasoning of a message or delta, by its new or its old name."""
    texts = (message.get("reasoning"), message.get("reasoning_content"))
    return next((text for text in texts if isinstance(text, str) and text), "")


def usage(counts: JSON) -> JSON:
    """The engine's counts under this dialect's names; None where they are no counts."""
    counts = counts if isinstance(counts, dict) else {}
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    if any(type(counts.get(name)) is not int for name in names):
        return None
    cached = _detail(counts, "prompt_tokens_details", "cached_tokens")
    reasoned = _detail(counts, "completion_tokens_details", "reasoning_tokens")
    return {
        "input_tokens": counts["prompt_tokens"],
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": counts["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": reasoned},
        "total_tokens": counts["total_tokens"],
    }


def _detail(counts: JSONObject, details: str, name: str) -> int:
    found = counts.get(details)
    value = found.get(name) if isinstance(found, dict) else None
    return value if type(value) is int else 0


def _parts(message: JSONObject) -> list[JSONObject]:
    text = message.get("content")
    if isinstance(text, list):
        text = "".join(str(part.get("text") or "") for part in text if isinstance(part, dict))
    refusal = message.get("refusal")
    parts = [text_part(text)] if isinstance(text, str) and text else []
    return [*parts, refusal_part(refusal)] if isinstance(refusal, str) and refusal else parts


def _arguments(arguments: JSON) -> str:
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else jsontext.write(arguments).decode()
