"""A message told while the engine still generates it; for calls that are not captured."""

from conformance.reference.capture.dialects.messages import stream
from conformance.reference.capture.dialects.messages.answer import (
    Content,
    call_of,
    ending,
    first_choice,
    reasoning_of,
    usage_of,
)
from conformance.reference.capture.errors import engine_unreachable
from conformance.reference.capture.jsontext import JSON, JSONObject
from conformance.reference.capture.streams import text_of

BLOCKS = {"thinking": stream.THINKING, "text": stream.TEXT}


class MessageRelay:
    """Text and thinking are passed on as they come.

    Calls are held until the end: engines interleave the pieces of parallel calls, and a message has one open block.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._head: JSONObject | None = None
        self._index = -1
        self._open: str | None = None
        self._thinking = ""
        self._calls: dict[int, JSONObject] = {}
        self._finish: JSONObject | None = None
        self._usage: JSON = None

    def chunk(self, chunk: JSONObject) -> bytes:
        """The events for one chunk."""
        frames = b""
        if self._head is None:
            self._head = {"id": chunk.get("id") or "msg_1", "model": self._model}
            frames += stream.begun(self._head, usage_of(None))
        self._usage = chunk.get("usage") or self._usage
        choice = first_choice(chunk)
        delta = choice.get("delta")
        if isinstance(delta, dict):
            frames += self._told("thinking", reasoning_of(delta))
            frames += self._told("text", str(text_of(delta.get("content")) or ""))
            for piece in delta.get("tool_calls") or []:
                self._gather(piece)
        if choice.get("finish_reason") is not None:
            self._finish = choice
        return frames

    def end(self) -> bytes:
        """The calls, the stop reason and the end."""
        if self._head is None or self._finish is None:
            raise engine_unreachable()
        frames = self._closed()
        calls = [call_of(call, self._head, place) for place, call in enumerate(self._calls.values())]
        for number, call in enumerate(calls, self._index + 1):
            frames += b"".join(stream.call_block(number, call))
        told = ending(self._finish, Content("", "", calls))
        return frames + b"".join(stream.ended(told, usage_of(self._usage)))

    def _told(self, kind: str, text: str) -> bytes:
        if not text:
            return b""
        frames = b""
        if self._open != kind:
            frames = self._closed()
            self._index += 1
            self._open = kind
            frames += stream.block_begun(self._index, BLOCKS[kind])
        if kind == "text":
            return frames + stream.said(self._index, text)
        self._thinking += text
        return frames + stream.thought(self._index, text)

    def _closed(self) -> bytes:
        """The end of the open block, if there is one."""
        kind, self._open = self._open, None
        if kind is None:
            return b""
        signature = stream.signed(self._index, self._thinking) if kind == "thinking" else b""
        self._thinking = ""
        return signature + stream.block_ended(self._index)

    def _gather(self, piece: JSON) -> None:
        """One piece of a call: another id under the same index begins another call."""
        if not isinstance(piece, dict):
            return
        index = piece.get("index")
        key = index if type(index) is int else max(self._calls, default=0)
        known = self._calls.get(key)
        if known is not None and piece.get("id") not in (None, "", known["id"]):
            key = max(self._calls) + 1
            known = None
        if known is None:
            known = self._calls[key] = {"id": piece.get("id"), "function": {"name": "", "arguments": ""}}
        function = piece.get("function")
        if isinstance(function, dict):
            for name in ("name", "arguments"):
                if isinstance(function.get(name), str):
                    known["function"][name] += function[name]
