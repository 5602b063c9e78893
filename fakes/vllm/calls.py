"""One HTTP call: its tenant, its ledger row, its client, and the socket it is answered on."""

import asyncio
import base64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import tiktoken
from starlette.types import Receive, Scope, Send

from fakes.vllm.answers import Identity, identity
from fakes.vllm.checks import read_json
from fakes.vllm.detokenize import Detokenizer, detokenizer
from fakes.vllm.errors import Refusal
from fakes.vllm.gates import Gates
from fakes.vllm.jsontext import json_bytes
from fakes.vllm.ledger import Ledger, ReceivedRequest, Row, State
from fakes.vllm.profiles import Profile, profile
from fakes.vllm.sample import Engine
from fakes.vllm.tenants import Tenant, Tenants

JSON = "application/json"
EVENTS = "text/event-stream; charset=utf-8"


@dataclass(frozen=True, slots=True)
class World:
    """Everything the endpoints share."""

    tenants: Tenants
    ledger: Ledger
    gates: Gates
    engine: Engine
    encoding: tiktoken.Encoding
    default_profile: str

    @property
    def words(self) -> Detokenizer:
        return detokenizer(self.encoding)


class ClientLeft(Exception):
    """Raised when the client closed the connection before its answer was complete."""


class Call:
    """A request being answered."""

    def __init__(self, world: World, tenant: Tenant, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        self.world = world
        self.tenant = tenant
        self.path = path
        self.profile: Profile = profile(tenant.config.profile or world.default_profile)
        self.scope = scope
        self.row: Row | None = None
        self._receive = receive
        self._send = send
        self._watch: asyncio.Task[None] | None = None

    @property
    def method(self) -> str:
        return str(self.scope["method"])

    def header(self, name: bytes) -> str | None:
        """The first header of that lower-case name."""
        for key, value in self.scope["headers"]:
            if key == name:
                return bytes(value).decode("latin-1")
        return None

    async def read(self) -> bytes:
        """The whole body; raises ``ClientLeft``."""
        message = await self._receive()
        body: bytes = message.get("body", b"")
        if message["type"] == "http.request" and not message.get("more_body"):
            return body
        parts = [body]
        while message["type"] == "http.request" and message.get("more_body"):
            message = await self._receive()
            parts.append(message.get("body", b""))
        if message["type"] != "http.request":
            raise ClientLeft
        return b"".join(parts)

    def open_row(self, endpoint: str, body: bytes) -> Row:
        """Enter the call into the ledger, as received."""
        self.row = self.world.ledger.open(
            tenant=self.tenant.name,
            profile=self.profile.name,
            endpoint=endpoint,
            request=self._received(body),
            earlier_on_connection=self.scope.get("extensions", {}).get("trackgauge.earlier", 0),
        )
        return self.row

    async def received(self, endpoint: str) -> Any:
        """Read the body, enter the call into the ledger, and give the body as JSON.

        Raises ``ClientLeft``, and a ``Refusal`` for what is no JSON.
        """
        body = await self.read()
        self.open_row(endpoint, body)
        return read_json(self.header(b"content-type") or "", body)

    def identity(self, prefix: str, asked: str | None, model: str) -> Identity:
        """The names of the answer; a header wins over the id that the body asks for."""
        return identity(prefix, self.header(b"x-request-id") or asked, model, self.profile)

    def note(self, **fields: Any) -> None:
        """Change the call's ledger row."""
        if self.row is not None:
            self.world.ledger.change(self.row, **fields)

    def _received(self, body: bytes) -> ReceivedRequest:
        scope = self.scope
        query = scope.get("query_string", b"").decode("latin-1")
        path = scope.get("raw_path", b"").decode("latin-1") or scope["path"]
        headers = scope.get("extensions", {}).get("trackgauge.headers") or scope["headers"]
        received: ReceivedRequest = {
            "method": scope["method"],
            "path": f"{path}?{query}" if query else path,
            "headers": [(bytes(k).decode("latin-1"), bytes(v).decode("latin-1")) for k, v in headers],
            "body_text": "",
        }
        try:
            received["body_text"] = body.decode()
        except UnicodeDecodeError:
            received["body_bytes_b64"] = base64.b64encode(body).decode()
        return received

    async def start(self, status: int, content_type: str | None, headers: list[tuple[str, str]]) -> None:
        """Send status line and headers."""
        raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        if content_type is not None:
            raw.append((b"content-type", content_type.encode("latin-1")))
        raw.append((b"vary", b"Origin"))
        if self.row is not None:
            self.world.ledger.sent.begin(self.row.seq, status, raw)
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    async def write(self, body: bytes, *, more: bool) -> None:
        """Send a piece of the body; without ``more`` the answer is complete."""
        if self.row is not None:
            self.world.ledger.sent.more(self.row.seq, body)
        await self._send({"type": "http.response.body", "body": body, "more_body": more})

    async def answer(self, status: int, body: bytes, content_type: str | None = JSON) -> None:
        """Send a whole answer."""
        await self.start(status, content_type, [("content-length", str(len(body)))])
        await self.write(body, more=False)

    async def answer_json(self, body: Any, status: int = 200) -> None:
        await self.answer(status, json_bytes(body))

    async def refuse(self, refusal: Refusal) -> None:
        """Answer with an error and enter it into the ledger."""
        state: State = "failed" if refusal.status >= 500 else "refused"
        self.note(state=state, status=refusal.status, error=refusal.message)
        await self.answer_json(refusal.body, refusal.status)

    def watch(self) -> "asyncio.Task[None]":
        """A task that ends when the client leaves. Call it only once the body is read."""
        if self._watch is None:
            self._watch = asyncio.create_task(self._left())
        return self._watch

    async def _left(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def unwatch(self) -> None:
        if self._watch is not None:
            self._watch.cancel()

    def has_left(self) -> bool:
        """Whether the client is known to have left."""
        return self._watch is not None and self._watch.done()

    async def or_left(self, waited: Awaitable[Any], seconds: float | None = None) -> None:
        """Wait for something, at most ``seconds``; raises ``ClientLeft`` as soon as the client leaves."""
        watch = self.watch()
        waiting = asyncio.ensure_future(waited)
        try:
            await asyncio.wait({watch, waiting}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if watch.done():
            raise ClientLeft

    def say_unasked(self, answer: bytes) -> None:
        """Put bytes on the connection behind the answer. Who asks this engine anything next knows them sent."""
        transport = self.scope.get("extensions", {}).get("trackgauge.transport")
        if transport is not None:
            transport.write(answer)

    async def close_socket(self) -> None:
        """Close the connection once what was written is out, and return when it is closed."""
        transport = self.scope.get("extensions", {}).get("trackgauge.transport")
        if transport is not None:
            transport.close()
            await self.watch()


Handler = Callable[[Call], Awaitable[None]]
