"""An address where nobody answers until an engine comes up behind it."""

import asyncio
import socket
from contextlib import suppress
from types import TracebackType
from urllib.parse import urlsplit

PIECE = 1 << 16


class LateEngine:
    """Refuses connections at ``url`` until ``come_up``; from then on it is the engine, byte for byte."""

    def __init__(self, engine_url: str) -> None:
        address = urlsplit(engine_url)
        self._engine = (address.hostname or "", address.port or 0)
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self._server: asyncio.Server | None = None
        self._passing: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    async def come_up(self) -> None:
        self._server = await asyncio.start_server(self._relay, sock=self._socket)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_engine, to_engine = await asyncio.open_connection(*self._engine)
        for source, sink in ((reader, to_engine), (from_engine, writer)):
            task = asyncio.create_task(_pass_on(source, sink))
            self._passing.add(task)
            task.add_done_callback(self._passing.discard)

    async def __aenter__(self) -> "LateEngine":
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        if self._server is None:
            self._socket.close()
            return
        self._server.close()
        for task in list(self._passing):
            task.cancel()
        await asyncio.gather(*self._passing, return_exceptions=True)


async def _pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        try:
            while piece := await source.read(PIECE):
                sink.write(piece)
                await sink.drain()
        finally:
            sink.close()
