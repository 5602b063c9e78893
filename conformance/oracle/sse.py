"""Server-sent events as the HTML standard reads them, from the bytes a client got."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """One dispatched event. ``name`` is the ``event:`` field or ""; ``data`` its joined data lines."""

    name: str
    data: str


@dataclass(frozen=True, slots=True)
class Stream:
    """``rest`` is what stood behind the last blank line: a stream that ended well has none."""

    events: list[Event]
    comments: list[str]
    rest: str


def parse(body: str) -> Stream:
    """Split a body into events. Comments and unknown fields dispatch nothing; an event without data is dropped."""
    text = body.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    *blocks, rest = text.split("\n\n")
    events: list[Event] = []
    comments: list[str] = []
    for block in blocks:
        name, data = "", []
        for line in block.split("\n"):
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if line.startswith(":"):
                comments.append(value)
            elif field == "event":
                name = value
            elif field == "data":
                data.append(value)
        if data:
            events.append(Event(name, "\n".join(data)))
    return Stream(events, comments, rest.strip("\n"))
