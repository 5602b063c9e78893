"""The client's side of one HTTP exchange, over ASGI."""

import asyncio
import re
from collections.abc import Awaitable, Callable, MutableMapping
from operator import attrgetter
from typing import Any

from conformance.reference.capture import jsontext
from conformance.reference.capture.errors import Refusal
from conformance.reference.capture.jsontext import JSON, JSONObject

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

JSON_TYPE = b"application/json"
NOTICE_TURNS = 3
EVENTS_TYPE = b"text/event-stream; charset=utf-8"


_UNSENDABLE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


def header_value(told: str) -> bytes:
    """A header value of an engine as one that may be sent on: control characters become blanks."""
    return _UNSENDABLE.sub(b" ", told.encode("latin-1", "replace"))


class ClientLeft(Exception):
    """Raised when the client went away before its request was complete."""


class Client:
    """Reads one request and writes one response, and notices when the client leaves.

    ``error_body`` gives errors the form of the client's dialect.
    """

    def __init__(self, scope: Message, receive: Receive, send: Send) -> None:
        self.method: str = scope["method"]
        self.raw_path: bytes = scope["raw_path"]
        self.headers: list[tuple[bytes, bytes]] = scope["headers"]
        self.started = False
        self.error_body: Callable[[Refusal], JSONObject] = attrgetter("body")
        self._receive = receive
        self._send = send
        self._leaving: asyncio.Task[None] | None = None

    async def body(self) -> bytes:
        """The whole request body; raises ClientLeft."""
        parts = []
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientLeft
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                return b"".join(parts)

    @property
    def leaving(self) -> asyncio.Task[None]:
        """A task that ends when the client goes away. Only after the body was read."""
        if self._leaving is None:
            self._leaving = asyncio.create_task(self._until_gone())
        return self._leaving

    @property
    def gone(self) -> bool:
        """Whether the client is known to have left."""
        return self._leaving is not None and self._leaving.done()

    async def stayed(self) -> bool:
        """Whether the client is still there once nearly all that was sent has left for it.

        An empty part waits until the socket takes more; the turns of the event loop are for the news of a closed
        connection to arrive.
        """
        await self.part(b"")
        for _ in range(NOTICE_TURNS):
            await asyncio.sleep(0)
        return not self.gone

    def release(self) -> None:
        """Stop watching."""
        if self._leaving is not None:
            self._leaving.cancel()

    async def start(self, status: int, content_type: bytes, extra: list[tuple[bytes, bytes]] | None = None) -> None:
        """Send status and headers."""
        self.started = True
        headers = [(b"content-type", content_type), *(extra or [])]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def part(self, data: bytes) -> None:
        """Send some of the body."""
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def finish(self) -> None:
        """End the body. A response that is never finished reaches the client as cut."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def whole(self, status: int, data: bytes, extra: list[tuple[bytes, bytes]] | None = None) -> None:
        """Send a complete JSON response."""
        await self.start(status, JSON_TYPE, [(b"content-length", str(len(data)).encode()), *(extra or [])])
        await self.part(data)
        await self.finish()

    async def json(self, status: int, value: JSON) -> None:
        """Send a small JSON value."""
        await self.whole(status, jsontext.write(value))

    async def refuse(self, refusal: Refusal) -> None:
        """Send an error as a response of its own."""
        extra: list[tuple[bytes, bytes]] = []
        if refusal.retry_after is not None:
            extra.append((b"retry-after", header_value(refusal.retry_after)))
        await self.whole(refusal.status, jsontext.write(self.error_body(refusal)), extra)

    async def _until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
