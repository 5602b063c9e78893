"""Calls that meet in the proxy: identical ones, waiting ones, and readers in between."""

import asyncio
from collections.abc import Iterable

from conformance.contract.difference import tree_difference
from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers, scripted
from conformance.gauge.scene import Record, Scene
from conformance.oracle import record_form, records
from conformance.systems.engine import EngineLate, RowState
from fakes.harnesses.plain import Call

SAME = 16
CROWD = 300
TRAFFIC = 40
LOOKS = 1_000
"""How often to read before it is given up that there is anything before the last call."""
WAITING = 2
SLOW_WORDS = "It was the header."
SLOW = f"{{tag}} {SLOW_WORDS}"
PATIENCE_SECONDS = 8.0
"""Without one more call in the state that is waited for; on a slow machine they come slowly, but come."""

ANSWER_SECONDS = 12.0
"""Only a proxy that does not do what it should is waited for so long."""


async def reached(scene: Scene, state: RowState, count: int) -> int:
    """How many of this run's calls are in that state, once there are ``count`` of them or no more of them come."""
    found, before = 0, -1
    while found > before:
        before = found
        try:
            return len(await scene.engine.wait(state, run=scene.run, count=count, seconds=PATIENCE_SECONDS))
        except EngineLate:
            found = sum(row["state"] == state for row in await scene.ledger())
    return found


@covers("CNC-003")
async def test_identical_calls_at_once_are_samples_of_their_own(scene: Scene, check: Check) -> None:
    gate = f"same-{scene.run}"
    await scene.script("one_answer", gate=gate, attempts="fresh")
    calls = [scene.start() for _ in range(SAME)]
    at_once = await reached(scene, "held", SAME)
    await scene.engine.open_gate("main", gate)
    replies = [await call for call in calls]
    check("CNC-003", at_once == SAME, expected=f"{SAME} calls at the engine", seen=f"{at_once} calls")
    check("CNC-003", all(one.ok for one in replies), expected="answers", seen=[one.status for one in replies])
    captured, rows = await scene.records(), await scene.ledger()
    check("CNC-003", len(captured) == SAME, expected=f"{SAME} records", seen=f"{len(captured)} records")
    check.that("CNC-003", record_form.distinct_uuids(captured))
    check.that("CNC-003", records.none_lost(captured, rows))
    check.that("CNC-003", records.law(captured, rows))


@covers("CNC-004")
async def test_a_collector_that_comes_early_sees_whole_records_only(scene: Scene, check: Check) -> None:
    gate = f"last-{scene.run}"
    scopes = {
        "many": {"turns": [{"text": SLOW, "attempts": "fresh"}]},
        "last": {"turns": [{"text": "{tag} I have looked.", "gate": gate}]},
    }
    await scene.script({"about": "Many answers, and one that waits for a reader.", "scopes": scopes})
    session = scene.session()
    seen: list[Record] = []
    calls = [scene.ask(session=session, stream=n % 2 == 0) for n in range(TRAFFIC - 1)]
    traffic = asyncio.gather(*calls, scene.ask(scene.task(scope=1), session=session))
    looks = 0
    while not traffic.done():
        seen += await scene.records(session, at_once=True)
        looks += 1
        if seen or looks == LOOKS:
            await scene.engine.open_gate("main", gate)
    replies = await traffic
    if not seen:
        raise Inconclusive("no record could be read before the last call had been answered")
    final = {record["uuid"]: record for record in await scene.records(session)}
    check("CNC-004", len(final) == TRAFFIC, expected=f"{TRAFFIC} records", seen=f"{len(final)} records")
    check("CNC-004", all(one.ok for one in replies), expected="answers", seen=[one.status for one in replies])
    for record in seen:
        difference = tree_difference(final.get(record.get("uuid", "")), record)
        where = records.name(record)
        check("CNC-004", difference is None, expected="as it was in the end", seen=str(difference), where=where)
    check.that("CNC-004", records.law(list(final.values()), await scene.ledger()))


@scripted("its hundreds of calls are for an engine that answers at once")
@covers("CNC-006")
async def test_hundreds_of_calls_wait_at_the_engine_and_not_in_the_proxy(scene: Scene, check: Check) -> None:
    gate = f"crowd-{scene.run}"
    await scene.script("one_answer", gate=gate)
    calls = [scene.start(stream=n % 2 == 0) for n in range(CROWD)]
    at_once = await reached(scene, "held", CROWD)
    await scene.engine.open_gate("main", gate)
    replies = [await call for call in calls]
    check("CNC-006", at_once == CROWD, expected=f"{CROWD} calls at the engine", seen=f"{at_once} calls")
    failed = [one.status for one in replies if not one.ok]
    check("CNC-006", not failed, expected=f"{CROWD} answers", seen=failed[:10])


@covers("CNC-005", "CNC-009", "CNC-010")
async def test_calls_that_wait_hold_up_nobody_and_end_when_their_clients_leave(scene: Scene, check: Check) -> None:
    gate = f"waits-{scene.run}"
    scopes = {
        "waits": {"turns": [{"text": SLOW, "gate": gate}]},
        "quick": {"turns": [{"text": "{tag} I have looked."}]},
    }
    await scene.script({"about": "One waits, one does not.", "scopes": scopes})
    sessions = [scene.session("buffered"), scene.session("streamed")]
    waiting = [scene.start(session=session, stream=bool(n)) for n, session in enumerate(sessions)]
    held = await reached(scene, "held", WAITING)
    if not held:
        raise Inconclusive("the calls that were to wait did not reach the engine")
    quick = [scene.start(scene.task(scope=1), session=session, stream=bool(n)) for n, session in enumerate(sessions)]
    check("CNC-005", await all_over(quick), expected="answers meanwhile", seen="none in time")

    for call in waiting:
        call.leave()
    ended = await reached(scene, "aborted", held) if "cancel" in scene.proxy.capabilities else 0
    check("CNC-009", ended >= held > 0, expected=f"{held} generations ended", seen=ended)
    await scene.engine.open_gate("main", gate)
    await reached(scene, "finished", len(quick) + max(0, held - ended))
    statuses = [reply.status for reply in [await call for call in quick] if not reply.answered]
    check("CNC-005", not statuses, expected="answers", seen=statuses or "answers")
    for session in sessions:
        # A record that comes late is there by the time a later call of its session has been recorded.
        await scene.ask(scene.task(scope=1), session=session)
        captured = await scene.records(session)
        if not captured:
            check.nothing("CNC-010", "record")
            continue
        unseen = [record for record in captured if SLOW_WORDS in str(record["messages"][-1])]
        trained = [record["uuid"] for record in unseen if record.get("is_valid") and not marked(scene, session, record)]
        check("CNC-010", not trained, expected="no valid record without a mark", seen=trained)


async def all_over(calls: Iterable[Call]) -> bool:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            for call in calls:
                await call.watch.until_over()
    except TimeoutError:
        return False
    return True


def marked(scene: Scene, session: str, record: Record) -> bool:
    proxy = scene.proxy
    return "delivery-mark" in proxy.capabilities and proxy.has_delivery_mark(session, record["uuid"])
