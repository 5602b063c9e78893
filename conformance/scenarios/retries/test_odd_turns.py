"""Empty answers, errors, episodes that begin again, and whole accounts, as a rebuild sees them."""

import asyncio

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.oracle import triples
from conformance.scenarios.retries.rebuilt import rebuilt
from conformance.systems.rebuild import RebuildUnderTest

MODEL = "spoken"
"""The route and the tenant; nothing here is about reasoning, which some agents drop."""


@covers("RTY-002", "RTY-006", "RTY-007", "RTY-008", "RTY-009", "RTY-010")
async def test_empty_answers_errors_marks_and_second_episodes_of_live_runs(
    scene: Scene, rebuild: RebuildUnderTest, check: Check
) -> None:
    await scene.script("retries/odd_turns", tenant="spoken")
    names = ("nudged", "empty", "errors", "rerun")
    task = {name: scene.task(scope=number) for number, name in enumerate(names)}
    session = {name: scene.session(name) for name in names}
    await asyncio.gather(
        scene.claude_code(task["nudged"], session=session["nudged"], model=MODEL),
        scene.openhands_sdk(task["empty"], session=session["empty"], model=MODEL),
        scene.opencode(task["errors"], session=session["errors"], model=MODEL),
        _one_after_the_other(scene, task["rerun"], session["rerun"]),
    )
    nudged, empty, errors, rerun = await asyncio.gather(*(rebuilt(scene, rebuild, one) for one in session.values()))
    dropped = nudged.only(turn=1, attempt=0)
    check.that("RTY-007", triples.none_trained(nudged.answer, [dropped]))
    check.that("RTY-008", triples.one_clean_chain(nudged.answer, nudged.last_attempts(3)))
    chain = [empty.only(turn=0), empty.only(turn=1, attempt=0), empty.only(turn=1, attempt=1)]
    check.that("RTY-009", triples.one_clean_chain(empty.answer, chain))
    whole = errors.last_attempts(2)
    check.that("RTY-002", triples.one_clean_chain(errors.answer, whole))
    for marked in whole[:-1]:
        answer = await rebuilt(scene, rebuild, session["errors"], undelivered=[marked.key])
        check.that("RTY-006", triples.one_clean_chain(answer.answer, whole), f"mark of {marked.key}")
    check.that("RTY-010", triples.withheld(rerun.answer))


async def _one_after_the_other(scene: Scene, task: str, session: str) -> None:
    for _ in range(2):
        await scene.openhands_nv(task, session=session, model=MODEL)
