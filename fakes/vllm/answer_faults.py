"""Faults of an assembled answer: choices, content and keys that are not what they should be."""

import copy
from collections.abc import Callable
from typing import Any

from fakes.vllm.assembled import Answer
from fakes.vllm.sample import Fault
from fakes.vllm.token_faults import ON_TOKENS, Change, number


def _two_choices(answer: Answer, fault: Fault) -> None:
    for body in answer.bodies:
        for choice in list(body.get("choices", ()))[:1]:
            body["choices"] = [choice, {**copy.deepcopy(choice), "index": 1}]


def _no_choices(answer: Answer, fault: Fault) -> None:
    for body in answer.bodies:
        body["choices"] = []


def _drop(key: str) -> Change:
    """A fault that leaves out a key of each body; ``raw: null`` keeps it as null."""

    def apply(answer: Answer, fault: Fault) -> None:
        for body in answer.bodies:
            if fault.raw == "null":
                body[key] = None
            else:
                body.pop(key, None)

    return apply


def _odd_value(answer: Answer, fault: Fault) -> None:
    """Another value wherever the answer has one at that place: options `at`, a JSON pointer, and `value`."""
    *way, last = str(fault.options["at"]).split("/")[1:]
    struck = False
    for body in answer.bodies:
        place: Any = body
        for step in way:
            place = _inside(place, step)
        if _inside(place, last) is not None:
            place[int(last) if isinstance(place, list) else last] = copy.deepcopy(fault.options["value"])
            struck = True
    if not struck:
        raise LookupError(f"odd_value: the answer has nothing at {fault.options['at']}")


def _inside(place: Any, step: str) -> Any:
    if isinstance(place, list):
        return place[int(step)] if int(step) < len(place) else None
    return place.get(step) if isinstance(place, dict) else None


def _null_finish(answer: Answer, fault: Fault) -> None:
    for choice in answer.choices():
        choice["finish_reason"] = None


def _content(change: Callable[[Any], object]) -> Change:
    """A fault on content, in messages and deltas; the role chunk keeps its empty string."""

    def apply(answer: Answer, fault: Fault) -> None:
        for choice in answer.choices():
            place = choice.get("message", choice.get("delta"))
            if isinstance(place, dict) and place.get("content"):
                place["content"] = change(place["content"])
            elif isinstance(choice.get("text"), str):
                choice["text"] = change(choice["text"])

    return apply


def _odd_created(answer: Answer, fault: Fault) -> None:
    for body in answer.bodies:
        if "created" in body:
            body["created"] = number(fault.raw) if fault.raw else body["created"] + 0.5


def _lone_surrogate(answer: Answer, fault: Fault) -> None:
    _content(lambda text: text + "\ud83d")(answer, fault)
    answer.writing.python_json = True


def _list_body(answer: Answer, fault: Fault) -> None:
    answer.bodies[:] = [[body] for body in answer.bodies]
    answer.writing.unreadable = True


ON_ANSWER: dict[str, Change] = {
    **ON_TOKENS,
    "list_body": _list_body,
    "two_choices": _two_choices,
    "no_choices": _no_choices,
    "no_request_id": _drop("id"),
    "no_model": _drop("model"),
    "null_finish": _null_finish,
    "odd_value": _odd_value,
    "list_content": _content(lambda text: [{"type": "text", "text": text}]),
    "null_content": _content(lambda _text: None),
    "odd_created": _odd_created,
    "lone_surrogate": _lone_surrogate,
}


def spoil(answer: Answer, fault: Fault | None) -> None:
    """Change an assembled answer as the fault says; others leave it alone."""
    change = ON_ANSWER.get(fault.name) if fault is not None else None
    if change is not None and fault is not None:
        answer.bodies[:] = copy.deepcopy(answer.bodies)
        change(answer, fault)
