"""Runs whose history was summarised, rewritten or taken up again, as a rebuild sees them."""

import asyncio
from collections.abc import Sequence

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.oracle import placing, rollouts, triples
from conformance.oracle.rollouts import Sampled
from conformance.scenarios.compaction import live
from conformance.scenarios.retries.rebuilt import Rebuilt, rebuilt
from conformance.systems.rebuild import RebuildUnderTest


@covers("CMP-001", "CMP-002", "CMP-003", "CMP-004")
async def test_no_compacted_run_is_clean_and_one_of_its_sides_is_delivered(
    scene: Scene, rebuild: RebuildUnderTest, check: Check
) -> None:
    await scene.script("compaction/live", tenant=live.MODEL)
    await asyncio.gather(live.opencode(scene), live.claude(scene), live.by_hand(scene), live.sdk(scene))
    for requirement, name, summary in (
        ("CMP-001", "opencode", "summary"),
        ("CMP-002", "claude", "summary_by_claude"),
        ("CMP-002", "by_hand", "summary_by_claude"),
        ("CMP-003", "sdk", "summary"),
    ):
        lived = await rebuilt(scene, rebuild, scene.session(name))
        before, after = _sides(lived, summary)
        check.that(requirement, triples.withheld(lived.answer), name)
        check.that(requirement, rollouts.never_wrong(lived.answer, lived.truth), name)
        delivered = any(placing.all_delivered(lived.answer, side) for side in (before, after))
        check("CMP-004", delivered, expected="one side's turns", seen=triples.standing(lived.answer), where=name)


def _sides(lived: Rebuilt, summary: str) -> tuple[Sequence[Sampled], Sequence[Sampled]]:
    """The turns before and after the first call that asked for a summary."""
    rules = [row["rule"] for _, row in lived.told]
    if summary not in rules:
        raise Inconclusive(f"nothing was compacted; the calls were {rules}")
    at = rules.index(summary)
    sides = [call for call, _ in lived.told[:at]], [call for call, row in lived.told[at:] if row["rule"] is None]
    if not all(sides):
        raise Inconclusive(f"there is no turn on one side of the summary; the calls were {rules}")
    return sides


@covers("CMP-005", "CMP-006", "CMP-007")
async def test_rewritten_histories_are_told_from_histories_that_are_taken_up_as_they_were(
    scene: Scene, rebuild: RebuildUnderTest, check: Check
) -> None:
    await scene.script("compaction/live", tenant=live.MODEL)
    await asyncio.gather(
        live.sdk(scene, "spelling", condense_at=None), live.directory(scene), live.reread(scene), live.resumed(scene)
    )
    for requirement, name, turns in (
        ("CMP-005", "spelling", 2),
        ("CMP-005", "directory", 2),
        ("CMP-006", "reread", 3),
    ):
        lived = await rebuilt(scene, rebuild, scene.session(name))
        _is_broken(lived.last_attempts(turns), name)
        check.that(requirement, triples.withheld(lived.answer), name)
    lived = await rebuilt(scene, rebuild, scene.session("resumed"))
    check.that("CMP-007", triples.one_clean_chain(lived.answer, lived.last_attempts(3)))


def _is_broken(turns: Sequence[Sampled], name: str) -> None:
    """Raises Inconclusive where the prompt of the last turn goes on from the tokens of the one before."""
    before = [*turns[-2].prompt, *turns[-2].generation]
    if list(turns[-1].prompt[: len(before)]) == before:
        raise Inconclusive(f"{name}: the rewritten history has the same tokens")
