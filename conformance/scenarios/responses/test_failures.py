"""Calls that fail, and answers that the engine cut: what a Responses client gets instead of an answer."""

import asyncio
import contextlib
from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import MODEL, Scene
from conformance.oracle import chat_errors, responses_errors, responses_stream
from conformance.scenarios.errors.engine_errors import OTHER_FORMS, OVERFLOWS, STATUSES, error
from conformance.scenarios.errors.faults import CUTS, Fault, Faulty, Turn, engine_says, faulty, play
from conformance.scenarios.responses.asking import body_of, respond
from fakes.harnesses.plain import Call

JSON = Any
PINGING = "pinging"
PATIENCE_SECONDS = 10.0
"""Many times the route's ping_secs; only a proxy without pings is waited for so long."""

BUSY = engine_says(503, {"error": {"message": "busy", "type": "x", "code": 503}})

MISTAKES: dict[str, JSON] = {
    "no input": {"input": None},
    "no items": {"input": []},
    "an odd input": {"input": 7},
    "an odd item": {"input": [17]},
    "an unknown model": {"model": "nobody-serves-this"},
    "an odd tool": {"tools": [{"type": "function"}]},
    "no object": [],
}


@covers("RSP-032")
async def test_a_failed_call_is_told_in_the_dialects_form(scene: Scene, check: Check) -> None:
    faults: dict[str, Fault] = {name: fault for name, (_, fault) in {**STATUSES, **OTHER_FORMS}.items()}
    engine = await play(scene, faults)
    asked = {
        f"{name}{', streamed' if stream else ''}": respond(scene, engine.task(name), stream=stream)
        for name in faults
        for stream in (False, True)
    }
    asked |= {"a dead engine": respond(scene, scene.task(), model="dead")}
    for name, body in MISTAKES.items():
        whole = {"model": MODEL, "input": scene.task(), **body} if isinstance(body, dict) else body
        asked[name] = scene.post("/responses", whole)
    for name, call in asked.items():
        reply = await call
        check.that("RSP-032", chat_errors.is_failure(reply.status, name))
        check.that("RSP-032", responses_errors.in_shape(reply.header("content-type"), body_of(reply), name))


@covers("RSP-033")
async def test_a_context_overflow_is_known_by_its_code_or_words(scene: Scene, check: Check) -> None:
    said = {version: engine_says(400, error(400, text)) for version, text in OVERFLOWS.items()}
    engine = await play(scene, said)
    for stream in (False, True):
        long = await respond(scene, "word " * 3000, model="short-context", stream=stream)
        replies = [(await respond(scene, engine.task(name), stream=stream), OVERFLOWS[name]) for name in said]
        for reply, words in [(long, "This model's maximum context length is"), *replies]:
            check.that("RSP-033", chat_errors.is_overflow(reply.status, body_of(reply), words))


@covers("RSP-034")
async def test_an_answer_that_the_engine_cut_never_looks_complete(scene: Scene, check: Check) -> None:
    cut = await play(scene, CUTS)
    ways = [(name, stream, model) for name in CUTS for stream in (False, True) for model in (MODEL, "uncaptured")]
    calls = (respond(scene, cut.task(name), stream=stream, model=model) for name, stream, model in ways)
    for (name, stream, model), reply in zip(ways, await asyncio.gather(*calls), strict=True):
        where = f"{name}, {model}, {'streamed' if stream else 'buffered'}"
        whole, streamed = reply.ended == "complete", reply.exchange.streamed
        judged = responses_errors.never_complete(reply.status, streamed, body_of(reply), where, whole=whole)
        check.that("RSP-034", judged)


@covers("RSP-022", "RSP-023", "RSP-024", "RSP-035")
async def test_pings_are_of_the_dialect_and_a_late_error_is_told(scene: Scene, check: Check) -> None:
    model = PINGING if any(route.name == PINGING for route in scene.proxy.routes) else MODEL
    gate = f"responses-{scene.run}"
    turns: dict[str, Turn] = {"long": {"gate": gate}, "failing": {"gate": gate, **faulty(BUSY)}}
    waits = await Faulty(scene, turns).script()
    long, failing = (respond(scene, waits.task(name), model=model, stream=True) for name in ("long", "failing"))
    await scene.engine.wait("held", run=scene.run, count=2)
    if model == PINGING:
        await asyncio.gather(*(_first_bytes(call) for call in (long, failing)))
    await scene.engine.open_gate("main", gate)
    failed, whole = await failing, body_of(await long)
    check.that("RSP-035", responses_errors.failed_in_band(failed.status, body_of(failed), "503 after a ping"))
    check.that("RSP-022", responses_stream.created_first(whole), "after pings")
    check.that("RSP-022", responses_stream.one_response(whole), "after pings")
    check.that("RSP-023", responses_stream.numbered(whole), "after pings")
    check.that("RSP-024", responses_stream.ends_once(whole), "after pings")


async def _first_bytes(call: Call) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_SECONDS):
            await call.watch.until_bytes(1)
