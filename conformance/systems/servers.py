"""Bringing a server up: started, its address known, ready to take calls, or one clear error."""

import http.client
import re
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from conformance.systems import guard
from conformance.systems.calls import SystemFailed
from conformance.systems.profile import Address, Setup

LOOPBACK = "127.0.0.1"
POLL_SECONDS = 0.005
ANNOUNCEMENT = re.compile(r"^.*\blistening on (http://[^\s/]+)/?\s*$", re.MULTILINE)


class SystemNotStarted(SystemFailed):
    """Raised when a system does not come up. The first line says what; the end of its log follows."""

    def __init__(self, name: str, why: str, tail: str = "") -> None:
        self.why = f"{name} did not start: {why}"
        self.tail = tail
        super().__init__("\n  | ".join([self.why, *tail.splitlines()]))


class EndedEarly(SystemNotStarted):
    """Raised when it ended by itself before it was ready. ``output`` is all it wrote."""

    def __init__(self, name: str, started: guard.Started, exit_code: int) -> None:
        self.exit_code = exit_code
        self.output = started.output()
        super().__init__(name, f"it ended with exit code {exit_code} before it was ready", started.tail())


class NotReady(SystemNotStarted):
    """Raised when it runs but was not ready in time."""


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """A command that listens, with ``{port}`` for the port, and announces its URL if its address is not given.

    Port 0 stands for any. ``log`` is what it writes; a later start writes into a file of its own beside it.
    """

    name: str
    command: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    log: Path
    address: Address = "announced"
    port: int = 0
    ready: str = "tcp"
    deadline_seconds: float = 30.0
    grace_seconds: float = guard.GRACE_SECONDS
    setup: tuple[Setup, ...] = ()


def hold_port(port: int = 0) -> socket.socket:
    """A socket bound to a loopback port (a free one for 0), not listening: connections to it are refused.

    While it is held nobody else is dealt the port; a server that sets SO_REUSEADDR, as servers do, can bind it.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind((LOOPBACK, port))
    return held


def port_of(held: socket.socket) -> int:
    number = held.getsockname()[1]
    assert isinstance(number, int)
    return number


class Server:
    """A server that may be ended and started again at the same address. Its methods block."""

    def __init__(self, plan: ServerCommand, role: guard.Role = "server") -> None:
        """Raises :class:`SystemNotStarted`."""
        self._plan = plan
        self._role: guard.Role = role
        self._starts = 0
        self.told_to_end = False
        self._held = hold_port(plan.port) if plan.address == "given" else None
        self._port = plan.port if self._held is None else port_of(self._held)
        self.started = self._start()

    @property
    def url(self) -> str:
        return self.started.url or ""

    def stop(self) -> int:
        """TERM, grace, KILL. The port is kept for a later start. Returns the exit code."""
        return self._keeping_port(self.started.stop)

    def kill(self) -> int:
        return self._keeping_port(self.started.kill)

    def restart(self) -> None:
        """Raises :class:`SystemNotStarted`."""
        self.stop()
        self.started = self._start()

    def close(self) -> int:
        """Ends it for good. Returns the exit code."""
        self.told_to_end = True
        code = self.started.stop()
        self._release()
        return code

    def _start(self) -> guard.Started:
        log = self._plan.log
        if self._starts:
            log = log.with_stem(f"{log.stem}-{self._starts}")
        self._starts += 1
        self.told_to_end = False
        try:
            started = start_server(replace(self._plan, port=self._port, log=log), self._role)
        finally:
            self._release()
        self._port = urlsplit(started.url).port or 0
        return started

    def send_signal(self, number: signal.Signals) -> None:
        """To the process alone; KILL goes to all its descendants too."""
        self.told_to_end = self.told_to_end or number not in (signal.SIGSTOP, signal.SIGCONT)
        self.started.send_signal(number)

    def _keeping_port(self, end: Callable[[], int]) -> int:
        self.told_to_end = True
        code = end()
        if self._held is None:
            self._held = hold_port(self._port)
        return code

    def _release(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None


def start_server(server: ServerCommand, role: guard.Role = "server") -> guard.Started:
    """Blocks until it is ready. Raises :class:`SystemNotStarted`, and then leaves no process behind."""
    deadline = time.monotonic() + server.deadline_seconds
    command = [word.replace("{port}", str(server.port)) for word in server.command]
    try:
        started = guard.start(
            command, log=server.log, env=server.env, cwd=server.cwd, role=role, grace=server.grace_seconds
        )
    except guard.CannotRun as error:
        raise SystemNotStarted(server.name, str(error)) from None
    try:
        url = _address(server, started, deadline)
        while not _is_ready(url, server.ready):
            _wait_a_little(server, started, deadline, f"is not ready ({server.ready}) at {url}")
        for request in server.setup:
            _set_up(server, started, url, request)
    except BaseException:
        started.stop()
        raise
    started.url = url
    return started


def accepts(url: str) -> bool:
    """Whether somebody takes connections there."""
    address = urlsplit(url)
    try:
        socket.create_connection((address.hostname or LOOPBACK, address.port or 80), timeout=1).close()
    except OSError:
        return False
    return True


def answers(url: str, path: str = "/health") -> bool:
    """Whether a call is answered there, no matter how. ``path`` is one that costs the server nothing."""
    return ask(url, "GET", path, "") != 0


def _address(server: ServerCommand, started: guard.Started, deadline: float) -> str:
    if server.address == "given":
        return f"http://{LOOPBACK}:{server.port}"
    while True:
        found = ANNOUNCEMENT.search(started.output())
        if found:
            return found[1]
        _wait_a_little(server, started, deadline, "has not written 'listening on http://HOST:PORT'")


def _wait_a_little(server: ServerCommand, started: guard.Started, deadline: float, lacking: str) -> None:
    code = started.wait(POLL_SECONDS)
    if code is not None:
        raise EndedEarly(server.name, started, code)
    if time.monotonic() > deadline:
        raise NotReady(server.name, f"after {server.deadline_seconds:g} s it {lacking}", started.tail())


def _is_ready(url: str, ready: str) -> bool:
    return accepts(url) if ready == "tcp" else 200 <= ask(url, "GET", ready, "") < 400


def _set_up(server: ServerCommand, started: guard.Started, url: str, request: Setup) -> None:
    status = ask(url, request.method, request.path, request.json)
    if not 200 <= status < 300:
        seen = status or "nothing"
        raise NotReady(
            server.name, f"its set-up call {request.method} {request.path}: expected 2xx, seen {seen}", started.tail()
        )


def ask(url: str, method: str, path: str, body: str) -> int:
    """The status of the answer to one call; 0 if none came. Blocks."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        headers = {"Content-Type": "application/json"} if body else {}
        connection.request(method, path, body.encode() or None, headers)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()
