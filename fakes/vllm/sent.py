"""Answers as they were handed to the socket, kept beside the ledger for whoever wants to see the wire itself."""

import base64
from typing import NotRequired

from typing_extensions import TypedDict

LARGEST = 64 * 1024 * 1024
"""Bytes of bodies that are kept; of more, the oldest answers make room. The ledger's rows stay."""


class SentAnswer(TypedDict):
    """What was sent of an answer, up to where it was cut. ``body_bytes_b64`` only when the body is not UTF-8."""

    status: int
    headers: list[tuple[str, str]]
    body_text: str
    body_bytes_b64: NotRequired[str]


class _Answer:
    __slots__ = ("headers", "pieces", "status")

    def __init__(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.status = status
        self.headers = headers
        self.pieces: list[bytes] = []


class SentAnswers:
    """By the row's ``seq``."""

    def __init__(self, largest: int = LARGEST) -> None:
        self._largest = largest
        self._size = 0
        self._answers: dict[int, _Answer] = {}

    def begin(self, seq: int, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self._answers[seq] = _Answer(status, headers)

    def more(self, seq: int, body: bytes) -> None:
        answer = self._answers.get(seq)
        if answer is None or not body:
            return
        answer.pieces.append(body)
        self._size += len(body)
        while self._size > self._largest:
            self.drop(next(iter(self._answers)))

    def drop(self, seq: int) -> None:
        answer = self._answers.pop(seq, None)
        if answer is not None:
            self._size -= sum(map(len, answer.pieces))

    def of(self, seq: int) -> SentAnswer | None:
        """None where nothing was sent, or it had to make room."""
        answer = self._answers.get(seq)
        if answer is None:
            return None
        body = b"".join(answer.pieces)
        pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.headers]
        try:
            return {"status": answer.status, "headers": pairs, "body_text": body.decode()}
        except UnicodeDecodeError:
            raw = base64.b64encode(body).decode()
            return {"status": answer.status, "headers": pairs, "body_text": "", "body_bytes_b64": raw}
