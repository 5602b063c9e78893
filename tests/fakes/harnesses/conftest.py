"""A scripted model server on a real socket: it keeps each request head byte for byte and answers from a list."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import orjson
import pytest

from fakes.harnesses.conversation import Conversation

RECORDINGS = Path(__file__).parents[2] / "data" / "openhands"


@dataclass(frozen=True)
class Seen:
    """A request as it arrived; header names keep their case and order."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes

    def json(self) -> Any:
        return orjson.loads(self.body)


@dataclass(frozen=True)
class Reply:
    """What the server does for one request: answer; drop the connection unanswered; cut the body; or say nothing."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json"
    how: Literal["whole", "drop", "cut", "silent", "close"] = "whole"
    chunks: tuple[bytes, ...] | None = None


@dataclass
class ScriptedServer:
    """``replies`` are used up one by one; the last repeats. ``answering`` takes their place where order is loose."""

    replies: Sequence[Reply]
    answering: Callable[[Seen], Reply] | None = None
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    left: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await self._one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            self.left.set()
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
        method, path, _ = first.split(" ")
        headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
        self.seen.append(Seen(method, path, headers, await reader.readexactly(length)))
        return await self._answer(self._reply(), reader, writer)

    def _reply(self) -> Reply:
        if self.answering is not None:
            return self.answering(self.seen[-1])
        return self.replies[min(len(self.seen), len(self.replies)) - 1]

    async def _answer(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if reply.how == "drop":
            return False
        if reply.how == "silent":
            await reader.readexactly(1)
        chunked = reply.chunks is not None
        size = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(reply.body)}"
        closing = "Connection: close\r\n" if reply.how == "close" else ""
        more = closing + "".join(f"{name}: {value}\r\n" for name, value in reply.headers)
        head = f"HTTP/1.1 {reply.status} Said\r\nContent-Type: {reply.content_type}\r\n{size}\r\n{more}\r\n"
        writer.write(head.encode())
        if reply.how == "cut" and not chunked:
            writer.write(reply.body[: len(reply.body) // 2])
            await writer.drain()
            return False
        for chunk in reply.chunks or ():
            writer.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            await writer.drain()
        if reply.how == "cut":
            return False
        writer.write(b"0\r\n\r\n" if chunked else reply.body)
        await writer.drain()
        return reply.how != "close"


Serve = Callable[..., AbstractAsyncContextManager[ScriptedServer]]


@pytest.fixture
def serve() -> Serve:
    """``async with serve(reply, …) as server``: a server that lives inside the block."""

    @asynccontextmanager
    async def serving(
        *replies: Reply, answering: Callable[[Seen], Reply] | None = None
    ) -> AsyncIterator[ScriptedServer]:
        scripted = ScriptedServer(replies, answering)
        server = await asyncio.start_server(scripted.serve, "127.0.0.1", 0)
        scripted.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server:
            yield scripted
            server.close()

    return serving


def completion(
    content: str | None = None,
    calls: Sequence[tuple[str, str, str]] = (),
    *,
    triple: tuple[list[int], list[int], list[float]] | None = None,
    **more: Any,
) -> Reply:
    """A chat completion whose message has this content and these (id, name, raw arguments) calls."""
    message: dict[str, Any] = {"role": "assistant", "content": content, **more}
    if calls:
        message["tool_calls"] = [
            {"id": id_, "type": "function", "function": {"name": name, "arguments": raw}} for id_, name, raw in calls
        ]
    if triple is not None:
        message |= dict(zip(("prompt_token_ids", "generation_token_ids", "generation_log_probs"), triple, strict=True))
    finish = "tool_calls" if calls else "stop"
    body = {"id": "chatcmpl-1", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": finish}]}
    return Reply(body=orjson.dumps(body))


def error(status: int, message: str = "it broke", **headers: str) -> Reply:
    body = {"error": {"message": message, "type": "x", "param": None, "code": status}}
    return Reply(status=status, body=orjson.dumps(body), headers=tuple(headers.items()))


def same_account(talk: Conversation, seen: list[Seen]) -> None:
    """The exchanges tell what arrived, byte for byte."""
    told = [exchange.request for exchange in talk.all_exchanges]
    assert [(one.method, one.path, list(one.headers), one.body) for one in told] == [
        (one.method, one.path, one.headers, one.body) for one in seen
    ]
