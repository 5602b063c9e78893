"""The hand-written wire: what leaves, how answers are read, and how an exchange ends."""

import asyncio
import gzip
import socket

import pytest

from fakes.harnesses.wire import HOST, LENGTH, Watch, Wire
from tests.fakes.harnesses.conftest import Reply, Serve

pytestmark = pytest.mark.anyio
HEAD = [("x-ODD-Case", "1"), ("Host", HOST), ("accept", "*/*"), ("Content-Length", LENGTH), ("x-last", "")]


async def test_header_names_keep_their_order_and_case(serve: Serve) -> None:
    async with serve(Reply(body=b"{}")) as server, Wire(f"{server.url}/t/one") as wire:
        outcome = await wire.send("POST", "/v1/x?y=1", HEAD, b"abc")
    assert [name for name, _ in server.seen[0].headers] == ["x-ODD-Case", "Host", "accept", "Content-Length", "x-last"]
    assert dict(server.seen[0].headers)["Host"] == server.url.removeprefix("http://")
    assert (server.seen[0].path, server.seen[0].body) == ("/t/one/v1/x?y=1", b"abc")
    assert outcome.sent.headers == tuple(server.seen[0].headers)
    assert outcome.sent.path == "/t/one/v1/x?y=1"


async def test_a_header_may_hold_any_text(serve: Serve) -> None:
    async with serve(Reply(body=b"{}")) as server, Wire(server.url) as wire:
        await wire.send("GET", "/", [*HEAD, ("x-id", "é⟦1⟧")], b"")
    assert server.seen[0].headers[-1] == ("x-id", "é⟦1⟧".encode().decode("latin-1"))


async def test_a_connection_is_used_again_until_the_server_says_close(serve: Serve) -> None:
    replies = [Reply(body=b"1"), Reply(body=b"2", how="close"), Reply(body=b"3")]
    async with serve(*replies) as server, Wire(server.url) as wire:
        bodies = [(await wire.send("POST", "/", HEAD, b"")).received for _ in range(3)]
        assert server.connections == 2
    assert [received.body for received in bodies if received is not None] == [b"1", b"2", b"3"]


async def test_without_keep_alive_every_request_has_its_own_connection(serve: Serve) -> None:
    async with serve(Reply(body=b"1")) as server, Wire(server.url, keep_alive=False) as wire:
        await wire.send("POST", "/", HEAD, b"")
        await wire.send("POST", "/", HEAD, b"")
        assert server.connections == 2


async def test_a_compressed_body_is_told_as_its_text(serve: Serve) -> None:
    reply = Reply(body=gzip.compress(b'{"a": 1}'), headers=(("Content-Encoding", "gzip"),))
    async with serve(reply) as server, Wire(server.url) as wire:
        outcome = await wire.send("GET", "/", HEAD, b"")
    assert outcome.received is not None
    assert outcome.received.json_body() == {"a": 1}


@pytest.mark.parametrize(
    ("reply", "ended", "body"),
    [
        pytest.param(Reply(how="drop"), "cut", None, id="dropped before the head"),
        pytest.param(Reply(body=b"abcd", how="cut"), "cut", "ab", id="cut in a sized body"),
        pytest.param(Reply(chunks=(b"ab",), how="cut"), "cut", "ab", id="cut in a chunked body"),
        pytest.param(Reply(chunks=(b"ab", b"cd")), "complete", "abcd", id="chunked"),
        pytest.param(Reply(how="silent"), "timeout", None, id="silent"),
        pytest.param(Reply(status=503, body=b"no"), "complete", "no", id="an error status is an answer"),
    ],
)
async def test_the_outcome_says_how_it_ended(serve: Serve, reply: Reply, ended: str, body: str | None) -> None:
    patience = 0.3 if reply.how == "silent" else 20.0
    async with serve(reply) as server, Wire(server.url, read_timeout=patience) as wire:
        outcome = await wire.send("POST", "/", HEAD, b"")
    assert outcome.ended == ended
    assert (outcome.received and outcome.received.body_text) == body
    assert (outcome.error is None) == (ended == "complete")


async def test_a_closed_port_is_refused() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        async with Wire(f"http://127.0.0.1:{bound.getsockname()[1]}") as wire:
            outcome = await wire.send("POST", "/", HEAD, b"")
    assert (outcome.ended, outcome.received) == ("refused", None)


async def test_a_silent_stream_meets_the_deadline_though_every_read_is_short(serve: Serve) -> None:
    async with serve(Reply(how="silent")) as server, Wire(server.url, deadline=0.2) as wire:
        assert (await wire.send("POST", "/", HEAD, b"")).ended == "timeout"


async def test_a_client_may_leave_after_so_many_bytes(serve: Serve) -> None:
    async with serve(Reply(chunks=(b"ab", b"cd", b"ef"))) as server, Wire(server.url) as wire:
        outcome = await wire.send("POST", "/", HEAD, b"", Watch(after_bytes=3))
    assert outcome.ended == "abandoned"
    assert outcome.received is not None
    assert outcome.received.body_text == "abcd"


async def test_a_client_may_leave_a_silent_server_whenever_it_likes(serve: Serve) -> None:
    async with serve(Reply(how="silent")) as server, Wire(server.url) as wire:
        watch = Watch()
        call = asyncio.create_task(wire.send("POST", "/", HEAD, b"", watch))
        await watch.until_sent()
        watch.leave()
        assert (await call).ended == "abandoned"
        await asyncio.wait_for(server.left.wait(), 20)


async def test_waiting_for_bytes_sees_comments_and_ends_with_the_exchange(serve: Serve) -> None:
    async with serve(Reply(chunks=(b": ping\n\n",), how="cut")) as server, Wire(server.url) as wire:
        watch = Watch()
        call = asyncio.create_task(wire.send("POST", "/", HEAD, b"", watch))
        assert await watch.until_bytes(1) == 8
        assert await watch.until_bytes(9) == 8
        assert (await call).ended == "cut"


async def test_waiting_for_a_head_ends_with_the_exchange(serve: Serve) -> None:
    async with serve(Reply(how="drop")) as server, Wire(server.url) as wire:
        watch = Watch()
        call = asyncio.create_task(wire.send("POST", "/", HEAD, b"", watch))
        assert await watch.until_head() is None
        assert (await call).ended == "cut"
