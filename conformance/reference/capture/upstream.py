"""Calls to the engine.

Connections are pooled without a cap, and a connection that has been idle for longer than ``IDLE_SECS`` is not used
again, since engines close theirs after 5 s. One on which something came that nobody asked for is not used either: it
would be taken for the answer to the next call. A call is sent exactly once. When a pooled connection turns out to be
closed the client gets a 502, because nobody can prove from outside that the engine had not begun to generate; to make
that rare, the event loop is given turns before each call, in which it notices what became of the idle connections.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from conformance.reference.capture.config import Route
from conformance.reference.capture.errors import engine_too_slow, engine_unreachable, from_engine

if TYPE_CHECKING:
    from aiohttp.client_reqrep import ConnectionKey
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

log = logging.getLogger(__name__)

IDLE_SECS = 2.5
CONNECT_SECS = 30.0
LISTING_SECS = 2.0
NOTICE_TURNS = 2
"""One to look at the sockets, one to take in what is there."""


@dataclass(frozen=True)
class Reply:
    """A complete answer of the engine, of any status."""

    status: int
    body: bytes
    retry_after: str | None = None


class _Pool(aiohttp.TCPConnector):
    """Idle connections, each looked at once more before it is used: aiohttp asks only whether it is still open."""

    async def _get(self, key: "ConnectionKey", traces: "list[Trace]") -> "Connection | None":
        while (found := await super()._get(key, traces)) is not None:
            if found.protocol is not None and not found.protocol.should_close:
                break
            log.warning("an engine sent what nobody asked for; the connection is closed")
            found.close()
        return found


class Engine:
    """The engines behind all routes. To be made and closed on a running event loop."""

    def __init__(self) -> None:
        connector = _Pool(limit=0, keepalive_timeout=IDLE_SECS)
        self._http = aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=True, trust_env=False
        )

    async def close(self) -> None:
        """End all connections."""
        await self._http.close()

    async def complete(self, route: Route, payload: bytes, address: str | None = None) -> bytes:
        """The body of the engine's 200 answer; raises Refusal for anything else."""
        async with self.opened(route, payload, address) as response:
            return await response.read()

    async def tokenize(self, route: Route, payload: bytes) -> bytes:
        """The body of the engine's 200 answer to a prompt that is only to be tokenised; raises Refusal."""
        return await self.complete(route, payload, _tokenizer(route))

    @asynccontextmanager
    async def opened(
        self, route: Route, payload: bytes, address: str | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The engine's 200 answer as it begins; raises Refusal for another status and for every transport fault.

        Without an ``address`` the engine is asked for a chat completion.
        """
        for _ in range(NOTICE_TURNS):
            await asyncio.sleep(0)
        timeout = aiohttp.ClientTimeout(total=route.timeout_secs, sock_connect=CONNECT_SECS)
        url = URL(address or f"{route.base_url}/chat/completions", encoded=True)
        try:
            async with self._http.post(
                url, data=payload, headers=_headers(route), timeout=timeout, allow_redirects=False
            ) as response:
                if response.status != 200:
                    body = await response.read()
                    raise from_engine(route, response.status, body, response.headers.get("retry-after"))
                yield response
        except TimeoutError:
            raise engine_too_slow(route.timeout_secs or CONNECT_SECS) from None
        except (aiohttp.ClientError, OSError):
            raise engine_unreachable() from None

    async def models(self, route: Route) -> Reply | None:
        """The engine's list of models, or None if it gives none in time."""
        return await self._small("GET", f"{route.base_url}/models", route, None)

    async def tokenize_nothing(self, route: Route) -> Reply | None:
        """The engine's tokenisation of an empty prompt, which tells the model's length, or None."""
        return await self._small("POST", _tokenizer(route), route, {"model": route.target, "prompt": ""})

    async def _small(self, method: str, url: str, route: Route, json: dict[str, str] | None) -> Reply | None:
        timeout = aiohttp.ClientTimeout(total=LISTING_SECS)
        try:
            address = URL(url, encoded=True)
            async with self._http.request(
                method, address, json=json, headers=_headers(route), timeout=timeout, allow_redirects=False
            ) as response:
                return Reply(response.status, await response.read())
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError):
            return None


def _tokenizer(route: Route) -> str:
    """It stands beside the API, not under it."""
    parts = urlsplit(route.base_url)
    return f"{parts.scheme}://{parts.netloc}{parts.path.removesuffix('/v1')}/tokenize"


def _headers(route: Route) -> dict[str, str]:
    """The route's own headers. Nothing of the client's is ever among them."""
    headers = {"content-type": "application/json", "accept-encoding": "identity", "user-agent": "trackgauge"}
    if route.api_key:
        headers["authorization"] = f"Bearer {route.api_key}"
    return headers | {name.lower(): value for name, value in route.extra_headers.items()}
