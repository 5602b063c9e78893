"""Side calls of live runs in the account that a proxy keeps."""

import asyncio

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.oracle import records
from conformance.scenarios.side_calls import live


@covers("SID-010")
async def test_a_side_call_is_recorded_under_the_session_that_it_names(scene: Scene, check: Check) -> None:
    await scene.script("side_calls/live", tenant=live.MODEL)
    plays = []
    if "chat" in scene.proxy.capabilities:
        plays.append(("small", live.titled(scene, "small", small_model=live.SMALL)))
    if "messages" in scene.proxy.capabilities:
        plays.append(("search", live.search(scene)))
    await asyncio.gather(*(play for _, play in plays))
    rows = await scene.ledger()
    for name, _ in plays:
        captured = await scene.records(scene.session(name))
        of_run = [row for row in rows if row["scope"] == live.SCOPES.index(name)]
        beside = [row for row in of_run if row["rule"] is not None]
        seen = [len(captured), {record.get("session_id") for record in captured} == {scene.session(name)}]
        check("SID-010", len(beside) == 1, expected="one side call", seen=len(beside), where=name)
        check.equal("SID-010", expected=[len(of_run), True], seen=seen, where=f"{name}: records, all of its session")
        check.that("SID-010", records.law(captured, of_run), name)
        check.that("SID-010", records.none_lost(captured, of_run), name)
