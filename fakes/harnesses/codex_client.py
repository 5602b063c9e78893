"""One call of Codex 0.171.0: the request, sent again with the same bytes while the server does not answer it.

A stream that ends without ``response.completed`` is the caller's to start again: its items count, and the next request
is another one.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fakes.harnesses.chat_answers import error_text
from fakes.harnesses.codex_stream import StreamEnd, as_answer, read_stream
from fakes.harnesses.conversation import Account, Outcome, with_answer
from fakes.harnesses.exchanges import Exchange, Received
from fakes.harnesses.wire import Watch, Wire

IDLE = 300.0
"""Seconds without an event after which a stream counts as dead; comments are no events."""
_FIRST_WAIT = 0.2
_OVERLOADED = ("server_is_overloaded", "slow_down")


class CallFailed(Exception):
    """Raised when a call failed for good; the sentence says why, ``code`` is what a failed response named."""

    def __init__(self, why: str, code: str | None = None) -> None:
        super().__init__(why)
        self.code = code


@dataclass(frozen=True)
class Patience:
    """How often a request (``requests``) and a stream (``streams``) are tried again; the client's own defaults.

    ``scale`` multiplies every wait, ``idle`` is the real seconds of silence that end a stream.
    """

    requests: int = 4
    streams: int = 5
    scale: float = 0.01
    idle: float = IDLE


def backoff(tried: int) -> float:
    """The wait in seconds after ``tried`` attempts, without the jitter of a tenth either way."""
    return float(_FIRST_WAIT * 2.0 ** (tried - 1))


@dataclass
class Client:
    """The model client of one agent; ``wire`` and ``account`` are shared by all agents of a session."""

    wire: Wire
    account: Account
    patience: Patience
    exchanges: list[Exchange] = field(default_factory=list)
    _under_way: set[Watch] = field(default_factory=set)
    _closing: asyncio.Event = field(default_factory=asyncio.Event)
    _attempt: int = 0
    _wait: float | None = None

    def new_call(self) -> None:
        """What is sent next is no repetition of anything."""
        self._attempt, self._wait = 0, None

    async def post(self, head: Sequence[tuple[str, str]], raw: bytes) -> StreamEnd:
        """How the response ended. An unanswered request and a 5xx are sent again; ``Retry-After`` counts."""
        for tried in range(1, self.patience.requests + 2):
            outcome, end = await self._send(head, raw)
            answer = outcome.received
            again = answer is None or answer.status >= 500
            if not again or tried > self.patience.requests:
                return end
            await self.rest(_retry_after(answer) or backoff(tried))
        raise AssertionError("the loop above returns")

    async def rest(self, seconds: float) -> None:
        """Wait before the next attempt, unless this client is closed meanwhile."""
        self._wait = seconds
        try:
            async with asyncio.timeout(seconds * self.patience.scale):
                await self._closing.wait()
        except TimeoutError:
            return

    def close(self) -> None:
        """Leave what is under way; everything after it fails."""
        self._closing.set()
        for watch in self._under_way:
            watch.leave()

    async def _send(self, head: Sequence[tuple[str, str]], raw: bytes) -> tuple[Outcome, StreamEnd]:
        if self._closing.is_set():
            raise CallFailed("interrupted")
        n, watch = self.account.number(), Watch()
        self._under_way.add(watch)
        idle = asyncio.create_task(self._until_dead(watch))
        outcome = await self.wire.send("POST", "/v1/responses", head, raw, watch)
        self._under_way.discard(watch)
        idle.cancel()
        if outcome.ended == "abandoned" and not self._closing.is_set():
            outcome = Outcome(outcome.sent, outcome.received, "timeout", "idle timeout waiting for SSE")
        end = _end_of(outcome)
        exchange = outcome.exchange(n, streamed=True, planned_wait=self._wait, attempt=self._attempt)
        failure = None if end.how == "completed" else end.error
        self.exchanges.append(with_answer(exchange, as_answer(end.items), failure))
        self._attempt += 1
        if self._closing.is_set():
            raise CallFailed("interrupted")
        return outcome, end

    async def _until_dead(self, watch: Watch) -> None:
        """Leave a stream that tells no event for too long; one that has told its end may take its time."""
        await watch.until_head()
        seen = 0
        while not any('"response.completed"' in event.data for event in watch.events[-1:]):
            try:
                async with asyncio.timeout(self.patience.idle):
                    events = await watch.until_events(seen + 1)
            except TimeoutError:
                watch.leave()
                return
            if len(events) <= seen:
                return
            seen = len(events)


def _end_of(outcome: Outcome) -> StreamEnd:
    answer = outcome.received
    if answer is None:
        return StreamEnd(error=f"stream disconnected before completion: {outcome.error}")
    if 200 <= answer.status < 300:
        return read_stream(answer)
    body = _body(answer)
    wait = _retry_after(answer)
    code = body.get("error", {}).get("code") if isinstance(body.get("error"), dict) else None
    final = answer.status == 400 or (answer.status == 429 and wait is None) or code in _OVERLOADED
    # The real one shows a 400 to the user, and to a parent agent, as it came.
    why = answer.body_text if answer.status == 400 else f"{answer.status}: {error_text(body)}"
    return StreamEnd(how="fatal" if final else "retry", error=why, wait=wait)


def _body(answer: Received) -> dict[str, Any]:
    try:
        found = answer.json_body()
    except (ValueError, RecursionError):
        return {"error": answer.body_text}
    return found if isinstance(found, dict) else {"error": answer.body_text}


def _retry_after(answer: Received | None) -> float | None:
    told = "" if answer is None else answer.header("retry-after") or ""
    return float(told) if told.isdigit() else None
