"""A client made of a socket: the bytes of an answer as they came."""

import json
import socket
from dataclasses import dataclass
from typing import Any

import pytest

from tests.fakes.vllm.wire.conftest import Script

both_ways = pytest.mark.parametrize("stream", [False, True], ids=["buffered", "streamed"])


@dataclass(frozen=True)
class Raw:
    """What came over the socket until it closed; ``sizes`` are the sizes of the HTTP chunks."""

    head: bytes
    body: bytes
    sizes: tuple[int, ...] = ()

    @property
    def status(self) -> int:
        return int(self.head.split()[1]) if self.head else 0

    def json(self) -> Any:
        return json.loads(self.body)

    def events(self) -> list[str]:
        return [e for e in self.body.decode("utf-8", "surrogatepass").split("\n\n") if e]

    def chunks(self) -> list[Any]:
        return [json.loads(e[6:]) for e in self.events() if e.startswith("data: ") and e != "data: [DONE]"]

    def choices(self) -> list[Any]:
        bodies = self.chunks() if self.body.startswith((b"data: ", b":")) else [self.json()]
        return [choice for body in bodies for choice in body["choices"]]

    def ids(self) -> list[Any]:
        return [token for choice in self.choices() for token in choice.get("token_ids") or []]

    def entries(self) -> list[Any]:
        return [e for choice in self.choices() for e in (choice.get("logprobs") or {}).get("content", [])]

    def usage(self) -> Any:
        bodies = self.chunks() if self.body.startswith(b"data: ") else [self.json()]
        return next((body["usage"] for body in bodies if "usage" in body), None)


def raw_call(script: Script, *, keep_alive: bool = False, **extra: Any) -> Raw:
    """A request by hand; the body is unchunked but otherwise as it came."""
    with script.served.connect() as sock:
        sock.sendall(request_bytes(script, keep_alive=keep_alive, **extra))
        received = until_closed(sock)
    head_bytes, _, rest = received.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" not in head_bytes.lower():
        return Raw(head_bytes, rest)
    pieces = _chunks(rest)
    return Raw(head_bytes, b"".join(pieces), tuple(map(len, pieces)))


def request_bytes(script: Script, *, keep_alive: bool = False, **extra: Any) -> bytes:
    body = json.dumps(script.request(**extra)).encode()
    head = f"POST {script.path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    head += "" if keep_alive else "Connection: close\r\n"
    return head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


def until_closed(sock: socket.socket) -> bytes:
    parts = []
    while part := sock.recv(65536):
        parts.append(part)
    return b"".join(parts)


def _chunks(rest: bytes) -> list[bytes]:
    pieces = []
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        pieces.append(rest[:length])
        rest = rest[length + 2 :]
    return [piece for piece in pieces if piece]
