"""How harnesses tell the model's own answers again: none of it is an edit, so that none of it may cost a token.

Each manner is one that a real harness has, by the recordings: opencode dumps arguments anew, keys in its own order and
numbers by value; OpenHands sends text as parts and drops what was thought; Claude Code coerces arguments to the tool's
schema and fills in its defaults.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from conformance.shapes.tongues import Answer

JSON = Any
Manner = Callable[[Answer], Answer]

_THOUGHT_KEYS = ("reasoning_content", "reasoning")
_THOUGHT_TYPES = ("thinking", "reasoning")


def _each(answer: Answer, change: Callable[[dict[str, JSON]], dict[str, JSON]]) -> Answer:
    return replace(answer, again=[change(dict(item)) for item in answer.again])


def _arguments(item: dict[str, JSON], change: Callable[[Mapping[str, JSON]], JSON], **style: JSON) -> dict[str, JSON]:
    """The item with other arguments: an object in Messages, its text in chat completions and Responses."""
    if item.get("type") == "tool_use":
        return {**item, "input": change(item["input"])}
    if item.get("type") == "function_call":
        return {**item, "arguments": _changed(item["arguments"], change, **style)}
    calls = [
        {
            **call,
            "function": {**call["function"], "arguments": _changed(call["function"]["arguments"], change, **style)},
        }
        for call in item.get("tool_calls") or []
    ]
    return {**item, "tool_calls": calls} if calls else item


def _changed(text: str, change: Callable[[Mapping[str, JSON]], JSON], **style: JSON) -> str:
    return json.dumps(change(json.loads(text)), ensure_ascii=False, **style)


def other_key_order(answer: Answer) -> Answer:
    def turned(given: Mapping[str, JSON]) -> dict[str, JSON]:
        return dict(reversed(list(given.items())))

    return _each(answer, lambda item: turned(_arguments(item, turned)))


def other_blanks(answer: Answer) -> Answer:
    return _each(answer, lambda item: _arguments(item, dict, separators=(",", ":")))


def text_as_parts(answer: Answer) -> Answer:
    """And nothing as an empty text. In Messages and Responses text is parts already."""

    def parted(item: dict[str, JSON]) -> dict[str, JSON]:
        if item.get("role") != "assistant" or "type" in item:
            return item
        text = item.get("content")
        return {**item, "content": [{"type": "text", "text": text}] if text else ""}

    return _each(answer, parted)


def without_thoughts(answer: Answer) -> Answer:
    """Unless the answer is nothing else."""
    said = [item for item in answer.again if item.get("type") not in _THOUGHT_TYPES]
    bare = [{key: value for key, value in item.items() if key not in _THOUGHT_KEYS} for item in said]
    return replace(answer, again=bare) if bare else answer


def coerced(answer: Answer) -> Answer:
    def fitted(given: Mapping[str, JSON]) -> dict[str, JSON]:
        truth = {"true": True, "false": False}
        return {key: truth.get(value, value) if isinstance(value, str) else value for key, value in given.items()}

    return _each(answer, lambda item: _arguments(item, lambda given: {**fitted(given), "replace_all": False}))


MANNERS: tuple[Manner, ...] = (other_key_order, other_blanks, text_as_parts, without_thoughts, coerced)
