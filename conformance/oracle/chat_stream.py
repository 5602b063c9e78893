"""The grammar of a streamed chat completion, and what its deltas amount to."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from conformance.oracle.judgement import Judgement
from conformance.oracle.sse import Stream, parse

_T = TypeVar("_T")

DONE = "[DONE]"
ENGINE_FIELDS = (
    "prompt_token_ids",
    "token_ids",
    "generation_token_ids",
    "generation_log_probs",
    "prompt_text",
    "routed_experts",
    "metrics",
    "prompt_logprobs",
    "kv_transfer_params",
    "ec_transfer_params",
)
"""What an engine adds for its own friends and no client asked for."""


@dataclass(slots=True)
class ChatAnswer:
    """A chat completion put together from its chunks, or taken from a buffered body."""

    content: str | None = None
    reasoning: str | None = None
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None


def chunks(body: str) -> tuple[Stream, list[dict[str, Any]]]:
    """The events of a body and the JSON objects among them (error objects included)."""
    stream = parse(body)
    objects = []
    for event in stream.events:
        if event.data != DONE:
            value = _object(event.data)
            if value is not None:
                objects.append(value)
    return stream, objects


def grammar(body: str) -> Judgement:
    """A complete stream: JSON chunks of one id and model, role first and once, one finish, nothing but usage behind
    it, tool calls opened with id and name before their arguments, and ``[DONE]`` last.
    """
    stream, objects = chunks(body)
    for rule, seen in (
        ("nothing behind the last event", stream.rest or None),
        ("every event is a JSON object or [DONE]", _not_json(stream)),
        ("[DONE] stands last and once", _done_misplaced(stream)),
        ("no error object in a stream that ended well", _first(o.get("error") for o in objects)),
        ("one id, model and created over all chunks", _several_heads(objects)),
        (
            "object is chat.completion.chunk",
            _first(o.get("object") for o in objects if o.get("object") != "chat.completion.chunk"),
        ),
        *_choice_rules(objects),
    ):
        if seen is not None:
            return Judgement(False, rule, seen, "chat stream")
    return Judgement(True, "a well-formed chat stream", f"{len(objects)} chunks", "chat stream")


def looks_complete(body: str) -> bool:
    """Whether a client would take the stream for a finished answer: a finish reason or ``[DONE]`` without an error."""
    stream, objects = chunks(body)
    if any("error" in one for one in objects):
        return False
    finished = any(choice.get("finish_reason") for one in objects for choice in _choices(one))
    return finished or any(event.data == DONE for event in stream.events)


def error_in_band(body: str) -> dict[str, Any] | None:
    """The error object a stream carries, if it carries one."""
    for one in chunks(body)[1]:
        if isinstance(one.get("error"), dict):
            error: dict[str, Any] = one["error"]
            return error
    return None


def reassemble(body: str) -> ChatAnswer:
    """What a client makes of the deltas of choice 0."""
    answer = ChatAnswer()
    for one in chunks(body)[1]:
        if isinstance(one.get("usage"), dict):
            answer.usage = one["usage"]
        for choice in _choices(one):
            if choice.get("index", 0) == 0:
                _add_delta(answer, choice.get("delta") or {})
                answer.finish_reason = choice.get("finish_reason") or answer.finish_reason
    return answer


def buffered(body: dict[str, Any]) -> ChatAnswer:
    """The same of a buffered chat completion."""
    choice = body["choices"][0]
    message = choice["message"]
    return ChatAnswer(
        content=message.get("content"),
        reasoning=message.get("reasoning") or message.get("reasoning_content"),
        tool_calls=message.get("tool_calls") or [],
        finish_reason=choice.get("finish_reason"),
        usage=body.get("usage"),
    )


def engine_fields(value: Any, path: str = "") -> list[str]:
    """Paths of engine fields with a value anywhere in a body or chunk."""
    found: list[str] = []
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ENGINE_FIELDS and inner is not None:
                found.append(f"{path}/{key}")
            else:
                found += engine_fields(inner, f"{path}/{key}")
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            found += engine_fields(inner, f"{path}/{position}")
    return found


def _add_delta(answer: ChatAnswer, delta: dict[str, Any]) -> None:
    if delta.get("content"):
        answer.content = (answer.content or "") + delta["content"]
    reasoning = delta.get("reasoning") or delta.get("reasoning_content")
    if reasoning:
        answer.reasoning = (answer.reasoning or "") + reasoning
    for call in delta.get("tool_calls") or []:
        position = call.get("index", len(answer.tool_calls))
        while len(answer.tool_calls) <= position:
            answer.tool_calls.append({"id": None, "type": "function", "function": {"name": "", "arguments": ""}})
        known = answer.tool_calls[position]
        known["id"] = known["id"] or call.get("id")
        function = call.get("function") or {}
        known["function"]["name"] += function.get("name") or ""
        known["function"]["arguments"] += function.get("arguments") or ""


def _choice_rules(objects: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    mine = [choice for one in objects for choice in _choices(one) if choice.get("index", 0) == 0]
    roles = [place for place, choice in enumerate(mine) if (choice.get("delta") or {}).get("role")]
    finishes = [place for place, choice in enumerate(mine) if choice.get("finish_reason") is not None]
    return [
        ("the role stands in the first delta and nowhere else", roles if roles != [0] else None),
        ("one finish reason, in the last delta", finishes if finishes != [len(mine) - 1] else None),
        ("a tool call opens with its id and name", _unopened_call(mine)),
        ("a tool call keeps its id", _changed_id(mine)),
    ]


def _unopened_call(choices: list[dict[str, Any]]) -> Any:
    opened: set[int] = set()
    for choice in choices:
        for call in (choice.get("delta") or {}).get("tool_calls") or []:
            index = call.get("index")
            if type(index) is not int:
                return call
            if index not in opened:
                if index != len(opened) or not call.get("id") or not (call.get("function") or {}).get("name"):
                    return call
                opened.add(index)
    return None


def _changed_id(choices: list[dict[str, Any]]) -> Any:
    ids: dict[int, str] = {}
    for choice in choices:
        for call in (choice.get("delta") or {}).get("tool_calls") or []:
            if call.get("id") and ids.setdefault(call.get("index", -1), call["id"]) != call["id"]:
                return call["id"]
    return None


def _several_heads(objects: list[dict[str, Any]]) -> Any:
    heads = {(str(one.get("id")), str(one.get("model")), str(one.get("created"))) for one in objects}
    return sorted(heads)[:2] if len(heads) > 1 else None


def _not_json(stream: Stream) -> str | None:
    return _first(event.data[:80] for event in stream.events if event.data != DONE and _object(event.data) is None)


def _done_misplaced(stream: Stream) -> str | None:
    places = [place for place, event in enumerate(stream.events) if event.data == DONE]
    return None if places == [len(stream.events) - 1] else f"[DONE] at {places} of {len(stream.events)} events"


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _choices(one: dict[str, Any]) -> list[dict[str, Any]]:
    found = one.get("choices")
    return [choice for choice in found if isinstance(choice, dict)] if isinstance(found, list) else []


def _first(values: Iterable[_T | None]) -> _T | None:
    return next((value for value in values if value is not None), None)
