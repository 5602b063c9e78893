"""In which order the records of a session sort."""

import json
import uuid
from datetime import datetime, timedelta

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.scene import Record, Scene
from conformance.oracle import record_form, records
from conformance.scenarios.records.layout import session_folder
from conformance.systems.proxy import ProxyUnderTest

CALLS_AT_ONCE = 24


@covers("CAP-001", "CAP-016", "CAP-017", "CAP-018")
async def test_calls_at_once_and_one_that_follows_them(scene: Scene, check: Check) -> None:
    await scene.script("one_answer", gate="g{run}")
    calls = [scene.start(session=scene.session(f"agent-{n % 3}"), stream=n % 2 == 0) for n in range(CALLS_AT_ONCE)]
    await scene.engine.wait("held", run=scene.run, count=CALLS_AT_ONCE)
    await scene.engine.open_gate("main", f"g{scene.run:06d}")
    for call in calls:
        await call
    last = scene.session("agent-0")
    await scene.ask(session=last)
    sessions = [await scene.records(session) for session in scene.sessions]
    everything = [record for captured in sessions for record in captured]
    rows = await scene.ledger()
    check.that("CAP-001", records.none_lost(everything, rows))
    if not everything:
        raise Inconclusive("no call left a record")
    check.that("CAP-016", record_form.distinct_uuids(everything))
    check.that("CAP-017", record_form.one_form_of_time(everything))
    times = {record["captured_at"] for record in everything}
    count = len(everything)
    check("CAP-018", len(times) == count, expected=f"{count} different times", seen=f"{len(times)} of {count}")
    follower = max(rows, key=lambda row: row["seq"])["request_id"]
    newest = max(everything, key=lambda record: record["captured_at"])["request_id"]
    check.equal("CAP-018", expected=follower, seen=newest, where="the record that sorts last")


@covers("CAP-019")
async def test_a_session_whose_first_record_is_from_a_faster_clock(scene: Scene, check: Check) -> None:
    """As an earlier process leaves it whose clock was ahead, before the clock was set back."""
    await scene.script("one_answer")
    await scene.ask(session=scene.session("model"))
    models = await scene.records(scene.session("model"))
    check.need("CAP-019", len(models) == 1, expected="one record", seen=f"{len(models)} records")
    session = scene.session("resumed")
    early = leave_behind(scene.proxy, models[0], session, ahead=timedelta(hours=2))
    await scene.ask(session=session)
    captured = await scene.records(session)
    check("CAP-019", len(captured) == 2, expected="2 records", seen=f"{len(captured)} records")
    late = [one for one in captured if one["uuid"] != early["uuid"]]
    check.that("CAP-019", record_form.rising([early, *late]))
    check.that("CAP-019", record_form.one_form_of_time([early, *late]))


def leave_behind(proxy: ProxyUnderTest, record: Record, session: str, ahead: timedelta) -> Record:
    """A copy of the record in another session's folder, of a later time."""
    later = datetime.fromisoformat(record["captured_at"]) + ahead
    text = later.isoformat(timespec="microseconds")
    suffix = "Z" if record["captured_at"].endswith("Z") else "+00:00"
    planted = {
        **record,
        "uuid": str(uuid.uuid4()),
        "session_id": session,
        "captured_at": text.removesuffix("+00:00") + suffix,
    }
    folder = session_folder(proxy, session)
    folder.mkdir(mode=0o700)
    folder.joinpath(f"{planted['uuid']}.json").write_text(json.dumps(planted), encoding="utf-8")
    return planted
