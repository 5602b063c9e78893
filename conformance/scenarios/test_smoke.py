"""The plain case: it works unless a system is broken altogether."""

from pathlib import Path

import pytest

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.oracle import records, triples
from conformance.scenarios.rebuild.sessions import Session
from conformance.scenarios.spawn.rollouts import records_of, rollouts
from conformance.systems.rebuild import RebuildUnderTest
from conformance.systems.runner import RunnerUnderTest

pytestmark = pytest.mark.smoke


@covers("CAP-001", "CAP-002", "CAP-003", "CAP-004")
async def test_a_plain_agent_run_is_captured_call_by_call(scene: Scene, check: Check) -> None:
    await scene.script("tool_loop")
    talk = await scene.openhands_nv()
    captured, rows = await scene.records(), await scene.ledger()
    seen = f"{len(talk.exchanges)} calls, {len(rows)} of them at the engine, {len(captured)} records"
    check("CAP-001", len(captured) == 3 == len(talk.exchanges), expected="3 calls, 3 records", seen=seen)
    check.that("CAP-001", records.none_lost(captured, rows))
    for requirement, field in (
        ("CAP-002", "prompt_token_ids"),
        ("CAP-003", "generation_token_ids"),
        ("CAP-004", "generation_log_probs"),
    ):
        check.that(requirement, records.same_field(captured, rows, field))


@covers("REB-021")
async def test_a_plain_session_becomes_one_clean_trajectory(rebuild: RebuildUnderTest, check: Check) -> None:
    session = Session()
    turns = session.turns(3)
    answer = await rebuild.ask({"envelope": session.envelope()})
    check.that("REB-021", triples.one_clean_chain(answer, [turn.truth for turn in turns]))
    check.that("REB-021", triples.only_sampled(answer, session.truth()))


@covers("SPN-002")
async def test_a_plain_rollout_is_collected(runner: RunnerUnderTest, tmp_path: Path, check: Check) -> None:
    async with rollouts(runner, tmp_path) as asked:
        going, proxy, harness = await asked.raised()
        session = Session(harness.told["arguments"][1])
        turns = session.turns(2)
        await proxy.do("write", files=records_of(session, proxy.log_dir))
        await harness.do("leave")
        check.that("SPN-002", triples.one_clean_chain(await going.answer(), [turn.truth for turn in turns]))
