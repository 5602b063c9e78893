"""The proxy's routes, as an ASGI application.

Dispatch is on the raw path: a session id may hold anything, ``%2F`` and ``%00`` included, and a decoded path could no
longer tell where it begins and ends.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TypeVar
from urllib.parse import unquote_to_bytes

from conformance.reference.capture.client import Client, ClientLeft, Message, Receive, Send
from conformance.reference.capture.config import Route
from conformance.reference.capture.dialects import Dialect
from conformance.reference.capture.dialects.chat import CHAT
from conformance.reference.capture.dialects.messages import COUNTING, MESSAGES
from conformance.reference.capture.dialects.messages.counting import TokenCounts
from conformance.reference.capture.dialects.responses.dialect import Responses
from conformance.reference.capture.errors import Refusal
from conformance.reference.capture.exchange import Exchanges
from conformance.reference.capture.listing import Listing
from conformance.reference.capture.sessions import decoded
from conformance.reference.capture.upstream import Engine
from conformance.reference.capture.work import Workers
from conformance.reference.store import SCHEMA_VERSION, Store

log = logging.getLogger(__name__)

T = TypeVar("T")
Handler = Callable[[Client], Awaitable[None]]

SESSION_PREFIX = b"/v1/sessions/"
SESSION_SUFFIX = b"/completions"


class App:
    """The application. To be made on a running event loop."""

    def __init__(self, routes: Mapping[str, Route], store: Store | None) -> None:
        self.engine = Engine()
        self._store = store
        self._workers = Workers(16)
        self._exchanges = Exchanges(routes, self.engine, store, self._workers)
        self._listing = Listing(routes, self.engine)
        counts = TokenCounts(routes, self.engine, self._workers)
        self._spoken: dict[bytes, tuple[Dialect, Handler]] = {
            b"/v1/chat/completions": (CHAT, partial(self._exchanges.answer, dialect=CHAT)),
            b"/v1/messages": (MESSAGES, partial(self._exchanges.answer, dialect=MESSAGES)),
            b"/v1/messages/count_tokens": (COUNTING, partial(counts.answer, dialect=COUNTING)),
            b"/v1/responses": (Responses(), self._responses),
        }
        self._handlers: dict[bytes, tuple[str, Handler]] = {
            b"/v1/models": ("GET", self._models),
            b"/v1/continuity": ("GET", self._continuity),
            b"/v1/sessions": ("GET", self._sessions),
            b"/health": ("GET", self._health),
        }

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        client = Client(scope, receive, send)
        try:
            await self._dispatch(client)
        except Refusal as refusal:
            await client.refuse(refusal)
        except ClientLeft:
            log.info("a client left before its request was complete")
        except Exception:
            log.exception("%s failed", client.raw_path[:80])
            if not client.started:
                message = "the proxy failed on this call"
                await client.refuse(Refusal(500, "internal_error", message, kind="server_error"))

    async def close(self) -> None:
        """Let go of engine connections and threads."""
        await self.engine.close()
        self._workers.close()

    async def _dispatch(self, client: Client) -> None:
        path = client.raw_path
        known = self._known(client)
        if known is None and client.method == "HEAD":
            # A harness knocks at its base path, whatever that is, before the first call.
            await client.whole(200, b"")
            return
        if known is None:
            raise Refusal(404, "not_found", f"there is nothing at {path[:200].decode('latin-1')}")
        method, handler = known
        if client.method != method:
            raise Refusal(405, "method_not_allowed", f"{path[:200].decode('latin-1')} takes {method} only")
        await handler(client)

    def _known(self, client: Client) -> tuple[str, Handler] | None:
        path = client.raw_path
        if path.startswith(SESSION_PREFIX) and path.endswith(SESSION_SUFFIX):
            return "GET", self._completions
        # Harnesses put a prefix of their own before the path of an API.
        spoken = self._spoken.get(path[max(0, path.rfind(b"/v1/")) :])
        if spoken is None:
            return self._handlers.get(path)
        dialect, handler = spoken
        client.error_body = dialect.error
        return "POST", handler

    async def _responses(self, client: Client) -> None:
        await self._exchanges.answer(client, Responses())

    async def _health(self, client: Client) -> None:
        await client.json(200, {"status": "ok"})

    async def _models(self, client: Client) -> None:
        await client.json(200, await self._listing.models())

    async def _sessions(self, client: Client) -> None:
        rows = await self._read(self._opened_store().sessions)
        await client.json(200, {"schema_version": SCHEMA_VERSION, "sessions": rows})

    async def _continuity(self, client: Client) -> None:
        if self._exchanges.continuity is None:
            raise Refusal(404, "not_found", "nothing is continued here: the proxy runs without --enable-rl-logging")
        await client.json(200, self._exchanges.continuity.told())

    async def _completions(self, client: Client) -> None:
        store = self._opened_store()
        quoted = client.raw_path[len(SESSION_PREFIX) : -len(SESSION_SUFFIX)]
        session_id = decoded(unquote_to_bytes(quoted))
        text = await self._read(lambda: store.envelope(session_id))
        if text is None:
            raise Refusal(404, "session_not_found", "unknown session")
        await client.whole(200, text)

    async def _read(self, work: Callable[[], T]) -> T:
        try:
            return await self._workers.run(work)
        except OSError as error:
            message = f"the records cannot be read: {error.strerror}"
            raise Refusal(500, "store_unreadable", message, kind="server_error") from None

    def _opened_store(self) -> Store:
        if self._store is None:
            raise Refusal(404, "not_found", "nothing is captured here: the proxy runs without --enable-rl-logging")
        return self._store
