"""The tap passes every byte on and tells what was said in the form of exchanges."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fakes.harnesses.wire import HOST, LENGTH, Watch, Wire
from harness_shims.tap import NotHTTP, Tap

pytestmark = pytest.mark.anyio

HEAD = [("Host", HOST), ("x-Odd", "1"), ("Content-Length", LENGTH)]
STREAM = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"9\r\ndata: 1\n\n\r\n9\r\ndata: 2\n\n\r\n0\r\n\r\n"
)
CUT = STREAM.removesuffix(b"2\n\n\r\n0\r\n\r\n")


@asynccontextmanager
async def served(*answers: bytes) -> AsyncIterator[str]:
    """A server that gives these answers in turn over all connections, and closes after an empty one."""
    left = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
            await reader.readexactly(int(length or b"0"))
            answer = left.pop(0)
            writer.write(answer)
            if not answer.endswith((b"0\r\n\r\n", b"ok")):
                break
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_requests_and_answers_of_a_kept_connection_are_told_apart() -> None:
    plain = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    async with served(plain, STREAM, plain) as url:
        with Tap(url) as tap:
            async with Wire(tap.url) as wire:
                seen = [await wire.send("POST", f"/v1/{n}", HEAD, b"x" * n * 70_000) for n in range(3)]
            told = tap.exchanges()
    assert [(one.request.path, len(one.request.body), one.ended) for one in told] == [
        ("/v1/0", 0, "complete"),
        ("/v1/1", 70_000, "complete"),
        ("/v1/2", 140_000, "complete"),
    ]
    assert [name for name, _ in told[0].request.headers] == ["Host", "x-Odd", "Content-Length"]
    assert [one.response for one in told] == [one.received for one in seen]
    assert [one.streamed for one in told] == [False, True, False]


async def test_an_answer_that_broke_off_is_told_as_cut() -> None:
    async with served(CUT) as url:
        with Tap(url) as tap:
            async with Wire(tap.url) as wire:
                seen = await wire.send("POST", "/", HEAD, b"")
            (told,) = tap.exchanges()
    assert (seen.ended, told.ended) == ("cut", "cut")
    assert told.response == seen.received


async def test_a_client_that_leaves_is_seen_to_leave_behind_the_tap() -> None:
    gone = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(CUT)
        await reader.readuntil(b"\r\n\r\n")
        await reader.read()
        gone.set()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        with Tap(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as tap:
            async with Wire(tap.url) as wire:
                await wire.send("POST", "/", HEAD, b"", Watch(after_events=1))
            async with asyncio.timeout(10):
                await gone.wait()


async def test_what_is_no_plain_request_is_a_fault_and_never_half_told() -> None:
    async with served(b"") as url:
        with Tap(url) as tap:
            address = tap.url.removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
            await reader.read()
            writer.close()
            with pytest.raises(NotHTTP, match="content length"):
                tap.exchanges()


async def test_a_dead_end_turns_everybody_away_and_keeps_account() -> None:
    with Tap(None) as tap:
        async with Wire(tap.url) as wire:
            seen = await wire.send("CONNECT", "example.invalid:443", HEAD, b"")
        assert tap.strays == ["CONNECT example.invalid:443 HTTP/1.1"]
    assert seen.received is not None
    assert seen.received.status == 403
