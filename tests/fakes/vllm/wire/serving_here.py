"""A fake served on a real socket from a thread of this process, and a raw client."""

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from fakes.vllm.app import FakeVllm
from fakes.vllm.calls import World
from fakes.vllm.server import Server, bound_socket


@dataclass(frozen=True)
class Reply:
    """What came back, the body undecoded."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)

    def chunks(self) -> list[Any]:
        """The JSON of each data event, the end marker left out."""
        return [json.loads(line) for line in self.events() if line != "[DONE]"]

    def events(self) -> list[str]:
        return [part.removeprefix("data: ") for part in self.text.split("\n\n") if part]


def call(
    url: str, method: str, path: str, body: bytes | object | None = None, headers: dict[str, str] | None = None
) -> Reply:
    """One request to any server, on a connection of its own."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=300)
    raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    try:
        connection.request(method, path, raw, {"content-type": "application/json"} | (headers or {}))
        response = connection.getresponse()
        return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
    finally:
        connection.close()


@dataclass(frozen=True)
class Served:
    """A running fake: its address, and its world for tests that look inside."""

    url: str
    world: World

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or 0

    def call(
        self, method: str, path: str, body: bytes | object | None = None, headers: dict[str, str] | None = None
    ) -> Reply:
        """One request on a connection of its own."""
        return call(self.url, method, path, body, headers)

    def chat(self, body: dict[str, Any], tenant: str | None = None) -> Reply:
        prefix = f"/t/{tenant}" if tenant else ""
        return self.call("POST", f"{prefix}/v1/chat/completions", body)

    def put(self, path: str, body: object) -> None:
        reply = self.call("PUT", path, body)
        assert reply.status == 200, reply.text

    def rows(self, query: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.call("GET", f"/_fake/ledger?{query}").json()["rows"]
        return found

    def wait(self, query: str) -> Reply:
        return self.call("GET", f"/_fake/wait?{query}")

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=20)


@contextmanager
def serving(world: World) -> Iterator[Served]:
    """Serve a world for the time of a ``with`` block."""
    ready = threading.Event()
    lines: list[str] = []

    def announce(line: str) -> None:
        lines.append(line)
        ready.set()

    server = Server(FakeVllm(world), bound_socket("127.0.0.1", 0), announce)

    def run() -> None:
        with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
            runner.run(server.serve_here())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(20), "the fake did not start"
    try:
        yield Served(lines[0].removeprefix("listening on "), world)
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()
