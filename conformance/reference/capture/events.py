"""Server-sent events as they arrive from an engine."""

from collections.abc import Iterator

DONE = b"[DONE]"
"""The data of the last event of a complete chat stream."""


class EventReader:
    """Takes a stream apart, however it is cut into reads: LF, CRLF or CR ends a line, comments are left out."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, received: bytes) -> Iterator[bytes]:
        """The data of the events that are complete with these bytes."""
        text = self._rest + received
        # A CR at the end may be the first half of a CRLF.
        held = text[-1:] if text.endswith(b"\r") else b""
        *lines, self._rest = text[: len(text) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest += held
        for line in lines:
            if line:
                self._take(line)
            elif self._data:
                yield b"\n".join(self._data)
                self._data = []

    def _take(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
