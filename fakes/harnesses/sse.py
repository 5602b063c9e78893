"""Server-sent events, parsed as the HTML standard says (§9.2.6): no leniency beyond it."""

import codecs
import re
from collections.abc import Iterable
from dataclasses import dataclass

_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Event:
    """One dispatched event. ``event`` is ``message`` when the stream named none."""

    event: str
    data: str
    id: str = ""


class EventReader:
    """Feed it bytes as they come; it gives back the events that became complete.

    An event without its closing blank line is never dispatched, so a cut stream loses its last, half-written event.
    Comments (``: ping``) and events without data vanish, but ``comments`` counts the former.
    """

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self._at_start = True
        self._data: list[str] = []
        self._event = ""
        self._last_id = ""
        self.comments = 0

    def feed(self, chunk: bytes) -> list[Event]:
        text = self._decode.decode(chunk)
        if self._at_start and text:
            text = text.removeprefix("\ufeff")
            self._at_start = False
        self._pending += text
        events = (self._line(line) for line in self._lines())
        return [event for event in events if event is not None]

    def _lines(self) -> Iterable[str]:
        text, start = self._pending, 0
        for end in _LINE_END.finditer(text):
            # A CR at the very end may be half of CRLF: wait for what follows.
            if end[0] == "\r" and end.end() == len(text):
                break
            yield text[start : end.start()]
            start = end.end()
        self._pending = text[start:]

    def _line(self, line: str) -> Event | None:
        if not line:
            return self._dispatch()
        if line.startswith(":"):
            self.comments += 1
            return None
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._event = value
        elif field == "id" and "\0" not in value:
            self._last_id = value
        return None

    def _dispatch(self) -> Event | None:
        data, event = self._data, self._event
        self._data, self._event = [], ""
        return Event(event or "message", "\n".join(data), self._last_id) if data else None


def events_in(body: bytes) -> list[Event]:
    """The events of a body that has ended. A CR that closes the body is a whole line end by now."""
    reader = EventReader()
    events = reader.feed(body)
    if body.endswith(b"\r"):
        events += reader.feed(b":")
    return events
