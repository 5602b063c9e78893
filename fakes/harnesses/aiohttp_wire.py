"""One POST over aiohttp, told as an ``Outcome``: for fakes of clients that are built on aiohttp themselves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from urllib.parse import urlsplit

import aiohttp

from fakes.harnesses.conversation import Outcome
from fakes.harnesses.exchanges import Ended, Headers, received, sent


@dataclass
class AiohttpWire:
    """A session without cookie jar and without connection limit; header names are told as aiohttp wrote them."""

    base_url: str
    patience: float
    cookies: dict[str, str] = field(default_factory=dict)
    _http: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "AiohttpWire":
        self._http = aiohttp.ClientSession(
            cookie_jar=aiohttp.DummyCookieJar(),
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self.patience, sock_read=self.patience),
            trace_configs=[_header_trace()],
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._http is not None:
            await self._http.close()

    async def post(self, path: str, headers: Mapping[str, str], body: bytes) -> Outcome:
        """Send once. The cookies of this response, and only these, go with the next request."""
        if self._http is None:
            raise RuntimeError("AiohttpWire is used outside of its context")
        url = self.base_url.rstrip("/") + path
        written = SimpleNamespace(headers=())
        head: tuple[int, Headers] | None = None
        got = bytearray()
        ended: Ended = "complete"
        error: str | None = None
        try:
            async with self._http.post(
                url, data=body, headers=headers, cookies=self.cookies, trace_request_ctx=written
            ) as response:
                head = response.status, _pairs(response)
                self.cookies = {name: morsel.value for name, morsel in response.cookies.items()}
                async for chunk in response.content.iter_any():
                    got += chunk
        except (aiohttp.ClientError, TimeoutError) as failure:
            ended, error = _how(failure), f"{type(failure).__name__}: {failure}"
        answer = None if head is None else received(*head, bytes(got))
        return Outcome(sent("POST", urlsplit(url).path, written.headers, body), answer, ended, error)


def _how(failure: Exception) -> Ended:
    if isinstance(failure, TimeoutError):
        return "timeout"
    return "refused" if isinstance(failure, aiohttp.ClientConnectorError) else "cut"


def _pairs(response: aiohttp.ClientResponse) -> Headers:
    return tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in response.raw_headers)


def _header_trace() -> aiohttp.TraceConfig:
    async def remember(
        _: aiohttp.ClientSession, context: SimpleNamespace, params: aiohttp.TraceRequestHeadersSentParams
    ) -> None:
        context.trace_request_ctx.headers = tuple(params.headers.items())

    trace = aiohttp.TraceConfig()
    trace.on_request_headers_sent.append(remember)
    return trace
