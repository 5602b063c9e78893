"""What a real engine's answer tells of one call, in the form in which the fake's ledger tells of its own."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from fakes.vllm.forms import Chunk
from fakes.vllm.streamed_message import streamed_message

JSON = Any
COUNTS = ("prompt_tokens", "total_tokens", "completion_tokens")
PREFIX = b"data:"


def told(answer: bytes, *, streamed: bool) -> dict[str, JSON]:
    """Fields of a ledger row: what choice 0 of a whole answer says, or as much of it as came.

    Ids and log probs stand as they were sent. An answer that is no JSON tells nothing.
    """
    try:
        parts = list(_events(answer)) if streamed else [json.loads(answer)]
    except ValueError:
        return {}
    parts = [part for part in parts if isinstance(part, dict) and "choices" in part]
    choices = [choice for part in parts for choice in part["choices"] if choice.get("index") == 0]
    if not choices:
        return {}
    finish = choices[-1].get("finish_reason")
    return {
        "request_id": parts[0].get("id"),
        "model": parts[0].get("model"),
        "prompt_token_ids": _first(one.get("prompt_token_ids") for one in [*parts, *choices]),
        "generation_token_ids": [token for choice in choices for token in choice.get("token_ids") or ()] or None,
        "generation_log_probs": [value for choice in choices for value in _log_probs(choice.get("logprobs"))] or None,
        # A ledger says how the generation ended, and not what the chat endpoint calls that.
        "finish_reason": "stop" if finish == "tool_calls" else finish,
        "stop_reason": choices[-1].get("stop_reason"),
        "message": _message(parts, choices),
        "usage": _counts(_first(part.get("usage") for part in reversed(parts))),
    }


def complaint(answer: bytes) -> str:
    """The sentence of an answer that is an error."""
    try:
        error = json.loads(answer).get("error")
    except (ValueError, AttributeError):
        error = None
    return str(error.get("message") if isinstance(error, dict) else error or answer[:200].decode(errors="replace"))


def _events(answer: bytes) -> Iterator[JSON]:
    """What vLLM streams: an event a line, no names, ``[DONE]`` at the end. A line that was cut is none."""
    for line in answer.split(b"\n")[:-1]:
        body = line.removeprefix(PREFIX).strip()
        if line.startswith(PREFIX) and body != b"[DONE]":
            yield json.loads(body)


def _log_probs(entries: JSON) -> list[float]:
    """Of one choice, in either form."""
    if not entries:
        return []
    if "content" in entries:
        return [entry["logprob"] for entry in entries["content"] or ()]
    return list(entries.get("token_logprobs") or ())


def _message(parts: list[JSON], choices: list[JSON]) -> JSON:
    if "message" in choices[0]:
        return choices[0]["message"]
    if "delta" in choices[0]:
        blank = {"role": "assistant", "content": None, "reasoning": None}
        return streamed_message([Chunk(part, 0) for part in parts], blank)
    return {"role": "assistant", "content": "".join(choice.get("text") or "" for choice in choices)}


def _counts(usage: JSON) -> JSON:
    """Of usage what a ledger keeps."""
    return {key: usage[key] for key in COUNTS} if usage else None


def _first(values: Iterable[JSON]) -> JSON:
    return next((value for value in values if value), None)
