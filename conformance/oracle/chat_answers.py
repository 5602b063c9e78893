"""A chat completion as a client reads it: the chunks of a stream, what they amount to, and a buffered body.

Nothing here raises, whatever a body holds.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from conformance.oracle.judgement import Judgement
from conformance.oracle.sse import Stream, parse

Object = dict[str, Any]

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
    tool_calls: list[Object] = field(default_factory=list)
    finish_reason: str | None = None
    usage: Object | None = None


@lru_cache(maxsize=4)
def chunks(body: str) -> tuple[Stream, list[Object]]:
    """The events of a body and the JSON objects among them (error objects included); shared, so read only."""
    stream = parse(body)
    found = (json_object(event.data) for event in stream.events if event.data != DONE)
    return stream, [one for one in found if one is not None]


def reassemble(body: str) -> ChatAnswer:
    """What a client makes of the deltas of choice 0: text appended, calls by their index."""
    answer = ChatAnswer()
    for one in chunks(body)[1]:
        if isinstance(one.get("usage"), dict):
            answer.usage = one["usage"]
    choices = by_index(body).get(0, [])
    deltas = [delta_of(choice) for choice in choices]
    answer.content = _text(delta.get("content") for delta in deltas)
    answer.reasoning = _text(delta.get("reasoning") or delta.get("reasoning_content") for delta in deltas)
    for choice in choices:
        answer.finish_reason = choice.get("finish_reason") or answer.finish_reason
    pieces: dict[str, list[Object]] = {}
    for piece in call_pieces(choices):
        pieces.setdefault(str(piece.get("index")), []).append(piece)
    answer.tool_calls = [_call(parts) for parts in pieces.values()]
    return answer


def buffered(body: Object) -> ChatAnswer:
    """The same of a buffered chat completion; an empty answer for a body that holds none."""
    choice = next(iter(choices_of(body)), {})
    answer = of_message(choice.get("message"))
    answer.finish_reason = choice.get("finish_reason")
    answer.usage = body.get("usage")
    return answer


def of_message(message: Any) -> ChatAnswer:
    """What an assistant message says; it knows no finish reason and no usage."""
    if not isinstance(message, dict):
        return ChatAnswer()
    return ChatAnswer(
        content=message.get("content"),
        reasoning=message.get("reasoning") or message.get("reasoning_content"),
        tool_calls=message.get("tool_calls") or [],
    )


def log_prob_entries(body: str) -> list[Object]:
    """The log prob entries of choice 0, over all chunks."""
    found: list[Object] = []
    for choice in by_index(body).get(0, ()):
        told = choice.get("logprobs")
        found += (told.get("content") or []) if isinstance(told, dict) else []
    return found


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


def unasked(objects: Iterable[Object]) -> Judgement:
    """Neither engine fields nor log probs, in a body or in all chunks, for a client that asked for none."""
    for one in objects:
        paths = engine_fields(one)
        paths += ["logprobs" for choice in choices_of(one) if choice.get("logprobs") is not None]
        if paths:
            return Judgement(False, "no token ids and no log probs", paths[:4], "answer")
    return Judgement(True, "no token ids and no log probs", "none", "answer")


def _call(pieces: list[Object]) -> Object:
    functions = [function_of(piece) for piece in pieces]
    return {
        "id": next((piece["id"] for piece in pieces if piece.get("id")), None),
        "type": "function",
        "function": {key: _text(one.get(key) for one in functions) or "" for key in ("name", "arguments")},
    }


def _text(pieces: Iterable[object]) -> str | None:
    """The pieces that are text, put together; None where there is none."""
    return "".join(piece for piece in pieces if isinstance(piece, str)) or None


def by_index(body: str) -> dict[int, list[Object]]:
    """The choices of all chunks, in order, by index."""
    found: dict[int, list[Object]] = {}
    for one in chunks(body)[1]:
        for choice in choices_of(one):
            index = choice.get("index", 0)
            found.setdefault(index if type(index) is int else -1, []).append(choice)
    return found


def call_pieces(choices: Iterable[Object]) -> Iterator[Object]:
    for choice in choices:
        pieces = delta_of(choice).get("tool_calls")
        yield from (piece for piece in (pieces if isinstance(pieces, list) else ()) if isinstance(piece, dict))


def delta_of(choice: Object) -> Object:
    found = choice.get("delta")
    return found if isinstance(found, dict) else {}


def function_of(call: Object) -> Object:
    found = call.get("function")
    return found if isinstance(found, dict) else {}


def choices_of(one: Object) -> list[Object]:
    found = one.get("choices")
    return [choice for choice in found if isinstance(choice, dict)] if isinstance(found, list) else []


def json_object(text: str) -> Object | None:
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")
