"""One call of a route that continues chains: how it is asked for, and what becomes known of it."""

from dataclasses import dataclass, field

from conformance.reference.capture import jsontext
from conformance.reference.capture.config import Injection
from conformance.reference.capture.continuity.chains import Spoken, Turn
from conformance.reference.capture.continuity.completions import chat_answer, completion_request, reads_otherwise
from conformance.reference.capture.continuity.counts import Counts
from conformance.reference.capture.continuity.learning import Learned, key_of, learned
from conformance.reference.capture.continuity.memory import Memory
from conformance.reference.capture.continuity.prefix import chat_with_prefix
from conformance.reference.capture.continuity.question import answer_limit, not_to_be_continued, rendering_of
from conformance.reference.capture.continuity.reasons import Fallback, Plain, Reason
from conformance.reference.capture.continuity.rendering import (
    Addition,
    BorderUnknown,
    NotRendered,
    Renderer,
    same_opening,
)
from conformance.reference.capture.continuity.sameness import digests_of
from conformance.reference.capture.errors import Refusal
from conformance.reference.capture.jsontext import JSONObject
from conformance.reference.capture.requests import Call
from conformance.reference.capture.sessions import Caller
from conformance.reference.capture.upstream import Engine
from conformance.reference.capture.work import Workers
from conformance.reference.store import Store

REFUSED_BEFORE = (400, 404, 405, 413, 422, 501)
"""With these an engine says that it did not take the request up, so that asking otherwise is no second generation."""

UNSPEAKABLE = "Out of range float values"
"""Up to 0.32 vLLM says 400 in these words where it has generated, and cannot write a log prob that is no number."""


class NotContinued(Exception):
    """Raised on the way to an injected call when it has to be a plain one."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Plan:
    """An injected call: it continues ``before``, and its prompt is to be ``prompt``."""

    before: Turn
    prompt: list[int]
    payload: bytes


class Continuity:
    """What all calls of the proxy share. To be made on a running event loop."""

    def __init__(self, engine: Engine, store: Store, workers: Workers) -> None:
        self.engine = engine
        self.workers = workers
        self.memory = Memory(store, workers)
        self.renderer = Renderer(engine, workers)
        self.counts = Counts()

    def asking(self, call: Call, caller: Caller, injection: Injection) -> "Asking":
        """A call that is about to be made."""
        return Asking(self, call, caller, injection)

    def told(self) -> JSONObject:
        """The body of ``GET /v1/continuity``."""
        return {"schema_version": 1, **self.counts.told(), "remembered": self.memory.told()}


@dataclass(eq=False)
class Asking:
    """``complete`` asks the engine, ``mark`` completes the record, ``keep`` remembers it. In this order."""

    continuity: Continuity
    call: Call
    caller: Caller
    injection: Injection
    _rendering: str = ""
    _plan: Plan | None = None
    _reason: Reason | None = None
    _learned: Learned | None = None
    _turn: Turn | None = field(default=None)

    async def complete(self) -> bytes:
        """The engine's chat completion; raises Refusal. It generates once: it is asked again only where it refused."""
        try:
            self._plan = await self._planned()
            return await self._injected(self._plan)
        except NotContinued as stopped:
            self._plan, self._reason = None, stopped.reason
        return await self.continuity.engine.complete(self.call.route, self.call.payload)

    def mark(self, record: JSONObject) -> None:
        """Tell in the record how its call was made. Costs time with its size, and waits for nothing."""
        if self._plan is not None and record["prompt_token_ids"] != self._plan.prompt:
            self._plan, self._reason = None, Fallback.PROMPT_DIFFERS
        record["x_trackgauge"] |= {
            "injected": self._plan is not None,
            "plain_reason": self._reason,
            "rendering": self._rendering,
        }

    def learn(self, record: JSONObject) -> None:
        """Take from a record that is on the disk what a later call needs. Costs time with its size."""
        self._learned = learned(record)

    def keep(self, record_uuid: str) -> None:
        """From now on the call can be continued; to be called before the client can have its answer."""
        self.continuity.counts.add(self._reason)
        if self._learned is not None:
            self._turn = self.continuity.memory.keep(self._learned, None if self._plan is None else self._plan.before)
        else:
            self.continuity.memory.passed_over(self.caller.session_id, record_uuid)

    def undelivered(self) -> None:
        """The client did not get its answer."""
        if self._turn is not None:
            self._turn.delivered = False

    async def _planned(self) -> Plan:
        """How the call can be injected; raises NotContinued."""
        body, route = self.call.body, self.call.route
        before = await self._before()
        reason = not_to_be_continued(body, by_chat=self.injection.transport == "prefix_chat")
        if reason is not None:
            raise NotContinued(reason)
        if before.rendering != self._rendering:
            raise NotContinued(Plain.RENDERING_CHANGED)
        if self.injection.transport == "completions" and reads_otherwise(body, self.injection, before):
            raise NotContinued(Fallback.PARSERS_DIFFER)
        try:
            addition = await self.continuity.renderer.addition(route, body, before.depth)
            history, prompt = await self.continuity.workers.run(lambda: _prompt_of(before, addition))
            return Plan(before, prompt, await self._payload(prompt, history, addition))
        except NotRendered:
            raise NotContinued(Fallback.RENDER_FAILED) from None
        except BorderUnknown:
            raise NotContinued(Fallback.BORDER_UNKNOWN) from None

    async def _before(self) -> Turn:
        """The turn that the call continues; raises NotContinued."""
        spoken = await self.continuity.workers.sized(len(self.call.payload), self._read)
        if not spoken.has_answers:
            raise NotContinued(Plain.FIRST_CALL)
        before = await self.continuity.memory.turn_before(key_of(self.caller), spoken)
        if before is None:
            raise NotContinued(Plain.HISTORY_UNKNOWN)
        return before

    def _read(self) -> Spoken:
        """The request as chains compare it. Costs time with its size."""
        self._rendering = rendering_of(self.call.route, self.call.body)
        messages = self.call.body["messages"]
        return Spoken(messages, digests_of(messages))

    async def _payload(self, prompt: list[int], history: list[int], addition: Addition) -> bytes:
        """The request that says it; raises NotContinued and NotRendered."""
        body, route = self.call.body, self.call.route
        asked, length = answer_limit(body), addition.max_model_len
        room = None if length is None else length - len(prompt)
        limit = min((one for one in (asked, room) if one is not None), default=None)
        if limit is None or limit < 1:
            # A completion of which nobody says how long it may be is cut at the engine's own small default.
            raise NotContinued(Fallback.NO_ROOM)
        workers = self.continuity.workers
        if self.injection.transport == "completions":
            return await workers.run(lambda: completion_request(body, self.injection, prompt, limit))
        told = await chat_with_prefix(self.continuity.renderer, route, body, history, prompt)
        if told is None:
            raise NotContinued(Fallback.PREFIX_NOT_KEPT)
        fitting = told if asked is None else _limited(told, limit)
        return await workers.run(lambda: jsontext.write(fitting))

    async def _injected(self, plan: Plan) -> bytes:
        """The answer to an injected call, as a chat completion."""
        engine, route, workers = self.continuity.engine, self.call.route, self.continuity.workers
        try:
            if self.injection.transport == "prefix_chat":
                return await engine.complete(route, plan.payload)
            answer = await engine.complete(route, plan.payload, f"{route.base_url}/completions")
        except Refusal as refusal:
            if refusal.status in REFUSED_BEFORE and UNSPEAKABLE not in str(refusal):
                raise NotContinued(Fallback.ENGINE_REFUSED) from None
            raise
        return await workers.sized(len(answer), lambda: chat_answer(answer, self.call.body, self.injection))


def _prompt_of(before: Turn, addition: Addition) -> tuple[list[int], list[int]]:
    """The history of a call that continues ``before``, and its prompt; raises BorderUnknown. Costs time with its size.

    The prompt has to open the answer as the one before did: an engine that shows another opening when it is only asked
    how it renders would not generate from this prompt by itself.
    """
    history = before.history()
    prompt = addition.after(history, self_ended=before.self_ended)
    if not same_opening(prompt, history[: len(history) - before.generated], addition.turn_end):
        raise BorderUnknown
    return history, prompt


def _limited(body: JSONObject, limit: int) -> JSONObject:
    """The same limit under the same key, lowered to what fits."""
    keys = [key for key in ("max_completion_tokens", "max_tokens") if type(body.get(key)) is int]
    return body | dict.fromkeys(keys[:1], limit)
