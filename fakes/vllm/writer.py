"""Writing an answer: as usual, or as a fault says."""

import asyncio
import zlib
from collections.abc import Iterator

from fakes.vllm.answer_faults import spoil
from fakes.vllm.assembled import Answer
from fakes.vllm.calls import EVENTS, JSON, Call, ClientLeft
from fakes.vllm.errors import ENGINE_DEAD, envelope
from fakes.vllm.forms import Chunk, Form, Material
from fakes.vllm.jsontext import json_bytes
from fakes.vllm.ledger import State
from fakes.vllm.profiles import Profile
from fakes.vllm.sample import Fault
from fakes.vllm.streamed_message import streamed_message
from fakes.vllm.writing_faults import Writing

DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": keep-alive\n\n"


class Writer:
    """Writes one answer and keeps its ledger row true: the row says how it ended before the last byte leaves."""

    def __init__(self, call: Call, writing: Writing, fault: Fault | None, form: Form, material: Material) -> None:
        self.call = call
        self.writing = writing
        self.fault = fault
        self.form = form
        self.material = material
        self._zip = zlib.compressobj(wbits=31) if writing.gzip else None
        self._chunks: list[Chunk] = []

    @property
    def _end_state(self) -> State:
        return "cut" if self.writing.spoiled else "finished"

    async def write(self, gate: str | None) -> None:
        """Wait where the turn says so, then write; raises ``ClientLeft``.

        A stream's headers leave before the wait, as the engine's do before the first token.
        """
        call, writing = self.call, self.writing
        unusual = writing.body is not None or writing.closes_before_headers or writing.delay > 0
        if self.material.options.stream and not unusual:
            await self._start_stream()
        if gate is not None and not call.world.gates.is_open(call.tenant.name, gate):
            call.note(state="held")
            await call.or_left(call.world.gates.wait(call.tenant.name, gate))
        call.note(state="generating")
        if writing.delay:
            await call.or_left(asyncio.sleep(writing.delay))
        if writing.closes_before_headers:
            call.note(state="cut")
            await call.close_socket()
        elif writing.body is not None:
            await self._write_raw(writing.body)
        elif self.material.options.stream:
            if unusual:
                await self._start_stream()
            await self._write_stream()
        else:
            await self._write_body()
        if writing.closes_after:
            await call.close_socket()
        if writing.answers_twice:
            if writing.again_at is not None:
                await call.world.gates.wait(call.tenant.name, writing.again_at)
            call.say_unasked(self._whole())

    def _whole(self) -> bytes:
        """The answer once more, as it would stand on a connection that nothing was asked on."""
        if self.material.options.stream:
            kind, body = EVENTS, b"".join(self._events(self._assembled()))
        else:
            kind, body = JSON, json_bytes(self._assembled().bodies[0])
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
        return head.encode() + body

    async def _write_raw(self, body: bytes) -> None:
        writing = self.writing
        state = self._end_state
        if writing.status >= 400:
            state = "failed" if writing.status >= 500 else "refused"
        self.call.note(state=state, status=writing.status)
        named = {name.lower() for name, _ in writing.headers}
        kind = writing.content_type or (None if "content-type" in named else JSON)
        await self.call.start(writing.status, kind, [*writing.headers, ("content-length", str(len(body)))])
        await self.call.write(body, more=False)

    def _assembled(self) -> Answer:
        """The answer with its fault in it."""
        if self.material.options.stream:
            self._chunks = self.form.chunks(self.material)
            row = self.call.row
            if row is not None and row.endpoint == "chat" and row.message is not None:
                self.call.note(message=streamed_message(self._chunks, row.message))
            answer = Answer([chunk.body for chunk in self._chunks], True, self.writing)
        else:
            answer = Answer([self.form.body(self.material)], False, self.writing)
        spoil(answer, self.fault)
        if self.fault is not None and self.fault.name == "huge_id":
            self.call.note(generation_token_ids=answer.reported_ids())
        return answer

    async def _write_body(self) -> None:
        call, writing = self.call, self.writing
        if writing.error_event:
            call.note(state="failed", status=500, error=ENGINE_DEAD)
            await call.answer_json(envelope(ENGINE_DEAD, "InternalServerError", None, 500), 500)
            return
        body = json_bytes(self._assembled().bodies[0], python=writing.python_json)
        if writing.breaks_json or writing.ends_early:
            body = body[: len(body) // 2]
        headers: list[tuple[str, str]] = []
        if self._zip is not None:
            body = self._zip.compress(body) + self._zip.flush()
            headers.append(("content-encoding", "gzip"))
        await call.start(200, JSON, [*headers, ("content-length", str(len(body)))])
        if writing.cuts:
            await call.write(body[: len(body) // 2], more=True)
            call.note(state="cut", status=200)
            await call.close_socket()
            return
        if writing.one_byte_a_write:
            for piece in _single_bytes(body[:-1]):
                await call.write(piece, more=True)
            body = body[-1:]
        if call.has_left():
            raise ClientLeft
        call.note(state=self._end_state, status=200)
        await call.write(body, more=False)

    async def _start_stream(self) -> None:
        headers = [("content-encoding", "gzip")] if self._zip is not None else []
        await self.call.start(200, EVENTS, headers)
        self.call.note(status=200)
        self.call.watch()

    async def _write_stream(self) -> None:
        answer = self._assembled()
        until = self._last_event()
        events = self._events(answer)
        for number, event in enumerate(events):
            if until is not None and number > until:
                if self.writing.stalls_at is None:
                    await self._stop_early()
                    return
                await self._stall(self.writing.stalls_at)
                until = None
            last = number == len(events) - 1
            if last:
                self.call.note(state=self._end_state)
            await self._write_event(event, last=last)

    def _last_event(self) -> int | None:
        """The last event before the stream goes wrong, or None when it does not.

        Without ``at_token`` that is the first token's event; the finishing chunk is never sent.
        """
        writing = self.writing
        if not (writing.cuts or writing.ends_early or writing.error_event or writing.stalls_at):
            return None
        limit = writing.at_token if writing.at_token is not None else 1
        reached = -1
        for number, chunk in enumerate(self._chunks):
            if chunk.tokens > limit or _finishes(chunk):
                break
            reached = number
        return reached

    def _events(self, answer: Answer) -> list[bytes]:
        writing = self.writing
        events = [b"data: " + json_bytes(body, python=writing.python_json) + b"\n\n" for body in answer.bodies]
        if writing.breaks_json:
            at = min(writing.at_token if writing.at_token is not None else 1, len(events) - 1)
            events[at] = events[at][: len(events[at]) // 2] + b"\n\n"
        if writing.comments:
            events = [KEEP_ALIVE + event for event in events]
        events.append(DONE)
        return [b"".join(events)] if writing.one_write else events

    async def _stall(self, gate: str) -> None:
        self.call.note(state="held")
        await self.call.or_left(self.call.world.gates.wait(self.call.tenant.name, gate))
        self.call.note(state="generating")

    async def _stop_early(self) -> None:
        call = self.call
        call.note(state="cut")
        if self.writing.cuts:
            await call.close_socket()
        elif self.writing.error_event:
            call.note(error=ENGINE_DEAD)
            await self._write_event(stream_error(self.material.profile), last=False)
            await self._write_event(DONE, last=True)
        else:
            await self._write_event(b"", last=True)

    async def _write_event(self, event: bytes, *, last: bool) -> None:
        """Write one event. Between two the event loop runs, so that a client that left is noticed."""
        call = self.call
        if call.has_left():
            raise ClientLeft
        if self._zip is not None:
            event = self._zip.compress(event) + self._zip.flush(zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH)
        if self.writing.one_byte_a_write:
            for piece in _single_bytes(event):
                await call.write(piece, more=True)
            event = b""
        if event or last:
            await call.write(event, more=not last)
        if not last:
            await asyncio.sleep(0)


def _finishes(chunk: Chunk) -> bool:
    return any(choice.get("finish_reason") is not None for choice in chunk.body.get("choices", ()))


def _single_bytes(text: bytes) -> Iterator[bytes]:
    return (text[at : at + 1] for at in range(len(text)))


def stream_error(profile: Profile) -> bytes:
    """The event vLLM sends when the engine dies in the middle of a stream."""
    error = envelope(ENGINE_DEAD, "InternalServerError", None, 500)
    return b"data: " + json_bytes(error, python=True, spaced=profile.spaced_stream_errors) + b"\n\n"
