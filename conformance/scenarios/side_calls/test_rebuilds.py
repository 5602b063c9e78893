"""Calls beside the turns of live runs, and runs that only read like such calls, as a rebuild sees them."""

import asyncio
import json

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.oracle import triples
from conformance.oracle.rollouts import Answer, Sampled
from conformance.scenarios.retries.rebuilt import Rebuilt, rebuilt
from conformance.scenarios.side_calls import live
from conformance.systems.rebuild import RebuildUnderTest


@covers("SID-001", "SID-002", "SID-003", "SID-004")
async def test_titles_are_never_trained_and_cost_nothing(scene: Scene, rebuild: RebuildUnderTest, check: Check) -> None:
    await scene.script("side_calls/live", tenant=live.MODEL)
    await live.titles(scene)
    for requirement, name, asked in (
        ("SID-002", "before", 1),
        ("SID-002", "after", 1),
        ("SID-003", "asked_again", 2),
        ("SID-003", "failed", 1),
        ("SID-003", "left", 0),
        ("SID-004", "small", 1),
    ):
        lived = await rebuilt(scene, rebuild, scene.session(name))
        titles = _beside(lived, asked, name)
        check.that("SID-001", triples.none_trained(lived.answer, titles), name)
        check.that(requirement, triples.one_clean_chain(lived.answer, lived.last_attempts(2)), name)


@covers("SID-005", "SID-006", "SID-007", "SID-008", "SID-009")
async def test_side_calls_are_told_by_their_structure_and_never_by_their_text(
    scene: Scene, rebuild: RebuildUnderTest, check: Check
) -> None:
    await scene.script("side_calls/live", tenant=live.MODEL)
    await asyncio.gather(live.search(scene), live.decoy(scene), live.readers(scene), live.single(scene))
    lived = await rebuilt(scene, rebuild, scene.session("search"))
    check.that("SID-005", triples.none_trained(lived.answer, _beside(lived, 1, "search")))
    check.that("SID-006", triples.one_clean_chain(lived.answer, lived.last_attempts(3)))
    lived = await rebuilt(scene, rebuild, scene.session("decoy"))
    check.that("SID-007", triples.none_trained(lived.answer, _beside(lived, 2, "decoy")))
    for name, words in live.READERS.items():
        lived = await rebuilt(scene, rebuild, scene.session(name))
        turns = lived.last_attempts(2)
        if triples.one_clean_chain(await _in_plain_words(scene, rebuild, name, words), turns):
            check.that("SID-008", triples.one_clean_chain(lived.answer, turns), name)
        else:
            # It takes up no such run, whatever it is about; then the words cost nothing more.
            check.that("SID-008", triples.withheld(lived.answer), name)
    lived = await rebuilt(scene, rebuild, scene.session("single"))
    check.that("SID-009", triples.one_clean_chain(lived.answer, lived.last_attempts(1)))


async def _in_plain_words(scene: Scene, rebuild: RebuildUnderTest, name: str, words: str) -> Answer:
    """The answer to the same records, their task and system text being those of any other run."""
    session = scene.session(name)
    text = json.dumps(await scene.records(session)).replace(json.dumps(words)[1:-1], live.PLAIN)
    records = json.loads(text)
    return await rebuild.ask({"envelope": {"schema_version": 1, "session_id": session, "completions": records}})


def _beside(lived: Rebuilt, at_least: int, name: str) -> list[Sampled]:
    """The side calls of a session; raises Inconclusive where fewer were recorded."""
    found = [call for call, row in lived.told if row["rule"] is not None]
    if len(found) < at_least:
        raise Inconclusive(f"{name}: {len(found)} side calls were recorded, not {at_least}")
    return found
