"""The suite's own HTTP calls: what is asked goes out as it is, and what is wrong is one line."""

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

from conformance.systems.calls import CallFailed, call

pytestmark = pytest.mark.anyio

Listening = Callable[[bytes], AbstractAsyncContextManager[tuple[str, list[bytes]]]]


async def test_target_headers_and_body_go_out_as_they_are(listening: Listening) -> None:
    async with listening(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") as (url, heard):
        answer = await call("POST", url, path="/a%2Fb/../c?d=%20", headers=[("X-Odd", "ü")], json_body={"a": 1.0})
    assert (answer.status, answer.json()) == (200, {})
    head, _, body = heard[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /a%2Fb/../c?d=%20 HTTP/1.1\r\n")
    assert "X-Odd: ü".encode("latin-1") in head
    assert json.loads(body) == {"a": 1.0}


async def test_an_answer_without_a_length_ends_with_the_connection(listening: Listening) -> None:
    async with listening(b"HTTP/1.1 404 Not Found\r\nX-Kind: odd\r\n\r\nnot here") as (url, _):
        answer = await call("GET", url)
    assert (answer.status, answer.text, dict(answer.headers)["x-kind"]) == (404, "not here", "odd")


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", b"SSH-2.0\r\n\r\n", b"HTTP/1.1 200 OK\r\nX"]
)
async def test_anything_but_a_whole_answer_is_one_line(listening: Listening, answer: bytes) -> None:
    async with listening(answer) as (url, _):
        with pytest.raises(CallFailed, match=r"^GET / at 127\.0\.0\.1:\d+: ") as raised:
            await call("GET", url)
    assert "\n" not in str(raised.value)


async def test_silence_is_told_with_its_time() -> None:
    async def listen_only(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()  # until the caller has had enough
        writer.close()

    async with await asyncio.start_server(listen_only, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(CallFailed, match=r"no whole answer within 0\.05 s$"):
            await call("GET", url, seconds=0.05)


async def test_nobody_there_is_one_line() -> None:
    with pytest.raises(CallFailed, match=r"^GET /x at 127\.0\.0\.1:1: .*Connect call failed"):
        await call("GET", "http://127.0.0.1:1", path="/x")
