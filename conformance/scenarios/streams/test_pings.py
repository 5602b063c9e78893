"""Long waits on a route with pings: signs of life, and what comes of them."""

import asyncio
from collections.abc import Awaitable
from typing import Any

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.oracle import chat_errors
from conformance.scenarios.errors.faults import Faulty, Turn, body_of, engine_says, faulty
from conformance.scenarios.streams.official import official
from fakes.harnesses.plain import Call

PATIENCE_SECONDS = 10.0
"""Many times the route's ping_secs; only a proxy without pings is waited for so long."""

ROUTE = "pinging"
LOOKS = 2_000
"""How often to look for calls at the engine."""


async def _waits_for_a_sign(call: Call) -> int:
    """How many body bytes came while the engine was still held."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await call.watch.until_bytes(1)
    except TimeoutError:
        return 0


async def _until_asked(scene: Scene, count: int) -> None:
    """Until the engine was asked so often, whether or not the client still waits: a ping may have driven it away."""
    for _ in range(LOOKS):
        if len(await scene.ledger()) >= count:
            return
    raise Inconclusive(f"the engine was not asked {count} times")


async def _or_what_it_raised(asked: Awaitable[Any]) -> Any:
    try:
        return await asked
    except Exception as error:  # whatever the client raises is what its harness would see
        return f"{type(error).__name__}: {error}"


@covers("STR-022", "STR-023", "STR-024")
async def test_pings_keep_a_waiting_stream_alive_and_change_nothing_else(scene: Scene, check: Check) -> None:
    scene.claims(model=ROUTE, stream=True)
    gate = f"pings-{scene.run}"
    turns: dict[str, Turn] = {
        "long": {"gate": gate},
        "failing": {"gate": gate, **faulty(engine_says(503, {"error": {"message": "busy", "type": "x", "code": 503}}))},
    }
    waits = await Faulty(scene, turns).script()
    async with official(scene) as client:
        read = asyncio.create_task(_or_what_it_raised(client.streamed(waits.task("long"), model=ROUTE)))
        raised = asyncio.create_task(client.raised_by(client.streamed(waits.task("failing"), model=ROUTE)))
        await _until_asked(scene, 2)
        # These wait since later than the official client: when they were pinged, it was.
        long, failing = (waits.start(name, model=ROUTE, stream=True) for name in ("long", "failing"))
        signs = await asyncio.gather(_waits_for_a_sign(long), _waits_for_a_sign(failing))
        await scene.engine.open_gate("main", gate)
        check("STR-022", all(signs), expected="bytes while the engine is at work", seen=signs)
        failed = await failing
        check.that("STR-024", chat_errors.failed_in_band(failed.status, body_of(failed), "503 after a ping"))
        check("STR-024", await raised is not None, expected="an exception of the official client", seen="an answer")
        reply = await long
        check("STR-023", reply.ok, expected="a whole stream", seen=body_of(reply)[-200:])
        whole = await client.buffered(waits.task("long"), model=ROUTE)
        check.equal("STR-023", expected=whole, seen=await read)
