"""A wire between agents and a proxy that loses answers on its way back, and that may change what goes there."""

import asyncio
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from urllib.parse import urlsplit

MARK = b'"tools"'
"""Stands in the requests of the main loop of every agent, and in no title or summary call of opencode."""

_EVENT_END = re.compile(rb"(?<=\n\n)|(?<=\r\n\r\n)")
_FRAMING = ("connection", "keep-alive", "transfer-encoding", "content-length", "accept-encoding")


@dataclass(frozen=True)
class Loss:
    """What becomes of one answer, which the proxy has handed over in full.

    The client gets ``keeps`` events of it, or those before the first that holds ``before``. Then the connection is
    reset, or with ``clean`` ends as if that were all. With ``late`` the client is left at once, and its request goes to
    the proxy only when the wire is told to ``deliver``. With ``given_up`` both sides are left once the wire is told to
    ``give_up``, as by a client that runs out of patience.
    """

    keeps: int = 0
    before: bytes | None = None
    clean: bool = False
    late: bool = False
    given_up: bool = False

    def of(self, answer: bytes) -> bytes:
        """What the client gets of a stream."""
        events = _EVENT_END.split(answer)
        count = self.keeps
        if self.before is not None:
            count = next((n for n, event in enumerate(events) if self.before in event), len(events))
        return b"".join(events[:count])


class Wire:
    """Whole requests and answers, one a connection. The answers to the first marked requests meet the losses."""

    def __init__(
        self,
        target: str,
        losses: Iterable[Loss] = (),
        edit: Callable[[bytes], bytes] = lambda body: body,
        mark: bytes = MARK,
    ) -> None:
        """``edit`` changes the body of a request on its way; the losses are for bodies that hold ``mark``."""
        address = urlsplit(target)
        self._host, self._port = address.hostname, address.port
        self._losses = list(losses)
        self._edit, self._mark = edit, mark
        self._delivers, self._gives_up = asyncio.Event(), asyncio.Event()
        self._carrying: set[asyncio.Task[None]] = set()
        self.url = ""

    @property
    def met(self) -> bool:
        """Whether every loss came to pass."""
        return not self._losses

    async def __aenter__(self) -> "Wire":
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._carrying:
            task.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)

    async def deliver(self) -> None:
        """Let the late requests reach the proxy, and wait until it has answered them."""
        self._delivers.set()
        await asyncio.gather(*self._carrying)

    def give_up(self) -> None:
        self._gives_up.set()

    def _take(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._carry(client, to_client))
        self._carrying.add(task)
        task.add_done_callback(self._carrying.discard)
        task.add_done_callback(lambda _: to_client.close())  # one that is cancelled before it begins closes nothing

    async def _carry(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        try:
            head, body = await _message(client)
            await self._carry_message(head, body, to_client)
        except asyncio.IncompleteReadError:
            return
        finally:
            to_client.close()

    async def _carry_message(self, head: bytes, body: bytes, to_client: asyncio.StreamWriter) -> None:
        loss = self._losses.pop(0) if self._mark in body and self._losses else None
        if loss is not None and loss.late:
            to_client.transport.abort()
            await self._delivers.wait()
        if loss is not None and loss.given_up:
            to_proxy = (await self._asked(head, body))[1]
            try:
                await self._gives_up.wait()
            finally:
                to_proxy.transport.abort()
            to_client.transport.abort()
            return
        answer_head, answer = await self._ask(head, self._edit(body))
        if loss is not None and loss.late:
            return
        if loss is not None:
            answer = loss.of(answer)
        to_client.write(_reframed(answer_head, "Transfer-Encoding: chunked"))
        if not head.startswith(b"HEAD"):
            to_client.write(b"%x\r\n%s\r\n" % (len(answer), answer) if answer else b"")
            to_client.write(b"" if loss is not None and not loss.clean else b"0\r\n\r\n")
        # Only a drained buffer is sent before a reset.
        await to_client.drain()
        if loss is not None and not loss.clean:
            to_client.transport.abort()

    async def _ask(self, head: bytes, body: bytes) -> tuple[bytes, bytes]:
        """The head and the decoded body of the proxy's answer."""
        proxy, to_proxy = await self._asked(head, body)
        try:
            answer = await proxy.read(-1)
        finally:
            to_proxy.close()
        answer_head, _, rest = answer.partition(b"\r\n\r\n")
        is_chunked = b"transfer-encoding: chunked" in answer_head.lower()
        return answer_head + b"\r\n\r\n", _unchunked(rest) if is_chunked else rest

    async def _asked(self, head: bytes, body: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        proxy, to_proxy = await asyncio.open_connection(self._host, self._port)
        to_proxy.write(_reframed(head, f"Content-Length: {len(body)}") + body)
        return proxy, to_proxy


async def _message(client: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await client.readuntil(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    return head, await client.readexactly(int(length[1])) if length else b""


def _reframed(head: bytes, framing: str) -> bytes:
    """The head for a message of another length on a connection of its own, uncompressed."""
    lines = head.decode("latin-1").strip().split("\r\n")
    kept = [line for line in lines if line.partition(":")[0].lower() not in _FRAMING]
    return "\r\n".join([*kept, "Connection: close", framing, "", ""]).encode("latin-1")


def _unchunked(body: bytes) -> bytes:
    pieces: list[bytes] = []
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size.partition(b";")[0], 16)
        pieces.append(body[:length])
        body = body[length + 2 :] if length else b""
    return b"".join(pieces)
