"""HTTP/1.1 with hand-written request heads, in the imitated client's names, case and order; h11 reads the answers."""

import asyncio
import contextlib
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import h11

from fakes.harnesses.conversation import Outcome
from fakes.harnesses.exchanges import Ended, Headers, Received, received, sent
from fakes.harnesses.sse import Event, EventReader

HOST = "{host}"
LENGTH = "{length}"
"""Header values that the wire fills in: the address, and the length of the body."""

_READ = 1 << 16


class Watch:
    """An eye on one request while it is under way, and the way to leave it early.

    ``after_bytes`` and ``after_events`` leave by themselves once so many body bytes or stream events have come.
    """

    def __init__(self, *, after_bytes: int | None = None, after_events: int | None = None) -> None:
        self.after_bytes = after_bytes
        self.after_events = after_events
        self.status: int | None = None
        self.events: list[Event] = []
        self.left = False
        self._bytes = 0
        self._reader: EventReader | None = None
        self._over = False
        self._close: Callable[[], None] | None = None
        self._moved = asyncio.Event()

    def leave(self) -> None:
        """Close the connection now; the exchange ends as ``abandoned``, unless it was over before."""
        self.left = True
        if self._close is not None:
            self._close()

    async def until_sent(self) -> None:
        """Return when the request is on its way, or the exchange is over."""
        await self._until(lambda: self._close is not None)

    async def until_head(self) -> int | None:
        """Return the status as soon as the response head is here; None if the exchange ended without one."""
        await self._until(lambda: self.status is not None)
        return self.status

    async def until_bytes(self, count: int) -> int:
        """Return how many body bytes are here as soon as there are ``count``, or fewer if the exchange is over."""
        await self._until(lambda: self._bytes >= count)
        return self._bytes

    async def until_events(self, count: int) -> list[Event]:
        """Return when ``count`` stream events are here, or fewer if the exchange is over."""
        await self._until(lambda: len(self.events) >= count)
        return self.events

    async def until_over(self) -> None:
        """Return when the exchange is over, however it ended."""
        await self._until(lambda: False)

    async def _until(self, here: Callable[[], bool]) -> None:
        while not here() and not self._over:
            self._moved.clear()
            await self._moved.wait()

    def is_sent(self, close: Callable[[], None]) -> None:
        self._close = close
        if self.left:
            close()
        self._moved.set()

    def has_head(self, status: int, *, stream: bool) -> None:
        self.status = status
        self._reader = EventReader() if stream else None
        self._moved.set()

    def has_data(self, chunk: bytes) -> None:
        self._bytes += len(chunk)
        if self._reader is not None:
            self.events += self._reader.feed(chunk)
        self._moved.set()
        enough_bytes = self.after_bytes is not None and self._bytes >= self.after_bytes
        enough_events = self.after_events is not None and len(self.events) >= self.after_events
        if enough_bytes or enough_events:
            self.leave()

    def is_over(self) -> None:
        self._close = None
        self._over = True
        self._moved.set()


@dataclass
class _Answer:
    """An answer as far as it has come."""

    status: int | None = None
    headers: Headers = ()
    body: bytearray = field(default_factory=bytearray)

    @property
    def is_stream(self) -> bool:
        return any(n.lower() == "content-type" and v.startswith("text/event-stream") for n, v in self.headers)


@dataclass(eq=False)
class _Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    state: h11.Connection = field(default_factory=lambda: h11.Connection(h11.CLIENT))

    @property
    def usable(self) -> bool:
        return not self.reader.at_eof() and not self.writer.is_closing()

    async def next_event(self, read_timeout: float) -> object:
        while True:
            event = self.state.next_event()
            if event is not h11.NEED_DATA:
                return event
            async with asyncio.timeout(read_timeout):
                self.state.receive_data(await self.reader.read(_READ))

    def ready_again(self) -> bool:
        """Whether another request may follow on this connection."""
        if self.state.our_state is h11.DONE and self.state.their_state is h11.DONE:
            self.state.start_next_cycle()
            return True
        return False


class Wire:
    """The connections of one client to ``base_url`` (``http://host:port``, with or without a path in front).

    Nothing here hangs: ``connect_timeout`` and ``read_timeout`` (silence) are the client's own, ``deadline`` bounds one
    exchange as a whole; all in real seconds, already scaled. With ``keep_alive`` a connection is used again when both
    sides allow it.
    """

    def __init__(
        self,
        base_url: str,
        *,
        keep_alive: bool = True,
        connect_timeout: float = 5.0,
        read_timeout: float = 60.0,
        deadline: float = 120.0,
    ) -> None:
        parts = urlsplit(base_url)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(f"base_url {base_url!r}: expected http://host:port, with or without a path")
        self._address = (parts.hostname, parts.port or 80)
        self._host = parts.netloc
        self._prefix = parts.path.rstrip("/")
        self._keep_alive = keep_alive
        self._connect_timeout = connect_timeout
        self._read_timeout = read_timeout
        self._deadline = deadline
        self._idle: list[_Connection] = []

    async def send(
        self, method: str, path: str, headers: Sequence[tuple[str, str]], body: bytes, watch: Watch | None = None
    ) -> Outcome:
        """Send one request and read what comes; never raises for what the other side does."""
        target = self._prefix + path
        fill = {HOST: self._host, LENGTH: str(len(body))}
        filled = [(name, fill.get(value, value)) for name, value in headers]
        told = sent(method, target, filled, body)
        watch = watch or Watch()
        answer = _Answer()
        connection: _Connection | None = None
        ended: Ended = "complete"
        error: str | None = None
        try:
            async with asyncio.timeout(self._deadline):
                try:
                    connection = await self._connect()
                except (OSError, TimeoutError) as failure:
                    return Outcome(told, None, "refused", _name(failure))
                _start(connection, told.method, target, filled, body)
                watch.is_sent(connection.writer.transport.abort)
                await self._read(connection, answer, watch)
        except TimeoutError as failure:
            ended, error = "timeout", _name(failure)
        except (OSError, h11.RemoteProtocolError) as failure:
            ended, error = ("abandoned", None) if watch.left else ("cut", _name(failure))
        finally:
            watch.is_over()
            self._put_back(connection, keep=ended == "complete")
        return Outcome(told, _told(answer), ended, error)

    async def _connect(self) -> _Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
            connection.writer.close()
        async with asyncio.timeout(self._connect_timeout):
            return _Connection(*await asyncio.open_connection(*self._address))

    async def _read(self, connection: _Connection, answer: _Answer, watch: Watch) -> None:
        while True:
            event = await connection.next_event(self._read_timeout)
            if watch.left:
                raise ConnectionAbortedError
            if isinstance(event, h11.Response):
                answer.status = event.status_code
                answer.headers = tuple((n.decode("latin-1"), v.decode("latin-1")) for n, v in event.headers.raw_items())
                watch.has_head(event.status_code, stream=answer.is_stream)
            elif isinstance(event, h11.Data):
                answer.body += event.data
                watch.has_data(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                return
            elif isinstance(event, h11.ConnectionClosed):
                raise h11.RemoteProtocolError("the connection was closed before an answer")

    def _put_back(self, connection: _Connection | None, *, keep: bool) -> None:
        if connection is None:
            return
        if keep and self._keep_alive and connection.usable and connection.ready_again():
            self._idle.append(connection)
        else:
            connection.writer.close()

    async def close(self) -> None:
        """Close the idle connections."""
        for connection in self._idle:
            connection.writer.close()
        self._idle.clear()

    async def __aenter__(self) -> "Wire":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _start(connection: _Connection, method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes) -> None:
    """Write the request ourselves; h11 is told of a plain twin of it, only so that it can read the answer."""
    closing = [("connection", value) for name, value in headers if name.lower() == "connection"]
    connection.state.send(h11.Request(method=method, target=target, headers=[("host", "x"), *closing]))
    connection.state.send(h11.EndOfMessage())
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers), "", ""]
    # UTF-8, as aiohttp does: an id in a header may be any text. Not drained: a server may answer before it has read
    # everything, and its answer must be read then.
    connection.writer.write("\r\n".join(lines).encode() + body)


def _told(answer: _Answer) -> Received | None:
    if answer.status is None:
        return None
    coding = next((value for name, value in answer.headers if name.lower() == "content-encoding"), "")
    body = bytes(answer.body)
    if coding in ("gzip", "deflate"):
        # 47: whichever of the two it is; a cut body gives what could be read, one in no such coding stays as it is.
        with contextlib.suppress(zlib.error):
            body = zlib.decompressobj(wbits=47).decompress(body)
    return received(answer.status, answer.headers, body)


def _name(failure: Exception) -> str:
    return f"{type(failure).__name__}: {failure}".rstrip(": ")
