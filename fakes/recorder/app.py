"""A pass-through before a real vLLM: hands on every byte of an answer as it comes, and keeps a ledger of it.

It serves the fake's administration, so that whoever waits, plays and judges by that need not know which engine it is.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import TypeVar

import aiohttp
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from fakes.recorder.engine import RealEngine
from fakes.recorder.rows import complaint, told
from fakes.recorder.script import Script, cannot_be, cannot_play
from fakes.vllm.admin import Administration, administration
from fakes.vllm.app import ENDPOINTS, tenant_of
from fakes.vllm.calls import Call, ClientLeft, World
from fakes.vllm.checks import read_json
from fakes.vllm.draws import Draw
from fakes.vllm.errors import Refusal
from fakes.vllm.playbook import Playbook
from fakes.vllm.tenants import TenantConfig

T = TypeVar("T")
Headers = list[tuple[str, str]]
Object = dict[str, object]

GENERATING = ("chat", "completions")
LONGEST_SECONDS = 600
HOP_BY_HOP = {"connection", "content-length", "date", "host", "server", "transfer-encoding", "vary", "accept-encoding"}
DONE = b"data: [DONE]\n\n"


class RecorderAdministration(Administration):
    """The fake's, which refuses with 501 what a real engine cannot be or play."""

    def __init__(self, world: World, engine: RealEngine) -> None:
        super().__init__(world)
        self._real = engine

    def why_no_tenant(self, config: TenantConfig) -> str | None:
        return cannot_be(config, self._real)

    def why_not_played(self, playbook: Playbook) -> dict[str, str]:
        return cannot_play(playbook)


class Recorder:
    """The ASGI application."""

    def __init__(self, world: World, engine: RealEngine, script: Script) -> None:
        self.world = world
        self._real = engine
        self._script = script
        self._session: aiohttp.ClientSession | None = None
        self._admin: ASGIApp = administration(RecorderAdministration(world, engine))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["path"].startswith("/_fake/"):
            await self._admin(scope, receive, send)
            return
        name, path = tenant_of(scope["path"])
        tenant = self.world.tenants.get(name)
        if tenant is None:
            await JSONResponse({"detail": f"no tenant is named {name!r}"}, 404)(scope, receive, send)
            return
        call = Call(self.world, tenant, path, scope, receive, send)
        try:
            await self._pass_on(call)
        except ClientLeft:
            call.note(state="aborted")
        except aiohttp.ClientError as error:
            call.note(state="failed", status=502, error=f"the real engine did not answer: {error}")
            await call.answer_json({"error": {"message": "the real engine did not answer"}}, 502)
        finally:
            call.unwatch()

    async def _pass_on(self, call: Call) -> None:
        body = await call.read()
        endpoint = ENDPOINTS.get(call.path, "unknown")
        if endpoint != "unknown" or call.method == "POST":
            call.open_row(endpoint, body)
        draw = None
        if endpoint in GENERATING:
            raw = _object(call, body)
            draw = None if raw is None else await self._due(call, endpoint, raw)
            if raw is not None and draw is not None:
                body = self._script.forced(body, raw, draw)
                await self._held(call, draw)
        async with self._asked(call, body) as answer:
            if draw is not None and draw.tag is not None and answer.status != 200:
                which = draw.tag.turn if draw.rule is None else draw.rule
                call.tenant.take_back_attempt(draw.tag.run, draw.tag.scope, which)
            await self._answer(call, answer, endpoint)

    async def _due(self, call: Call, endpoint: str, raw: Object) -> Draw | None:
        call.note(model=raw.get("model"), streamed=raw.get("stream") is True)
        return self._script.due(call, endpoint, raw, await self._prompt(raw) if endpoint == "completions" else None)

    async def _prompt(self, raw: Object) -> str:
        """The text of a prompt; ids are read by the engine whose ids they are."""
        prompt = raw.get("prompt")
        if isinstance(prompt, str):
            return prompt
        asked = {"model": self._real.models[0], "tokens": prompt}
        async with self._http().post(f"{self._real.url}/detokenize", json=asked) as answer:
            return str((await answer.json())["prompt"]) if answer.status == 200 else ""

    async def _held(self, call: Call, draw: Draw) -> None:
        gate = draw.fill_gate()
        if gate is not None and not self.world.gates.is_open(call.tenant.name, gate):
            call.note(state="held")
            await call.or_left(self.world.gates.wait(call.tenant.name, gate))

    @asynccontextmanager
    async def _asked(self, call: Call, body: bytes) -> AsyncIterator[aiohttp.ClientResponse]:
        """Leaving it early lets the engine see its client leave. Raises ``ClientLeft``."""
        query = call.scope.get("query_string", b"").decode("latin-1")
        pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in call.scope["headers"]]
        headers = [(name, value) for name, value in pairs if name not in HOP_BY_HOP]
        url = f"{self._real.url}{call.path}" + (f"?{query}" if query else "")
        answer = await _or_left(call, self._http().request(call.method, url, data=body or None, headers=headers))
        try:
            yield answer
        finally:
            answer.close()

    async def _answer(self, call: Call, answer: aiohttp.ClientResponse, endpoint: str) -> None:
        headers = [(name, value) for name, value in answer.headers.items() if name.lower() not in HOP_BY_HOP]
        if not answer.headers.get("content-type", "").startswith("text/event-stream"):
            await self._whole(call, answer, endpoint, headers)
            return
        await call.start(answer.status, None, headers)
        call.note(status=200, state="generating")
        seen = bytearray()
        try:
            while piece := await _or_left(call, answer.content.readany()):
                seen += piece
                if seen.endswith(DONE):
                    # Whoever has read the end finds the row.
                    call.note(**told(bytes(seen), streamed=True), state="finished")
                await call.write(piece, more=True)
        except aiohttp.ClientError:
            await call.close_socket()
        finally:
            if not seen.endswith(DONE):
                call.note(**told(bytes(seen), streamed=True))
        if not seen.endswith(DONE):
            call.note(state="cut")
        await call.write(b"", more=False)

    async def _whole(
        self,
        call: Call,
        answer: aiohttp.ClientResponse,
        endpoint: str,
        headers: Headers,
    ) -> None:
        body = await _or_left(call, answer.read())
        if answer.status != 200:
            state = "failed" if answer.status >= 500 else "refused"
            call.note(status=answer.status, state=state, error=complaint(body))
        else:
            told_of_it = told(body, streamed=False) if endpoint in GENERATING else {}
            call.note(status=200, state="finished", **told_of_it)
        await call.start(answer.status, None, [*headers, ("content-length", str(len(body)))])
        await call.write(body, more=False)

    def _http(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0)
            timeout = aiohttp.ClientTimeout(total=LONGEST_SECONDS)
            self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False)
        return self._session


def _object(call: Call, body: bytes) -> Object | None:
    """A body that is a JSON object; what is none the engine itself has to refuse."""
    try:
        raw = read_json(call.header(b"content-type") or "", body)
    except Refusal:
        return None
    return raw if isinstance(raw, dict) else None


async def _or_left(call: Call, asked: Awaitable[T]) -> T:
    """What was asked for. Raises ``ClientLeft`` as soon as the client leaves."""
    task = asyncio.ensure_future(asked)
    await call.or_left(task)
    return task.result()
