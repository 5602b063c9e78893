"""What stays withheld although its parts were asked for: a part that is wrong, or is no part of the episode."""

from collections.abc import Iterator

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.oracle import triples
from conformance.scenarios.rebuild.sessions import Session, call, result, says, user
from conformance.scenarios.segments.parts import AGENT, answered, compacted, forked, shortened, steps, summary
from conformance.systems.rebuild import RebuildUnderTest

BOTH = ("segments", "branches")


@covers("SEG-005")
async def test_a_harness_that_starts_over_makes_no_segment(rebuild: RebuildUnderTest, check: Check) -> None:
    for said in ("The build fails; it is the second try.", "Find out why the tests hang."):
        session = Session()
        steps(session, 3)
        steps(session, 2, session.begin(AGENT, user(said)))
        answer = await rebuild.ask({"envelope": session.envelope()}, split=BOTH)
        check.that("SEG-005", triples.withheld(answer), said)
    session = Session()
    session.call(session.begin(AGENT, user("Look.")), says("OK"))
    session.call(session.begin(AGENT, user("LOOK AGAIN.")), says("OK"))
    answer = await rebuild.ask({"envelope": session.envelope()}, split=BOTH)
    check.that("SEG-005", triples.withheld(answer), "a short answer whose letters stand in the next task")


def broken_in_a_segment() -> Iterator[tuple[str, Session]]:
    for at in (0, 1, 2):
        for what in ("other tokens", "no record", "an invalid record"):
            session = Session()
            parts, _ = compacted(session, 2, tail=0)
            _, second, third = parts[at]
            if what == "other tokens":
                third.record["prompt_token_ids"][2] += 500_000
            elif what == "no record":
                session.made.remove(second)
            else:
                second.broken(is_valid=False)
            yield f"{what} in segment {at}", session


@covers("SEG-006")
async def test_a_broken_segment_frees_nothing(rebuild: RebuildUnderTest, check: Check) -> None:
    for what, session in broken_in_a_segment():
        answer = await rebuild.ask({"envelope": session.envelope()}, split=BOTH)
        check.that("SEG-006", triples.withheld(answer), what)


@covers("SEG-007")
async def test_a_turn_that_was_lost_around_a_compaction_is_missed(rebuild: RebuildUnderTest, check: Check) -> None:
    session = Session()
    before = steps(session, 3)
    words = "Summary: the build was looked at, and nothing was found."
    summary(session, words)
    lost = says("I was never recorded.", call("rm -r build", id="call_lost"))
    start = shortened(session, words, before[-1:]).then(user("Go on."), lost, result("gone", "call_lost"))
    steps(session, 2, start)
    answer = await rebuild.ask({"envelope": session.envelope()}, split=["segments"])
    check.that("SEG-007", triples.withheld(answer))


@covers("SEG-009")
async def test_a_session_that_lost_records_is_withheld_in_parts_too(rebuild: RebuildUnderTest, check: Check) -> None:
    session = Session()
    compacted(session, 1)
    answer = await rebuild.ask({"envelope": session.envelope(incomplete=True)}, split=BOTH)
    check.that("SEG-009", triples.withheld(answer), "compacted")
    session = Session()
    forked(session, steps(session, 1)[-1])
    answer = await rebuild.ask({"envelope": session.envelope(incomplete=True)}, split=BOTH)
    check.that("SEG-009", triples.withheld(answer), "forked")


@covers("SEG-011")
async def test_answers_that_nobody_went_on_with_are_no_branches(rebuild: RebuildUnderTest, check: Check) -> None:
    for before in (1, 3):
        session = Session()
        last = steps(session, before)[-1]
        for words in ("It is repaired.", "I give up."):
            session.call(last.then(answered(last)), says(words))
        answer = await rebuild.ask({"envelope": session.envelope()}, split=BOTH)
        check.that("SEG-011", triples.withheld(answer), f"after {before} turns")


@covers("SEG-014")
async def test_parts_of_two_models_are_withheld(rebuild: RebuildUnderTest, check: Check) -> None:
    session = Session()
    before = steps(session, 3)
    words = "Summary: the build was looked at, and nothing was found."
    summary(session, words)
    steps(session, 2, shortened(session, words, before[-1:]).served(model="other-model"))
    answer = await rebuild.ask({"envelope": session.envelope()}, split=BOTH)
    check.that("SEG-014", triples.withheld(answer), "segments")
    session = Session()
    at = session.begin(AGENT, user("Find out why the build fails."))
    for model in ("policy-model", "other-model"):
        steps(session, 2, at.served(model=model))
    answer = await rebuild.ask({"envelope": session.envelope()}, split=BOTH)
    check.that("SEG-014", triples.withheld(answer), "branches")
