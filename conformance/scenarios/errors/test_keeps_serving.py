"""After each fault the next call is served as if nothing had been."""

import asyncio
from urllib.parse import urlsplit

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import MODEL, Scene
from conformance.scenarios.errors.faults import Fault, Faulty, Turn, answers_200, faulty, send
from fakes.harnesses.wire import Watch

NAMES = (
    *("http_error", "cut_stream", "cut_clean", "error_event", "close_before_headers", "bad_json", "not_json"),
    *("list_body", "no_token_ids", "nan_logprob", "huge_id", "empty_ids", "two_choices", "no_choices"),
    *("no_request_id", "null_finish", "abort", "usage_malformed", "list_content", "null_content", "odd_created"),
    *("lone_surrogate", "gzip"),
)
BODIES = {
    "a number": "42",
    "a choice of null": '{"choices": [null]}',
    "a message of text": '{"choices": [{"message": "hello"}]}',
    "calls of numbers": '{"choices": [{"message": {"tool_calls": [1, {"function": 2}]}}]}',
    "deeply nested": "[" * 20_000,
}


@covers("ERR-019")
async def test_after_each_fault_the_next_call_is_served(scene: Scene, check: Check) -> None:
    gate = f"never-{scene.run}"
    faults: dict[str, Fault] = {name: {"name": name} for name in NAMES}
    faults |= {name: answers_200(body) for name, body in BODIES.items()}
    turns: dict[str, Turn] = {name: faulty(fault) for name, fault in faults.items()}
    engine = await Faulty(scene, {"healthy": {}, "waiting": {"gate": gate}, **turns}).script()

    async def served_after(what: str) -> None:
        reply = await engine.start("healthy")
        check(
            "ERR-019",
            reply.answered,
            expected="a whole answer",
            seen=reply.status or reply.ended,
            where=f"after {what}",
        )

    async def fault_of_the_engine(name: str) -> None:
        for stream in (False, True):
            await engine.start(name, stream=stream)
            await served_after(f"{name}, stream {stream}")

    await asyncio.gather(*(fault_of_the_engine(name) for name in faults))
    await _no_http(scene)
    await served_after("bytes that are no HTTP")
    await _leaves_in_the_middle_of_its_request(scene)
    await served_after("half a request")
    await _leaves_at_the_first_byte(engine)
    await served_after("a client that left at the first byte")
    await _leave_while_waiting(engine)
    await served_after("clients that left")
    await scene.engine.open_gate("main", gate)
    for odd in (b"", b"\xff\xfe", b"[" * 20_000, b'{"model": 1e999}'):
        await send(scene, odd)
        await served_after(f"a body {odd[:12]!r}")


async def _no_http(scene: Scene) -> None:
    address = urlsplit(scene.proxy.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        writer.write(b"\x16\x03\x01\x00\xa5 hello\r\n\r\n")
        writer.write_eof()
        await reader.read()
    finally:
        writer.close()


async def _leaves_in_the_middle_of_its_request(scene: Scene) -> None:
    call = send(scene, b'{"model": "', Content_Length="100000")
    await call.watch.until_sent()
    call.leave()
    await call


async def _leaves_at_the_first_byte(engine: Faulty) -> None:
    messages = [{"role": "user", "content": engine.task("healthy")}]
    await send(engine.scene, {"model": MODEL, "messages": messages, "stream": True}, watch=Watch(after_bytes=1))


async def _leave_while_waiting(engine: Faulty) -> None:
    calls = [engine.start("waiting", stream=stream) for stream in (False, True)]
    await engine.scene.engine.wait("held", run=engine.scene.run, count=len(calls))
    for call in calls:
        call.leave()
    await asyncio.gather(*calls)
