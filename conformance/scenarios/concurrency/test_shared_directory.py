"""Two proxies on one log directory."""

import asyncio

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.own import OwnProxies
from conformance.gauge.scene import Scene
from conformance.oracle import records

IN_TURN = 6
AT_ONCE = 16


@covers("CNC-012")
async def test_a_session_spread_over_two_proxies_is_whole_at_both(
    scene: Scene, own_proxy: OwnProxies, check: Check
) -> None:
    await scene.script("one_answer", attempts="fresh")
    there = scene.at(await own_proxy(log_dir=scene.proxy.log_dir))
    session = scene.session()
    replies = [await (scene, there)[n % 2].ask(session=session) for n in range(IN_TURN)]
    # Whoever reads early must not take what is there for all there will be.
    early = [len(await each.records(session)) for each in (scene, there)]
    check(
        "CNC-012", early == [IN_TURN] * 2, expected=[IN_TURN] * 2, seen=early, where="at the two, one after the other"
    )
    replies += await asyncio.gather(*((scene, there)[n % 2].ask(session=session) for n in range(AT_ONCE)))
    check("CNC-012", all(one.ok for one in replies), expected="answers", seen=[one.status for one in replies])
    rows = await scene.ledger()
    held = [await each.records(session) for each in (scene, there)]
    for captured, who in zip(held, ("the first", "the second"), strict=True):
        due, seen = f"{len(replies)} records", f"{len(captured)} records"
        check("CNC-012", len(captured) == len(replies), expected=due, seen=seen, where=who)
        check.that("CNC-012", records.none_lost(captured, rows), who)
        check.that("CNC-012", records.law(captured, rows), who)
    check.equal("CNC-012", expected=[one["uuid"] for one in held[0]], seen=[one["uuid"] for one in held[1]])
    await there.client.close()
