"""Trees of sessions built by hand, and a proxy's pages that hand them out."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any
from urllib.parse import quote

from conformance.scenarios.rebuild.sessions import Session

JSON = Any

_blocks = count(1)


def session(name: str, parent: str | None = None, turns: int = 2) -> Session:
    """A plain session, with ids that no other has."""
    made = Session(name, parent, first_id=next(_blocks) * 10_000)
    made.turns(turns)
    return made


def family() -> list[Session]:
    """A root, two children and a grandchild."""
    return [session("root", turns=3), session("one", "root"), session("two", "root"), session("deep", "two")]


def envelopes(sessions: Sequence[Session]) -> dict[str, JSON]:
    return {"sessions": [each.envelope() for each in sessions]}


def pages(sessions: Sequence[Session]) -> dict[str, JSON]:
    """What a capture proxy answers, by path."""
    rows = [{"session_id": each.session_id, "parent_session_id": each.parent} for each in sessions]
    found: dict[str, JSON] = {"/v1/sessions": {"schema_version": 1, "sessions": rows}}
    return found | {f"/v1/sessions/{quote(each.session_id, safe='')}/completions": each.envelope() for each in sessions}


@asynccontextmanager
async def serving(found: Mapping[str, JSON]) -> AsyncIterator[str]:
    """A server on loopback that answers these paths with JSON and all others with 404."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        path = head.split(b" ", 2)[1].decode()
        status = "200 OK" if path in found else "404 Not Found"
        body = json.dumps(found.get(path, {"detail": "unknown"})).encode()
        writer.write(f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n".encode())
        writer.write(f"content-length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
