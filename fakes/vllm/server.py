"""uvicorn as the fake needs it: headers in wire order, the socket of each request, and what came before on it."""

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LIFELINE = "TRACKGAUGE_LIFELINE_FD"


class WireProtocol(HttpToolsProtocol):
    """Shows the application each header as it was spelled, the transport, so that a fault can cut it, how many
    requests came before on this connection, and the way to close all idle ones."""

    _requests = 0

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._spelled: list[tuple[bytes, bytes]] = []
        extensions: dict[str, Any] = {
            "trackgauge.headers": self._spelled,
            "trackgauge.transport": self.transport,
            "trackgauge.earlier": self._requests,
            "trackgauge.close_idle": self._close_idle,
        }
        self.scope["extensions"] = extensions
        self._requests += 1

    async def _close_idle(self) -> int:
        """Close every connection that waits for a request, as an engine does in time; returns how many."""
        idle = {one for one in self.connections if isinstance(one, WireProtocol) and one._is_idle}
        for connection in idle:
            connection.transport.close()
        while idle & self.connections:  # noqa: ASYNC110 - nothing else tells that a transport is closed
            await asyncio.sleep(0)
        return len(idle)

    @property
    def _is_idle(self) -> bool:
        return self.cycle is not None and self.cycle.response_complete

    def on_header(self, name: bytes, value: bytes) -> None:
        self._spelled.append((name, value))
        super().on_header(name, value)


def bound_socket(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises ``OSError``."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(2048)
    except OSError:
        sock.close()
        raise
    sock.setblocking(False)
    return sock


def address_of(sock: socket.socket) -> str:
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Server(uvicorn.Server):
    """Serves one application on one socket and says so on stdout when it accepts connections."""

    def __init__(self, app: ASGIApp, sock: socket.socket, announce: Callable[[str], None]) -> None:
        config = uvicorn.Config(
            app,
            http=WireProtocol,
            ws="none",
            lifespan="off",
            log_level="error",
            access_log=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=0,
        )
        super().__init__(config)
        self._sock = sock
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.should_exit:
            self._watch_lifeline()
            self._announce(f"listening on {address_of(self._sock)}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Calls under way are cut, as is meant here, and uvicorn would tell as an error."""
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        await super().shutdown(sockets)

    def _watch_lifeline(self) -> None:
        """End when the pipe that the parent holds reaches end of file."""
        number = os.environ.get(LIFELINE, "")
        if not number.isdigit():
            return
        fd = int(number)
        loop = asyncio.get_running_loop()

        def readable() -> None:
            if not os.read(fd, 4096):
                loop.remove_reader(fd)
                self.should_exit = True

        loop.add_reader(fd, readable)

    async def serve_here(self) -> None:
        """Serve until told to end, leaving signals alone."""
        await self._serve([self._sock])

    def run_here(self) -> int:
        """Serve until told to end; 0 after an orderly end, whichever signal asked for it."""
        ignored = (signal.SIGTERM, signal.SIGINT)
        before = [signal.signal(number, lambda *_: None) for number in ignored]
        try:
            self.run(sockets=[self._sock])
        finally:
            for number, handler in zip(ignored, before, strict=True):
                signal.signal(number, handler)
        return 0


def announce_on_stdout(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
