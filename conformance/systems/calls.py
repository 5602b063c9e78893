"""One HTTP call on a connection of its own, byte for byte as asked, and its whole answer.

No session object, no pool, no redirects, no clean-up of the target: what a scenario asks is what goes out, and a call
that failed is never repeated.
"""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import h11

JSON = Any
Headers = Sequence[tuple[str, str]]

READ_BYTES = 1 << 18


class SystemFailed(Exception):
    """Raised when a system under test does not do what the rest of a scenario stands on.

    It is no violation by itself, and no fault of the suite: what is not reached is inconclusive, naming this. The
    first line says what happened.
    """


class CallFailed(SystemFailed):
    """Raised when no whole answer came: refused, closed early, not HTTP, too late. The message is one line."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Header names are in lower case."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode(errors="replace")

    def json(self) -> JSON:
        """Raises ValueError. Integers of any size and NaN come as they are."""
        return json.loads(self.body)


async def call(
    method: str,
    url: str,
    *,
    path: str = "",
    headers: Headers = (),
    json_body: JSON = None,
    seconds: float = 30.0,
) -> Answer:
    """``path`` is the target on the wire, already quoted; headers are latin-1 text. Raises :class:`CallFailed`."""
    address = urlsplit(url)
    target = (address.path + path) or "/"
    body = b"" if json_body is None else json.dumps(json_body).encode()
    head = [("Host", address.netloc), *headers, ("Content-Length", str(len(body))), ("Connection", "close")]
    if json_body is not None:
        head.append(("Content-Type", "application/json"))
    raw_head = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in head]
    where = f"{method} {target} at {address.netloc}"
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection(address.hostname, address.port)
            try:
                connection = h11.Connection(h11.CLIENT)
                writer.write(connection.send(h11.Request(method=method, target=target, headers=raw_head)) or b"")
                writer.write((connection.send(h11.Data(body)) or b"") + (connection.send(h11.EndOfMessage()) or b""))
                return await _answer(connection, reader)
            finally:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()
    except TimeoutError:
        raise CallFailed(f"{where}: no whole answer within {seconds:g} s") from None
    except (OSError, h11.ProtocolError) as error:
        raise CallFailed(f"{where}: {error or type(error).__name__}") from None


async def _answer(connection: h11.Connection, reader: asyncio.StreamReader) -> Answer:
    response: h11.Response | None = None
    parts: list[bytes] = []
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(READ_BYTES))
        elif isinstance(event, h11.Response):
            response = event
        elif isinstance(event, h11.Data):
            parts.append(bytes(event.data))
        elif isinstance(event, h11.EndOfMessage) and response is not None:
            headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers)
            return Answer(response.status_code, headers, b"".join(parts))
        elif isinstance(event, h11.ConnectionClosed):
            raise h11.RemoteProtocolError("closed before the answer")
