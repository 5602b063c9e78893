"""Runs of live harnesses that were compacted, asked for in segments."""

import asyncio

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.oracle import rollouts, triples
from conformance.oracle.judgement import Judgement
from conformance.scenarios.compaction import live
from conformance.scenarios.retries.rebuilt import Rebuilt, rebuilt
from conformance.systems.rebuild import RebuildUnderTest


@covers("SEG-016", "SEG-017")
async def test_compacted_runs_are_trained_on_both_sides(scene: Scene, rebuild: RebuildUnderTest, check: Check) -> None:
    await scene.script("compaction/live", tenant=live.MODEL)
    await asyncio.gather(live.opencode(scene), live.claude(scene), live.sdk(scene))
    for name, rule in (("opencode", "summary"), ("claude", "summary_by_claude"), ("sdk", "summary")):
        lived = await rebuilt(scene, rebuild, scene.session(name), split=["segments"])
        check.that("SEG-016", rollouts.never_wrong(lived.answer, lived.truth), name)
        check.that("SEG-016", triples.none_trained(lived.answer, lived.calls(rule=rule)), name)
        if name != "claude":
            due = [call for call, row in lived.told if row["rule"] is None]
            if len(due) == len(lived.told):
                raise Inconclusive(f"{name}: nothing was compacted")
            check.that("SEG-017", _all_trained(lived, len(due)), name)


def _all_trained(lived: Rebuilt, turns: int) -> Judgement:
    named = [uuid for one in rollouts.trained(lived.answer) for uuid in one["record_uuids"]]
    seen = f"{len(named)} turns, {triples.standing(lived.answer)}"
    return Judgement(len(set(named)) == turns, f"{turns} turns trained", seen)
