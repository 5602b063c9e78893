"""Streams whose events bear names, as those of the Messages and the Responses dialect do: framing and reading.

Nothing here raises, whatever a body holds.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from typing import Any, TypeVar

from conformance.oracle.chat_answers import Object, json_object
from conformance.oracle.chat_stream import EVENTS_TYPE
from conformance.oracle.judgement import Judgement
from conformance.oracle.sse import Stream, parse

_T = TypeVar("_T")


@lru_cache(maxsize=4)
def told(body: str) -> tuple[Stream, list[Object]]:
    """The events of a body and the JSON objects that are their data; shared, so read only."""
    stream = parse(body)
    found = (json_object(event.data) for event in stream.events)
    return stream, [one for one in found if one is not None]


def framing(content_type: str | None, body: str, kinds: Collection[str], where: str) -> Judgement:
    """Of the type of event streams; every event a JSON object of a known ``type`` that is also its name, all closed.

    Comments may stand anywhere between events.
    """
    media_type = (content_type or "").partition(";")[0].strip().lower()
    if media_type != EVENTS_TYPE:
        return Judgement(False, EVENTS_TYPE, content_type, where)
    stream, objects = told(body)
    for rule, seen in (
        ("at least one event", None if stream.events else body[:80]),
        ("a blank line behind the last event", stream.rest[:80] or None),
        ("no lines but event, data and comments", _odd_line(body)),
        ("every event a JSON object", _not_json(stream)),
        ("every event named as its type", _misnamed(stream, objects)),
        ("only events of the dialect", first(kind_of(one) for one in objects if kind_of(one) not in kinds)),
    ):
        if seen is not None:
            return Judgement(False, rule, seen, where)
    return Judgement(True, "an event stream of named JSON objects", f"{len(objects)} events", where)


def all_hold(body: str, rules: Iterable[Callable[[str], Judgement]], claim: str, where: str) -> Judgement:
    """What the first broken rule finds; the claim where none is broken."""
    broken = first(judged for rule in rules if not (judged := rule(body)))
    # A broken rule's finding is false as a value, so it is asked for by identity.
    return Judgement(True, claim, f"{len(told(body)[1])} events", where) if broken is None else broken


def kind_of(one: Object) -> str:
    """The ``type`` of an event or a part of one; empty when it has none."""
    found = one.get("type")
    return found if isinstance(found, str) else ""


def of_kind(objects: Iterable[Object], *kinds: str) -> Iterator[Object]:
    return (one for one in objects if kind_of(one) in kinds)


def inner(one: Object, key: str) -> Object:
    """The object under a key; empty when there is none."""
    found = one.get(key)
    return found if isinstance(found, dict) else {}


def objects_in(one: Object, key: str) -> list[Object]:
    """The objects of the list under a key; empty when there is no list."""
    found = one.get(key)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def text_in(one: Object, key: str) -> str:
    """The string under a key; empty when there is none."""
    found = one.get(key)
    return found if isinstance(found, str) else ""


def is_count(value: Any) -> bool:
    """A whole number of at least 0, and no bool."""
    return type(value) is int and value >= 0


def first(values: Iterable[_T | None]) -> _T | None:
    return next((value for value in values if value is not None), None)


def _odd_line(body: str) -> str | None:
    lines = body.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff").split("\n")
    return first(line[:80] for line in lines if line and not line.startswith((":", "data:", "event:")))


def _not_json(stream: Stream) -> str | None:
    return first(event.data[:80] for event in stream.events if json_object(event.data) is None)


def _misnamed(stream: Stream, objects: list[Object]) -> Any:
    pairs = zip(stream.events, objects, strict=False)
    return first([event.name, one.get("type")] for event, one in pairs if event.name != one.get("type"))
