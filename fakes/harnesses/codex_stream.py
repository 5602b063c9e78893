"""How Codex reads a streamed response: whole items as they are done, and how it ended; deltas and all else unread."""

import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal

from fakes.harnesses.chat_answers import Message
from fakes.harnesses.codex_ids import kept_id
from fakes.harnesses.exchanges import Received
from fakes.harnesses.sse import events_in

Item = dict[str, Any]
How = Literal["completed", "retry", "fatal"]

_FATAL = {"context_length_exceeded", "insufficient_quota", "usage_not_included", "invalid_prompt"} | {
    "server_is_overloaded",
    "slow_down",
}
_AGAIN_IN = re.compile(r"try again in\s*(\d+(?:\.\d+)?)\s*(s|ms|seconds?)", re.IGNORECASE)


@dataclass(frozen=True)
class StreamEnd:
    """The items of a response as the history keeps them, and how the response ended.

    ``retry`` is answered by a reconnect, after ``wait`` seconds where the server named them; the items stay.
    ``code`` is the error code of a failed response.
    """

    items: list[Item] = field(default_factory=list)
    how: How = "retry"
    error: str | None = None
    code: str | None = None
    wait: float | None = None
    tokens: int | None = None


def read_stream(response: Received) -> StreamEnd:
    """What a response amounts to, cut or not. A body that is no stream has no events, and is a stream cut short."""
    items: list[Item] = []
    failed: StreamEnd | None = None
    for event in events_in(response.body):
        data = _object(event.data)
        head = _inner(data, "response")
        match data.get("type"):
            case "response.output_item.done":
                item = kept(_inner(data, "item"))
                items += [item] if item else []
            case "response.completed" if "id" in head:
                total = _inner(head, "usage").get("total_tokens")
                return StreamEnd(items, "completed", tokens=total if isinstance(total, int) else None)
            case "response.incomplete":
                reason = _inner(head, "incomplete_details").get("reason", "unknown")
                return StreamEnd(items, "fatal", f"Incomplete response returned, reason: {reason}")
            case "response.failed":
                failed = _failure(_inner(head, "error"))
    if failed is not None:
        return StreamEnd(items, failed.how, failed.error, failed.code, failed.wait)
    return StreamEnd(items, "retry", "stream closed before response.completed")


def kept(item: Item) -> Item | None:
    """An item as the history sends it again: known keys in the client's order. None for one it cannot read."""
    id_ = (
        kept_id(item["type"], item.get("id")) if item.get("type") in ("message", "reasoning", "function_call") else None
    )
    named = {} if id_ is None else {"id": id_}
    status = {} if item.get("status") is None else {"status": item["status"]}
    match item:
        case {"type": "message", "role": str(role), "content": list(content)}:
            parts = [_part(part) for part in content]
            phase = {} if item.get("phase") is None else {"phase": item["phase"]}
            whole = {"type": "message", **status, **named, "role": role, "content": parts, **phase}
            return whole if all(parts) else None
        case {"type": "function_call", "name": str(name), "arguments": str(arguments), "call_id": str(call)}:
            space = {} if item.get("namespace") is None else {"namespace": item["namespace"]}
            told = {"name": name, **space, "arguments": arguments, "call_id": call}
            return {"type": "function_call", **status, **named, **told}
        case {"type": "reasoning", "summary": list(summary)}:
            held = {key: item.get(key) for key in ("content", "encrypted_content")}
            return {"type": "reasoning", **named, "summary": summary, **held}
    return None


def text_of_message(item: Item) -> str:
    return "".join(part.get("text", "") for part in item["content"])


def as_answer(items: list[Item]) -> Message | None:
    """The items of an answer as one assistant message in chat form; None for none."""
    if not items:
        return None
    texts = [text_of_message(item) for item in items if item["type"] == "message"]
    calls = [
        {"id": item["call_id"], "type": "function", "function": {"name": item["name"], "arguments": item["arguments"]}}
        for item in items
        if item["type"] == "function_call"
    ]
    thoughts = [part for item in items if item["type"] == "reasoning" for part in item["content"] or item["summary"]]
    message: Message = {"role": "assistant", "content": "".join(texts) if texts else None}
    if thoughts:
        message["reasoning"] = "".join(part.get("text", "") for part in thoughts)
    return {**message, "tool_calls": calls} if calls else message


def _part(part: Any) -> Item:
    """A part of a message; empty for one that cannot be read, as a refusal."""
    match part:
        case {"type": "output_text" | "input_text" as kind, "text": str(text)}:
            more = {key: part[key] for key in ("annotations", "logprobs") if part.get(key) is not None}
            return {"type": kind, "text": text, **more}
    return {}


def _failure(error: Item) -> StreamEnd:
    message, code = str(error.get("message") or "response.failed event received"), error.get("code")
    if code in _FATAL:
        return StreamEnd(how="fatal", error=message, code=str(code))
    again = _AGAIN_IN.search(message) if code == "rate_limit_exceeded" else None
    wait = None if again is None else float(again[1]) / (1000 if again[2].lower() == "ms" else 1)
    return StreamEnd(how="retry", error=message, code=code if isinstance(code, str) else None, wait=wait)


def _object(text: str) -> Item:
    """The data of an event; empty for what the real one cannot read either, half of a surrogate pair included."""
    try:
        found = json.loads(text)
        if "\\ud" in text.lower():
            json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _inner(data: Item, key: str) -> Item:
    found = data.get(key)
    return found if isinstance(found, dict) else {}
