"""Read a chat completion, buffered or streamed, the way a client sees it."""

import json
from dataclasses import dataclass, field
from typing import Any

from fakes.harnesses.exchanges import Received
from fakes.harnesses.sse import Event, events_in

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """The answer of one chat call.

    ``message`` is the assistant message: as served when buffered, put together from the deltas when streamed, None
    when there is none. ``done`` says that the answer came to its proper end: a buffered body that parses, or a
    stream with a finish reason and ``[DONE]``. ``error`` is what an error body or event
    said, or what did not parse.
    """

    message: Message | None = None
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    request_id: str | None = None
    model: str | None = None
    done: bool = False
    error: str | None = None
    body: dict[str, Any] | None = None
    events: list[Event] = field(default_factory=list)


def read_answer(response: Received | None) -> ChatAnswer:
    """What the response says, whatever its state. Never raises."""
    if response is None:
        return ChatAnswer(error="no response")
    if response.is_stream:
        return answer_of_stream(events_in(response.body))
    try:
        body = response.json_body()
    except (ValueError, RecursionError) as error:
        return ChatAnswer(error=f"body is not JSON: {error}")
    if not isinstance(body, dict):
        return ChatAnswer(error=f"body is not an object but {type(body).__name__}")
    if not 200 <= response.status < 300:
        return ChatAnswer(error=error_text(body), body=body)
    choice = first_choice(body)
    message = choice.get("message")
    return ChatAnswer(
        message=message if isinstance(message, dict) else None,
        finish_reason=choice.get("finish_reason"),
        usage=body.get("usage"),
        request_id=body.get("id"),
        model=body.get("model"),
        done=True,
        error=error_text(body) if "error" in body else None,
        body=body,
    )


def answer_of_stream(events: list[Event]) -> ChatAnswer:
    """Put the deltas of choice 0 together as the official clients do: text appended, calls by ``index``."""
    message: Message = {"role": "assistant", "content": None}
    calls: dict[int, dict[str, Any]] = {}
    head: dict[str, Any] = {}
    finish: str | None = None
    error: str | None = None
    seen = ended = False
    for event in events:
        if event.data == "[DONE]":
            ended = True
            continue
        try:
            chunk = json.loads(event.data)
        except (ValueError, RecursionError):
            error = error or f"event is not JSON: {event.data[:80]!r}"
            continue
        if not isinstance(chunk, dict):
            error = error or f"event is not an object: {event.data[:80]!r}"
            continue
        if "error" in chunk:
            error = error or error_text(chunk)
            continue
        head = {**head, **{key: chunk[key] for key in ("id", "model", "usage") if chunk.get(key) is not None}}
        choice = first_choice(chunk)
        if isinstance(delta := choice.get("delta"), dict):
            seen = True
            _add_delta(message, calls, delta)
        finish = choice.get("finish_reason") or finish
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return ChatAnswer(
        message=message if seen else None,
        finish_reason=finish,
        usage=head.get("usage"),
        request_id=head.get("id"),
        model=head.get("model"),
        done=ended and finish is not None and error is None,
        error=error,
        events=events,
    )


def _add_delta(message: Message, calls: dict[int, dict[str, Any]], delta: dict[str, Any]) -> None:
    for key in ("content", "reasoning", "reasoning_content", "refusal"):
        if isinstance(piece := delta.get(key), str):
            message[key] = (message.get(key) or "") + piece
    pieces = delta.get("tool_calls")
    for piece in pieces if isinstance(pieces, list) else []:
        index = piece.get("index", 0) if isinstance(piece, dict) else None
        function = piece.get("function") if index is not None else None
        if not isinstance(index, int) or not isinstance(function, dict):
            continue
        call = calls.setdefault(index, {"id": None, "type": "function", "function": {"name": "", "arguments": ""}})
        call["id"] = piece.get("id") or call["id"]
        for key in ("name", "arguments"):
            if isinstance(part := function.get(key), str):
                call["function"][key] += part


def first_choice(body: dict[str, Any]) -> dict[str, Any]:
    choices = body.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0]
    return {}


def error_text(body: dict[str, Any]) -> str:
    """The message of an error body in any of the usual forms."""
    error = body.get("error", body)
    if isinstance(error, dict):
        return str(error.get("message") or error.get("detail") or error)
    return str(error)
