"""Runs the application on a socket until it is told to end."""

import asyncio
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Mapping

import uvicorn

from conformance.reference.capture.app import App
from conformance.reference.capture.config import Route
from conformance.reference.store import Store

LIFELINE = "TRACKGAUGE_LIFELINE_FD"
"""Names the environment variable with a file descriptor whose end of file ends the server."""

GRACE_SECS = 5
IDLE_CLIENT_SECS = 120


class _Announced(uvicorn.Server):
    """A server that says where it listens, once it accepts connections."""

    address = ""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        sys.stdout.write(f"listening on {self.address}\n")
        sys.stdout.flush()


def bound(host: str, port: int) -> socket.socket:
    """A socket on the address; raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    return listener


def serve(listener: socket.socket, routes: Mapping[str, Route], store: Store | None) -> None:
    """Serve until SIGTERM, SIGINT or the end of the lifeline."""
    logging.basicConfig(level=logging.INFO, format="trackgauge proxy: %(levelname)s %(message)s", stream=sys.stderr)
    for signum in (signal.SIGTERM, signal.SIGINT):
        # The server raises the signal again when it has ended; this keeps the exit status at 0.
        signal.signal(signum, lambda *_: None)
    _allow_many_connections()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(serve_on(listener, routes, store))


async def serve_on(listener: socket.socket, routes: Mapping[str, Route], store: Store | None) -> None:
    """Serve on the running event loop until a signal or the lifeline ends it."""
    app = App(routes, store)
    config = uvicorn.Config(
        app,
        interface="asgi3",
        lifespan="off",
        ws="none",
        http="httptools",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_CLIENT_SECS,
        timeout_graceful_shutdown=GRACE_SECS,
        backlog=2048,
    )
    server = _Announced(config)
    host, port = listener.getsockname()[:2]
    server.address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    _hold_lifeline(server)
    try:
        await server.serve(sockets=[listener])
    finally:
        await app.close()


def _allow_many_connections() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _hold_lifeline(server: uvicorn.Server) -> None:
    number = os.environ.get(LIFELINE, "")
    if not number.isdecimal():
        return
    loop = asyncio.get_running_loop()
    lifeline = int(number)

    def pulled() -> None:
        try:
            ended = os.read(lifeline, 1024) == b""
        except OSError:
            ended = True
        if ended:
            loop.remove_reader(lifeline)
            server.should_exit = True

    try:
        loop.add_reader(lifeline, pulled)
    except OSError:
        logging.getLogger(__name__).warning("%s names no open file; there is no lifeline", LIFELINE)


def _loop_factory() -> "type[asyncio.AbstractEventLoop] | None":
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.Loop
