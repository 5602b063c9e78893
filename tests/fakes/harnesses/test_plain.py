"""The plain client: what it sends by itself, and how it reads chat answers."""

import asyncio
import json

import pytest

from fakes.harnesses.exchanges import Exchanges
from fakes.harnesses.plain import PlainClient
from fakes.harnesses.wire import Watch
from tests.fakes.harnesses.conftest import Reply, Serve, completion, error

pytestmark = pytest.mark.anyio


def stream(*chunks: object, done: bool = True, how: str = "whole") -> Reply:
    data = [json.dumps(chunk).encode() for chunk in chunks] + ([b"[DONE]"] if done else [])
    framed = tuple(b"data: " + piece + b"\n\n" for piece in data)
    return Reply(chunks=framed, content_type="text/event-stream", how="cut" if how == "cut" else "whole")


def delta(finish: str | None = None, **piece: object) -> dict[str, object]:
    return {"id": "chatcmpl-1", "model": "m", "choices": [{"index": 0, "delta": piece, "finish_reason": finish}]}


def call(index: int, arguments: str, **more: str) -> dict[str, object]:
    function = {"arguments": arguments} | ({"name": more["name"]} if "name" in more else {})
    return {"index": index, "function": function} | ({"id": more["id"]} if "id" in more else {})


async def test_a_buffered_answer_is_read_as_served(serve: Serve) -> None:
    async with serve(completion("hello")) as server, PlainClient(server.url) as client:
        reply = await client.chat("hi", session="s1", temperature=0.5, headers={"X-More": "1"})
    assert reply.ok
    assert reply.text == "hello"
    assert server.seen[0].json() == {
        "model": "policy_model",
        "messages": [{"role": "user", "content": "hi"}],
        "temperature": 0.5,
    }
    assert [name for name, _ in server.seen[0].headers] == [
        "Host",
        "X-More",
        "proxy_x_session_id",
        "Content-Type",
        "Content-Length",
    ]


async def test_bytes_go_out_as_they_are(serve: Serve) -> None:
    body = b'{"a": "\\ud800", "b": 18446744073709551616}\xff'
    async with serve(error(400)) as server, PlainClient(server.url) as client:
        reply = await client.post("/v1/chat/completions", body)
        assert server.seen[0].body == reply.exchange.request.body == body
    assert not reply.ok
    assert reply.answer.error == "it broke"


async def test_a_stream_is_put_together(serve: Serve) -> None:
    chunks = [
        delta(role="assistant", content=""),
        delta(reasoning="hm"),
        delta(content="lo"),
        delta(content="ok"),
        delta(tool_calls=[call(0, "", name="f", id="c0"), call(1, '{"b"', name="g", id="c1")]),
        delta(tool_calls=[call(0, "{}"), call(1, ":1}")]),
        delta("tool_calls"),
        {"id": "chatcmpl-1", "choices": [], "usage": {"completion_tokens": 9}},
    ]
    async with serve(stream(*chunks)) as server, PlainClient(server.url) as client:
        reply = await client.chat("hi", stream=True)
    assert reply.ok
    assert reply.message == {
        "role": "assistant",
        "content": "look",
        "reasoning": "hm",
        "tool_calls": [
            {"id": "c0", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "c1", "type": "function", "function": {"name": "g", "arguments": '{"b":1}'}},
        ],
    }
    assert (reply.answer.finish_reason, reply.answer.usage) == ("tool_calls", {"completion_tokens": 9})
    assert len(reply.events) == 9


@pytest.mark.parametrize(
    "served",
    [
        pytest.param(stream(delta(content="lo"), delta("stop"), done=False), id="no DONE"),
        pytest.param(stream(delta(content="lo")), id="no finish reason"),
        pytest.param(stream(delta(content="lo"), {"error": {"message": "died"}}, delta("stop")), id="error event"),
        pytest.param(stream(delta(content="lo"), delta("stop"), how="cut"), id="cut"),
    ],
)
async def test_a_stream_without_its_proper_end_is_not_ok(serve: Serve, served: Reply) -> None:
    async with serve(served) as server, PlainClient(server.url) as client:
        reply = await client.chat("hi", stream=True)
    assert reply.text == "lo"
    assert not reply.ok


async def test_parallel_calls_are_told_in_the_order_they_were_sent(serve: Serve) -> None:
    async with serve(completion("a")) as server, PlainClient(server.url) as client:
        await asyncio.gather(*(client.chat(f"task {n}") for n in range(8)))
        told = client.told("s")
    assert [json.loads(x.request.body)["messages"][0]["content"] for x in told.exchanges] == [
        f"task {n}" for n in range(8)
    ]
    assert Exchanges.model_validate_json(told.to_json()) == told


async def test_a_call_can_be_left_in_the_middle_of_its_stream(serve: Serve) -> None:
    served = Reply(chunks=(b"data: {}\n\n", b"data: {}\n\n", b"data: [DONE]\n\n"), content_type="text/event-stream")
    async with serve(served) as server, PlainClient(server.url) as client:
        reply = await client.chat("hi", stream=True, watch=Watch(after_events=1))
    assert reply.ended == "abandoned"
    assert len(reply.events) < 3


async def test_closing_leaves_what_is_still_under_way(serve: Serve) -> None:
    async with serve(Reply(how="silent")) as server:
        async with PlainClient(server.url) as client:
            call = client.chat("hi", session="s", parent="p")
            await call.watch.until_sent()
        assert [exchange.ended for exchange in client.exchanges] == ["abandoned"]
        await asyncio.wait_for(server.left.wait(), 5)
    assert client.exchanges[0].request.header("x-parent-session-id") == "p"


async def test_answers_that_make_no_sense_are_told_not_raised(serve: Serve) -> None:
    bodies = [b"", b"[]", b'{"choices": 3}', b'{"choices": [{"message": 4}]}', b"[" * 100_000, b"\xff"]
    odd = [delta(tool_calls=3), delta(tool_calls=[3, {"index": "x"}, {"function": 2}]), 7, {"choices": [None]}]
    async with serve(*(Reply(body=body) for body in bodies), stream(*odd)) as server, PlainClient(server.url) as client:
        for _ in [*bodies, odd]:
            reply = await client.chat("hi")
            assert not reply.message.get("content")
    assert len(server.seen) == 7
