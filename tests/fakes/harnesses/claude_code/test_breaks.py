"""What Claude Code makes of failures and broken streams: row by row as the facts list them."""

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from fakes.harnesses.claude_code import ClaudeCode, Environment, Leave
from fakes.harnesses.claude_code_retries import WAITS
from fakes.harnesses.conversation import Conversation
from tests.fakes.harnesses.claude_code.messages import (
    Script,
    bash,
    buffered,
    event,
    events,
    refuses,
    says,
    stream,
    text,
    use,
)
from tests.fakes.harnesses.conftest import Reply, ScriptedServer, Seen, Serve

pytestmark = pytest.mark.anyio

DONE = says(text("Done."))
OVERLOADED = event("error", error={"type": "overloaded_error", "message": "Overloaded"})
TEXT_THEN_CALL = events([text("I look."), bash("toolu_1", "echo hi")])
START, OPENED, TEXT_DONE, IN_CALL, CALL_DONE = 1, 3, 5, 7, 9
"""How many events of ``TEXT_THEN_CALL`` there are after each step."""


def posts(server: ScriptedServer) -> list[Seen]:
    return [seen for seen in server.seen if seen.method == "POST"]


@pytest.mark.parametrize("status", [401, 408, 409, 429, 500, 502, 503, 529])
async def test_a_status_that_may_pass_is_tried_eleven_times_with_the_same_bytes(serve: Serve, status: int) -> None:
    async with serve(answering=Script([refuses(status)])) as server:
        talk = await ClaudeCode(server.url, time_scale=0.0001).run("Do it.")
    assert talk.ended == "error"
    assert [exchange.planned_wait for exchange in talk.exchanges[1:]] == [None, *WAITS]
    assert [exchange.attempt for exchange in talk.exchanges[1:]] == list(range(11))
    assert len({(seen.body, *seen.headers) for seen in posts(server)}) == 1


@pytest.mark.parametrize("status", [400, 403, 413, 422])
async def test_a_status_that_will_not_pass_ends_the_run(serve: Serve, status: int) -> None:
    async with serve(answering=Script([refuses(status)])) as server:
        talk = await ClaudeCode(server.url).run("Do it.")
    assert talk.error == f"API Error: {status} it broke"
    assert len(posts(server)) == 1


async def test_a_server_may_forbid_the_retry(serve: Serve) -> None:
    async with serve(answering=Script([refuses(500, x_should_retry="false")])) as server:
        talk = await ClaudeCode(server.url).run("Do it.")
    assert talk.ended == "error"
    assert len(posts(server)) == 1


@pytest.mark.parametrize(("failures", "asked", "wait"), [(0, "5", 5.0), (2, "1", 2.4)], ids=["longer", "not shorter"])
async def test_retry_after_lengthens_a_wait_and_never_shortens_it(
    serve: Serve, failures: int, asked: str, wait: float
) -> None:
    replies = [*[refuses(500)] * failures, refuses(429, retry_after=asked), DONE]
    async with serve(answering=Script(replies)) as server:
        talk = await ClaudeCode(server.url, time_scale=0.001).run("Do it.")
    assert talk.exchanges[-1].planned_wait == wait


async def test_the_number_of_retries_can_be_set(serve: Serve) -> None:
    async with serve(answering=Script([refuses(500)])) as server:
        await ClaudeCode(server.url, env=Environment(max_retries=2)).run("Do it.")
    assert len(posts(server)) == 3


async def test_without_a_server_the_probe_and_all_attempts_are_refused() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        talk = await ClaudeCode(url, env=Environment(max_retries=1)).run("Do it.")
    assert [exchange.ended for exchange in talk.exchanges] == ["refused"] * 3


@pytest.mark.parametrize("reply", [Reply(how="drop"), stream([], cut=True)], ids=["no response", "no event"])
async def test_a_connection_lost_before_any_event_is_tried_again_as_a_stream(serve: Serve, reply: Reply) -> None:
    async with serve(answering=Script([reply, DONE])) as server:
        talk = await ClaudeCode(server.url).run("Do it.")
    assert talk.ended == "answered"
    assert [exchange.planned_wait for exchange in talk.exchanges[1:]] == [None, WAITS[0]]
    assert posts(server)[0].body == posts(server)[1].body


@pytest.mark.parametrize("cut", [True, False], ids=["cut", "clean end"])
@pytest.mark.parametrize("count", [START, OPENED])
async def test_a_stream_that_breaks_before_its_first_block_is_done_is_asked_for_in_one_piece(
    serve: Serve, count: int, cut: bool
) -> None:
    async with serve(answering=Script([stream(TEXT_THEN_CALL[:count], cut=cut), buffered(text("Done."))])) as server:
        talk = await ClaudeCode(server.url).run("Do it.")
    assert talk.ended == "answered"
    assert [(e.streamed, e.planned_wait) for e in talk.exchanges[1:]] == [(True, None), (False, None)]
    streamed, whole = (seen.json() for seen in posts(server))
    assert whole == {key: value for key, value in streamed.items() if key != "stream"}
    assert dict(posts(server)[1].headers)["X-Stainless-Timeout"] == "300"


async def test_an_empty_stream_is_asked_for_in_one_piece(serve: Serve) -> None:
    async with serve(answering=Script([stream([]), buffered(text("Done."))])) as server:
        talk = await ClaudeCode(server.url).run("Do it.")
    assert [exchange.streamed for exchange in talk.exchanges[1:]] == [True, False]


@pytest.mark.parametrize("count", [0, START])
async def test_an_error_event_before_the_first_block_is_a_streamed_retry(serve: Serve, count: int) -> None:
    async with serve(answering=Script([stream([*TEXT_THEN_CALL[:count], OVERLOADED]), DONE])) as server:
        talk = await ClaudeCode(server.url).run("Do it.")
    assert [(e.streamed, e.planned_wait) for e in talk.exchanges[1:]] == [(True, None), (True, WAITS[0])]


async def test_an_error_event_inside_the_first_block_leads_to_one_piece(serve: Serve) -> None:
    broken = stream([*TEXT_THEN_CALL[:OPENED], OVERLOADED])
    async with serve(answering=Script([broken, buffered(text("Done."))])) as server:
        talk = await ClaudeCode(server.url).run("Do it.")
    assert [exchange.streamed for exchange in talk.exchanges[1:]] == [True, False]


@pytest.mark.parametrize(
    ("chunks", "cut"),
    [(TEXT_THEN_CALL[:IN_CALL], True), ([*TEXT_THEN_CALL[:IN_CALL], OVERLOADED], False)],
    ids=["cut", "error event"],
)
async def test_a_stream_that_breaks_inside_a_call_after_a_text_is_the_end(
    serve: Serve, chunks: Sequence[bytes], cut: bool
) -> None:
    async with serve(answering=Script([stream(chunks, cut=cut)])) as server:
        talk = await ClaudeCode(server.url).run("Do it.")
    assert talk.ended == "error"
    assert len(posts(server)) == 1


async def test_a_stream_that_ends_cleanly_inside_a_call_after_a_text_passes_for_success(serve: Serve) -> None:
    async with serve(answering=Script([stream(TEXT_THEN_CALL[:IN_CALL])])) as server:
        talk = await ClaudeCode(server.url).run("Do it.")
    assert (talk.ended, len(posts(server))) == ("answered", 1)
    assert talk.messages[-1] == {"role": "assistant", "content": [text("I look.")]}


@pytest.mark.parametrize("end", ["cut", "clean end", "error event"])
@pytest.mark.parametrize("count", [CALL_DONE, CALL_DONE + 1])
async def test_a_call_that_is_whole_is_run_however_its_stream_breaks(serve: Serve, end: str, count: int) -> None:
    chunks = [*TEXT_THEN_CALL[:count], *([OVERLOADED] if end == "error event" else [])]
    async with serve(answering=Script([stream(chunks, cut=end == "cut"), DONE])) as server:
        talk = await ClaudeCode(server.url).run("Do it.")
    assert talk.ended == "answered"
    assert posts(server)[1].json()["messages"][2]["content"] == [text("I look."), bash("toolu_1", "echo hi")]


async def test_without_the_fallback_a_broken_stream_ends_the_run(serve: Serve) -> None:
    async with serve(answering=Script([stream(TEXT_THEN_CALL[:START])])) as server:
        talk = await ClaudeCode(server.url, env=Environment(nonstreaming_fallback=False)).run("Do it.")
    assert talk.ended == "error"
    assert len(posts(server)) == 1


async def test_a_silent_server_is_left_and_asked_again(serve: Serve) -> None:
    async with serve(answering=Script([Reply(how="silent"), DONE])) as server:
        talk = await ClaudeCode(server.url, env=Environment(api_timeout=3.0), timeout_scale=0.3).run("Do it.")
    assert [exchange.ended for exchange in talk.exchanges[1:]] == ["timeout", "complete"]
    assert dict(posts(server)[0].headers)["X-Stainless-Timeout"] == "3"


async def test_unknown_events_pings_and_keys_are_passed_over_and_a_call_needs_its_deltas(serve: Serve) -> None:
    started = {"type": "tool_use", "id": "toolu_1", "name": "TaskList", "input": {"a": 1}}
    chunks = [
        event("ping"),
        event("message_start", message={"id": "m"}, x_token_ids=[1]),
        event("never_heard_of", x=1),
        event("content_block_start", index=0, content_block=started),
        event("content_block_stop", index=0, x_logprobs=[0.1]),
    ]
    async with serve(answering=Script([stream(chunks), DONE])) as server:
        await ClaudeCode(server.url).run("Do it.")
    assert posts(server)[1].json()["messages"][2]["content"] == [use("toolu_1", "TaskList", {})]


@dataclass
class Held(ScriptedServer):
    """Holds the root's first answer before its last event until a sub-agent has asked."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def _answer(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if "x-claude-code-agent-id" in dict(self.seen[-1].headers):
            self.asked.set()
        if len(self.seen) != 2 or reply.chunks is None:
            return await super()._answer(reply, reader, writer)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        writer.write(b"".join(reply.chunks[:-1]))
        await asyncio.wait_for(self.asked.wait(), 10)
        writer.write(reply.chunks[-1])
        return False


async def run_held(held: Held, **options: Any) -> Conversation:
    server = await asyncio.start_server(held.serve, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        talk = await ClaudeCode(url, **options).run("Do it.")
        server.close()
    return talk


ASKS_ANOTHER = says(use("toolu_a", "Agent", {"description": "d", "prompt": "Look."}))


async def test_a_tool_starts_while_its_stream_is_still_open() -> None:
    held = Held([], Script([ASKS_ANOTHER, DONE], {"Look.": [DONE]}))
    talk = await run_held(held)
    assert talk.ended == "answered"
    assert held.asked.is_set()


async def test_an_interrupt_stops_the_sub_agents_too_and_tells_what_they_had_sent() -> None:
    held = Held([], Script([ASKS_ANOTHER], {"Look.": [Reply(how="silent")]}))
    talk = await run_held(held, leave={0: Leave(after_events=len(ASKS_ANOTHER.chunks or ()))})
    assert (talk.ended, talk.error) == ("gave_up", "interrupted")
    assert [(child.ended, [e.ended for e in child.exchanges]) for child in talk.children] == [
        ("gave_up", ["abandoned"])
    ]
    assert [exchange.n for exchange in talk.all_exchanges] == [0, 1, 2]
