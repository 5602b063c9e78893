"""One call from the client's request to its answer: forwarded as it is, or captured."""

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from conformance.reference.capture import jsontext
from conformance.reference.capture.answers import client_view, read_answer
from conformance.reference.capture.client import EVENTS_TYPE, JSON_TYPE, Client, header_value
from conformance.reference.capture.config import Route
from conformance.reference.capture.continuity.asking import Asking, Continuity
from conformance.reference.capture.dialects import Dialect
from conformance.reference.capture.errors import Refusal, record_lost
from conformance.reference.capture.jsontext import JSONObject
from conformance.reference.capture.records import record_of
from conformance.reference.capture.requests import Call, read_call
from conformance.reference.capture.sessions import Caller
from conformance.reference.capture.translated import pass_translated
from conformance.reference.capture.upstream import Engine
from conformance.reference.capture.work import Workers
from conformance.reference.store import Store

log = logging.getLogger(__name__)

T = TypeVar("T")

LOST = ""
"""In place of a record's uuid: the record could not be written, and the session says so."""


class Exchanges:
    """Answers calls of every dialect. Without a store nothing is captured."""

    def __init__(self, routes: Mapping[str, Route], engine: Engine, store: Store | None, workers: Workers) -> None:
        self._routes = routes
        self._engine = engine
        self._store = store
        self._workers = workers
        self.continuity = None if store is None else Continuity(engine, store, workers)

    async def answer(self, client: Client, dialect: Dialect) -> None:
        """Answer one request for a generation."""
        started_at = self._store.now() if self._store is not None else 0
        raw = await client.body()
        try:
            call = await self._workers.sized(len(raw), lambda: read_call(raw, client.headers, self._routes, dialect))
            if call.caller is None or self._store is None:
                await self._forward(call, client)
            else:
                await self._capture(call, call.caller, client, self._store, started_at)
        except Refusal as refusal:
            if client.started:
                await client.part(dialect.error_frame(refusal))
                await client.finish()
            else:
                await client.refuse(refusal)
        finally:
            client.release()

    async def _forward(self, call: Call, client: Client) -> None:
        """Pass the engine's answer on as it comes. One that breaks off is left unfinished, so that it shows."""
        passing = asyncio.create_task(self._pass_on(call, client))
        await asyncio.wait({passing, client.leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not passing.done():
            passing.cancel()
        await asyncio.wait({passing})
        if not passing.cancelled():
            passing.result()

    async def _pass_on(self, call: Call, client: Client) -> None:
        relay = call.dialect.relay(call)
        if relay is not None:
            await pass_translated(self._engine, self._workers, call, client, relay)
            return
        try:
            async with self._engine.opened(call.route, call.payload) as response:
                content_type = response.headers.get("content-type", "application/json")
                await client.start(200, header_value(content_type))
                async for chunk in response.content.iter_any():
                    await client.part(chunk)
            await client.finish()
        except Refusal as refusal:
            if not client.started:
                raise
            log.warning("an answer broke off while it was passed on: %s", refusal)

    async def _capture(self, call: Call, caller: Caller, client: Client, store: Store, started_at: int) -> None:
        """Ask the engine once, record, and only then answer."""
        stream = _Stream(client, call)
        continued = self._continued(call, caller)
        asking = asyncio.create_task(
            self._engine.complete(call.route, call.payload) if continued is None else continued.complete()
        )
        await stream.attend(asking)
        if not asking.done():
            # The client has left and the engine is still at work: closing the connection makes it stop.
            asking.cancel()
            await asyncio.wait({asking})
            return
        body = asking.result()
        recording = asyncio.create_task(
            self._workers.run(lambda: _record(call, caller, body, store, started_at, continued))
        )
        await stream.attend(recording)
        answer, record_uuid = await recording
        if continued is not None and record_uuid != LOST:
            continued.keep(record_uuid)
        if not await stream.answer(answer) and record_uuid != LOST:
            if continued is not None:
                continued.undelivered()
            await self._workers.run(lambda: _mark_undelivered(caller, store, record_uuid))

    def _continued(self, call: Call, caller: Caller) -> Asking | None:
        """The call as one of a chain, on a route that continues chains."""
        if self.continuity is None or call.route.injection is None:
            return None
        return self.continuity.asking(call, caller, call.route.injection)


@dataclass(frozen=True)
class _Answer:
    """The client's answer in two pieces: no client takes it for complete before it has the ``ending``."""

    beginning: bytes
    ending: bytes

    @property
    def size(self) -> int:
        return len(self.beginning) + len(self.ending)


class _Stream:
    """The answer of a captured call on its way to the client, with a sign of life while there is none."""

    def __init__(self, client: Client, call: Call) -> None:
        self._client = client
        self._asked = call.asked
        self._dialect = call.dialect
        self._silence = call.route.ping_secs if call.asked.stream else None
        self._spoke_at = time.monotonic()

    async def attend(self, work: "asyncio.Task[T]") -> None:
        """Wait for the work; return early if the client leaves."""
        while not work.done() and not self._client.gone:
            timeout = None
            if self._silence is not None:
                timeout = max(0.0, self._spoke_at + self._silence * 0.9 - time.monotonic())
            watched: set[asyncio.Task[T] | asyncio.Task[None]] = {work, self._client.leaving}
            done, _ = await asyncio.wait(watched, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                await self._ping()

    async def answer(self, answer: _Answer) -> bool:
        """Send the whole answer; tells whether the client was there to the end.

        It is asked for before the ending is sent: a client that has the ending may leave at once, and has it all.
        """
        if self._client.gone:
            return False
        if self._asked.stream:
            await self._begin()
        else:
            await self._client.start(200, JSON_TYPE, [(b"content-length", str(answer.size).encode())])
        await self._client.part(answer.beginning)
        if not await self._client.stayed():
            return False
        await self._client.part(answer.ending)
        await self._client.finish()
        return True

    async def _ping(self) -> None:
        await self._begin()
        await self._client.part(self._dialect.ping)
        self._spoke_at = time.monotonic()

    async def _begin(self) -> None:
        if not self._client.started:
            await self._client.start(200, EVENTS_TYPE, [(b"cache-control", b"no-cache")])


def _record(
    call: Call, caller: Caller, body: bytes, store: Store, started_at: int, continued: Asking | None
) -> tuple[_Answer, str]:
    """Read the engine's answer and put it on disk; the client's answer, and the record's uuid or LOST."""
    answer = read_answer(body)
    record = record_of(call, caller, answer, started_at)
    try:
        if continued is not None:
            continued.mark(record)
        record_uuid = store.keep(record)
        if continued is not None:
            continued.learn(record)
    except (OSError, ValueError) as error:
        _mark_lost(caller, store, error)
        record_uuid = LOST
    return _rendered(client_view(answer, call.asked), call), record_uuid


def _rendered(view: JSONObject, call: Call) -> _Answer:
    if call.asked.stream:
        frames = list(call.dialect.frames(view, call))
        ending = call.dialect.ending_frames
        return _Answer(b"".join(frames[:-ending]), b"".join(frames[-ending:]))
    view = call.dialect.answer(view, call)
    data = jsontext.write(view)
    return _Answer(data[:-1], data[-1:])


def _mark_lost(caller: Caller, store: Store, error: Exception) -> None:
    log.error("a record could not be written (%s); its session is marked as incomplete", error)
    try:
        store.mark_lost(caller.session_id, caller.parent_session_id)
    except OSError as second:
        log.error("nor could the mark (%s); the call fails", second)
        raise record_lost() from None


def _mark_undelivered(caller: Caller, store: Store, record_uuid: str) -> None:
    try:
        store.mark_undelivered(caller.session_id, record_uuid)
    except OSError as error:
        log.error("record %s could not be marked as undelivered (%s)", record_uuid, error)
