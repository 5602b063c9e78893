"""One call of Claude Code 2.1.197 from its first request to its answer, with all attempts in between."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from fakes.harnesses.claude_code_history import Block
from fakes.harnesses.claude_code_json import js_dump
from fakes.harnesses.claude_code_models import Environment, Form
from fakes.harnesses.claude_code_requests import NONSTREAMING_TIMEOUT, PATH, PROBE, Body, Speaker
from fakes.harnesses.claude_code_retries import Attempts
from fakes.harnesses.claude_code_stream import Answer, AnswerReader, error_said, whole_answer
from fakes.harnesses.conversation import Account, Outcome, with_answer
from fakes.harnesses.exchanges import Exchange
from fakes.harnesses.wire import Watch, Wire


class Left(Exception):
    """Raised when the user left the answer while it was under way; ``partial`` is what had come."""

    def __init__(self, partial: Answer) -> None:
        super().__init__("the user left")
        self.partial = partial


@dataclass(frozen=True)
class Client:
    """The process as the network sees it: its connections, its session, and the count of all it sent."""

    base_url: str
    wire: Wire
    account: Account
    env: Environment
    session: str
    device: str
    time_scale: float

    def speaker(self, agent_id: str | None = None, parent_id: str | None = None) -> Speaker:
        return Speaker(self.env, self.session, self.device, agent_id, parent_id)

    async def probe(self, exchanges: list[Exchange]) -> None:
        """The HEAD on the base path at the start of a process, on a connection of its own; its answer is not read."""
        n = self.account.number()
        bare = not self.base_url.partition("://")[2].partition("/")[1]
        async with Wire(self.base_url, keep_alive=False) as wire:
            outcome = await wire.send("HEAD", "/" if bare or self.base_url.endswith("/") else "", PROBE, b"")
        exchanges.append(outcome.exchange(n, streamed=False))

    async def call(
        self,
        speaker: Speaker,
        form: Form,
        build: Callable[[], Body],
        exchanges: list[Exchange],
        *,
        on_call: Callable[[Block], None] = lambda _: None,
        betas: Callable[[Form], list[str]] = lambda form: form.betas,
        leave_after: int | None = None,
    ) -> Answer:
        """The answer to the body that ``build`` gives.

        ``on_call`` hears of each tool call as soon as it is whole, while the stream goes on. Raises ``CallFailed``, and
        ``Left`` once ``leave_after`` events of a stream have come.
        """
        attempts = Attempts(self.env, form)
        sends = 0
        while True:
            if attempts.wait is not None:
                await asyncio.sleep(attempts.wait * self.time_scale)
            body = build() if attempts.max_tokens is None else build() | {"max_tokens": attempts.max_tokens}
            timeout = self.env.api_timeout if attempts.streaming else min(NONSTREAMING_TIMEOUT, self.env.api_timeout)
            if not attempts.streaming:
                del body["stream"]
            n = self.account.number()
            raw = js_dump(body).encode()
            reading = _Reading(on_call, leave_after, streaming=attempts.streaming)
            outcome = await reading.of(self.wire, speaker.headers(betas(form), timeout), raw)
            answer = reading.answer_of(outcome)
            exchange = outcome.exchange(n, streamed=attempts.streaming, planned_wait=attempts.wait, attempt=sends)
            exchanges.append(with_answer(exchange, answer.message, answer.error))
            sends += 1
            if reading.is_cancelled:
                raise asyncio.CancelledError
            if exchange.ended == "abandoned":
                raise Left(answer)
            if attempts.is_over(exchange, answer):
                reading.hand_over()
                return answer


class _Reading:
    """One answer as it comes in. ``on_call`` hears of each of its tool calls once."""

    def __init__(self, on_call: Callable[[Block], None], leave_after: int | None, *, streaming: bool) -> None:
        self._watch = Watch(after_events=leave_after)
        self._on_call = on_call
        self._streaming = streaming
        self._reader = AnswerReader()
        self._held: list[Block] = []
        self.is_cancelled = False

    async def of(self, wire: Wire, headers: list[tuple[str, str]], body: bytes) -> Outcome:
        """Send and read. Whoever cancels this makes it leave: what was sent is told nevertheless."""
        sending = asyncio.create_task(wire.send("POST", PATH, headers, body, self._watch))
        try:
            while not sending.done():
                await self._watch.until_events(self._reader.answer.events + 1)
                if not self._take():
                    break
            await asyncio.wait([sending])
        except asyncio.CancelledError:
            self.is_cancelled = True
            self._watch.leave()
        outcome = await sending
        if not self.is_cancelled:
            self._take()
        return outcome

    def _take(self) -> bool:
        """Read the events that have come; False where there were none."""
        new = self._watch.events[self._reader.answer.events :]
        for event in new:
            call = self._reader.feed(event)
            if call is not None:
                self._on_call(call)
        return bool(new)

    def answer_of(self, outcome: Outcome) -> Answer:
        """The answer in whichever form it came; an error's message stands in its ``error``."""
        received = outcome.received
        if received is None:
            return Answer(error=outcome.error)
        if not 200 <= received.status < 300:
            return Answer(error=error_said(received.body))
        if received.is_stream:
            return self._reader.answer
        if self._streaming:
            # A buffered answer to a streamed request is not read: to it, no event came.
            return Answer()
        answer = whole_answer(received.body)
        self._held = answer.calls
        return answer

    def hand_over(self) -> None:
        """Tell of the calls of a buffered answer, now that it stands."""
        for block in self._held:
            self._on_call(block)
