"""Listens in on a real client: a relay on the loopback that passes every byte on and keeps what was said.

It stands between the client and the proxy and changes nothing. What it heard has the form of the fakes' exchanges.
"""

import asyncio
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import h11

from fakes.harnesses.exchanges import Exchange, received, sent

Pairs = list[tuple[str, str]]
_Hear = Callable[[bytes], None]
READ_BYTES = 1 << 16
START_SECONDS = 10.0


class NotHTTP(Exception):
    """Raised when a client said what is no plain HTTP/1.1 request with a content length."""


@dataclass
class _Heard:
    """One request, and its answer as far as it came."""

    n: int
    method: str
    path: str
    headers: Pairs
    body: bytes = b""
    status: int | None = None
    answer_headers: Pairs = field(default_factory=list)
    answer: bytearray = field(default_factory=bytearray)
    whole: bool = False

    def exchange(self) -> Exchange:
        asked = sent(self.method, self.path, self.headers, self.body)
        answer = None if self.status is None else received(self.status, self.answer_headers, bytes(self.answer))
        streamed = answer is not None and answer.is_stream
        return Exchange(
            n=self.n, request=asked, response=answer, ended="complete" if self.whole else "cut", streamed=streamed
        )


class _Connection:
    """Reads a copy of both directions of one connection."""

    def __init__(self, tap: "Tap") -> None:
        self._tap = tap
        self._unread = b""
        self._asked: _Heard | None = None
        self._missing = 0
        self._answers: h11.Connection | None = None
        self._open: _Heard | None = None

    def client_said(self, data: bytes) -> None:
        self._unread += data
        while self._unread:
            if self._asked is None:
                head, end, rest = self._unread.partition(b"\r\n\r\n")
                if not end:
                    return
                self._unread = rest
                self._begin(head.decode("latin-1"))
            if self._asked is not None:
                part, self._unread = self._unread[: self._missing], self._unread[self._missing :]
                self._asked.body += part
                self._missing -= len(part)
            if self._missing:
                return
            self._asked = None

    def _begin(self, head: str) -> None:
        first, *lines = head.split("\r\n")
        words = first.split(" ")
        headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        lowered = {name.lower(): value for name, value in headers}
        if len(words) != 3 or "transfer-encoding" in lowered:
            raise NotHTTP(f"expected a request with a content length, seen {first!r}")
        heard = self._tap.heard_of(words[0], words[1], headers)
        self._missing = int(lowered.get("content-length", "0"))
        self._asked = heard
        self._open = heard
        self._answers = h11.Connection(h11.CLIENT)
        self._answers.send(h11.Request(method=words[0], target=words[1], headers=[("host", "x")]))
        self._answers.send(h11.EndOfMessage())

    def server_said(self, data: bytes) -> None:
        """``b""`` for the end."""
        if self._answers is None or self._open is None or self._open.whole:
            return
        self._answers.receive_data(data)
        try:
            self._read(self._answers, self._open)
        except h11.RemoteProtocolError:
            if data:
                raise  # else the connection broke off, and the exchange is told as cut

    def _read(self, answers: h11.Connection, heard: _Heard) -> None:
        while (event := answers.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
            if isinstance(event, h11.Response):
                heard.status = event.status_code
                raw = event.headers.raw_items()
                heard.answer_headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in raw]
            elif isinstance(event, h11.Data):
                heard.answer += event.data
            elif isinstance(event, h11.EndOfMessage):
                heard.whole = True
                return
            elif isinstance(event, h11.ConnectionClosed):
                return


class Tap:
    """A relay to ``target`` (``http://host:port``), in a thread of its own. Use as a context manager.

    ``target`` None is a dead end: each connection is kept on record in ``strays`` by its first line, and closed.
    """

    def __init__(self, target: str | None) -> None:
        self._target = None if target is None else (urlsplit(target).hostname, urlsplit(target).port)
        self._heard: list[_Heard] = []
        self._faults: list[str] = []
        self.strays: list[str] = []
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="tap", daemon=True)
        self._ready = threading.Event()
        self._stop = asyncio.Event()
        self._relays: set[asyncio.Future[None]] = set()

    def exchanges(self) -> list[Exchange]:
        """What was said so far, in the order of asking. Raises :class:`NotHTTP` for what could not be read."""
        if self._faults:
            raise NotHTTP(self._faults[0])
        return [heard.exchange() for heard in self._heard]

    def heard_of(self, method: str, path: str, headers: Iterable[tuple[str, str]]) -> _Heard:
        heard = _Heard(len(self._heard), method, path, list(headers))
        self._heard.append(heard)
        return heard

    def __enter__(self) -> "Tap":
        self._thread.start()
        if not self._ready.wait(START_SECONDS):
            raise TimeoutError(f"the tap did not listen within {START_SECONDS:g} s")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _serve(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._listen())

    async def _listen(self) -> None:
        server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        await self._stop.wait()
        server.close()
        for relay in self._relays:
            relay.cancel()
        await asyncio.gather(*self._relays, return_exceptions=True)

    def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        way = self._turn_away if self._target is None else self._relay
        relay = asyncio.ensure_future(way(reader, writer))
        self._relays.add(relay)
        relay.add_done_callback(self._relays.discard)

    async def _turn_away(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.strays.append((await reader.readline()).decode("latin-1").strip())
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        except ConnectionError:
            pass
        finally:
            await _close(writer)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self._target is not None
        there: asyncio.StreamWriter | None = None
        ways: list[asyncio.Future[None]] = []
        try:
            back, there = await asyncio.open_connection(*self._target)
            connection = _Connection(self)
            ways = [
                asyncio.ensure_future(self._pass_on(reader, there, connection.client_said)),
                asyncio.ensure_future(self._pass_on(back, writer, connection.server_said)),
            ]
            # Either side that leaves ends the connection for the other, as it would without us.
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        except OSError:
            pass
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            await _close(writer)
            if there is not None:
                await _close(there)

    async def _pass_on(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, hear: _Hear) -> None:
        try:
            while data := await source.read(READ_BYTES):
                self._listen_in(hear, data)
                sink.write(data)
                await sink.drain()
        except ConnectionError:
            return
        self._listen_in(hear, b"")

    def _listen_in(self, hear: _Hear, data: bytes) -> None:
        try:
            hear(data)
        except (NotHTTP, ValueError, h11.ProtocolError) as fault:
            self._faults.append(str(fault))


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
