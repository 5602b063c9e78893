"""Clients that keep one call each under way, in a process of its own and with as little work a call as can be.

Run as ``python -m ci.benches.parts.load``: a :class:`Plan` as JSON on stdin, an :class:`Outcome` as JSON on stdout.
"""

import asyncio
import json
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import cast

ROOT = Path(__file__).parents[3]
SLACK_SECONDS = 60.0
"""For calls that are under way when the time is over."""

LAST_CHUNK = b"0\r\n\r\n"


@dataclass(frozen=True)
class Plan:
    """What to send where. ``{session}`` in ``head`` becomes an id, a new one a client every ``session_calls`` calls.

    ``head`` is the request line and all headers but ``content-length``. Clients begin no call once ``seconds`` are
    over or ``most_calls`` have begun.
    """

    host: str
    port: int
    head: str
    body: str
    clients: int
    seconds: float
    most_calls: int = 1_000_000
    session_calls: int = 16
    name: str = "s"


@dataclass
class Outcome:
    """``taken`` are milliseconds of the calls answered with 200, ``wall`` the seconds from the first to the last."""

    taken: list[float] = field(default_factory=list)
    wall: float = 0.0
    failed: int = 0
    first_failure: str = ""


def run(plan: Plan) -> Outcome:
    """In a process of its own; blocks. Raises CalledProcessError, or TimeoutExpired if a call is never answered."""
    command = [sys.executable, "-m", "ci.benches.parts.load"]
    done = subprocess.run(
        command,
        input=json.dumps(asdict(plan)),
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        check=True,
        timeout=plan.seconds + SLACK_SECONDS,
    )
    return Outcome(**json.loads(done.stdout))


class _Client(asyncio.Protocol):
    """One connection; sends the next request as soon as an answer is whole."""

    def __init__(self, load: "_Load", number: int) -> None:
        self.load = load
        self.number = number
        self.calls = 0
        self.done = False
        self.began = 0.0
        self.received = bytearray()
        self.awaited = -1
        """Bytes of the whole answer; -1 while the head is not there, 0 for a chunked one."""
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.ask()

    def ask(self) -> None:
        if not self.load.may_begin():
            self.done = True
            self.transport.close()
            self.load.ended()
            return
        self.received.clear()
        self.awaited = -1
        request = self.load.request(self.number, self.calls)
        self.calls += 1
        self.began = time.perf_counter()
        self.transport.writelines(request)

    def data_received(self, data: bytes) -> None:
        received = self.received
        received += data
        if self.awaited < 0:
            border = received.find(b"\r\n\r\n")
            if border < 0:
                return
            _, found, rest = bytes(received[:border]).lower().partition(b"content-length:")
            self.awaited = border + 4 + int(rest.split(b"\r\n", 1)[0]) if found else 0
        if len(received) >= self.awaited if self.awaited else received.endswith(LAST_CHUNK):
            self.load.answered(bytes(received[:400]), self.began)
            self.ask()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done:
            self.done = True
            self.load.broken(f"the connection was closed under a call: {error}")


class _Load:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.outcome = Outcome()
        self.body = plan.body.encode()
        self.head = f"{plan.head}\r\ncontent-length: {len(self.body)}\r\n\r\n"
        self.left = plan.most_calls
        self.running = plan.clients
        self.began = time.perf_counter()
        self.last = self.began
        self.over = asyncio.get_running_loop().create_future()

    def may_begin(self) -> bool:
        self.left -= 1
        return self.left >= 0 and time.perf_counter() - self.began < self.plan.seconds

    def request(self, client: int, call: int) -> list[bytes]:
        session = f"{self.plan.name}-{client}-{call // self.plan.session_calls}"
        return [self.head.replace("{session}", session).encode(), self.body]

    def answered(self, start: bytes, began: float) -> None:
        self.last = time.perf_counter()
        if start.startswith(b"HTTP/1.1 200 "):
            self.outcome.taken.append((self.last - began) * 1e3)
        else:
            self.failed(start.decode("latin-1"))

    def failed(self, what: str) -> None:
        self.outcome.failed += 1
        self.outcome.first_failure = self.outcome.first_failure or what

    def broken(self, what: str) -> None:
        self.failed(what)
        self.ended()

    def ended(self) -> None:
        self.running -= 1
        if self.running == 0 and not self.over.done():
            self.over.set_result(None)


async def _load(plan: Plan) -> Outcome:
    load = _Load(plan)
    loop = asyncio.get_running_loop()
    for number in range(plan.clients):
        await loop.create_connection(lambda number=number: _Client(load, number), plan.host, plan.port)  # type: ignore[misc]
    await load.over
    load.outcome.wall = load.last - load.began
    return load.outcome


def main() -> int:
    import uvloop

    plan = Plan(**json.load(sys.stdin))
    sys.stdout.write(json.dumps(asdict(uvloop.run(_load(plan)))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
