"""What is delivered apart where it is asked for, each token once."""

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.oracle import rollouts, triples, views
from conformance.scenarios.rebuild.sessions import Session, says, truth_of
from conformance.scenarios.segments.parts import answered, compacted, forked, steps, truth
from conformance.systems.rebuild import RebuildUnderTest

BOTH = ("segments", "branches")


@covers("SEG-001", "SEG-002")
async def test_each_part_is_free_by_its_own_name_alone(rebuild: RebuildUnderTest, check: Check) -> None:
    session = Session()
    compacted(session, 1)
    answer = await rebuild.ask({"envelope": session.envelope()}, split=["branches"])
    check.that("SEG-001", triples.withheld(answer))
    for shared in (1, 3):
        session = Session()
        forked(session, steps(session, shared)[-1])
        answer = await rebuild.ask({"envelope": session.envelope()}, split=["segments"])
        check.that("SEG-002", triples.withheld(answer), f"after {shared} turns")


@covers("SEG-003", "SEG-004")
async def test_a_session_compacted_three_times_is_trained_once(rebuild: RebuildUnderTest, check: Check) -> None:
    for tail in (0, 1, 2):
        session = Session()
        parts, summaries = compacted(session, 3, tail=tail)
        answer = await rebuild.ask({"envelope": session.envelope()}, split=["segments"])
        check.that("SEG-003", views.each_trained_once(answer, [one for part in parts for one in truth(part)]))
        check.that("SEG-003", views.same_sequences(answer, [views.window(truth(part)) for part in parts]))
        check.that("SEG-003", triples.only_sampled(answer, session.truth()), f"{tail} turns kept")
        check.that("SEG-004", triples.not_trained(answer, truth(summaries)), f"{tail} turns kept")


@covers("SEG-010", "SEG-012")
async def test_forks_below_forks_and_forks_of_segments_are_trained_once(
    rebuild: RebuildUnderTest, check: Check
) -> None:
    session = Session()
    shared = steps(session, 2)
    branches = forked(session, shared[-1])
    twigs = forked(session, branches[0][-1])
    answer = await rebuild.ask({"envelope": session.envelope()}, split=["branches"])
    check.that("SEG-010", views.each_trained_once(answer, truth(session.made)))
    check.that("SEG-010", views.same_sequences(answer, [views.window(truth(way)) for way in (branches[1], *twigs)]))
    check.that("SEG-010", rollouts.never_wrong(answer, session.truth()))

    session = Session()
    parts, summaries = compacted(session, 1)
    forked(session, parts[1][-1])
    answer = await rebuild.ask({"envelope": session.envelope()}, split=BOTH)
    turns = [turn for turn in session.made if turn not in summaries]
    check.that("SEG-012", views.each_trained_once(answer, truth(turns)))
    check.that("SEG-012", rollouts.never_wrong(answer, session.truth()))


@covers("SEG-008")
async def test_the_first_record_of_each_part_says_that_it_is_one(rebuild: RebuildUnderTest, check: Check) -> None:
    session = Session()
    parts, _ = compacted(session, 2)
    answer = await rebuild.ask({"envelope": session.envelope()}, split=BOTH)
    seen = sorted(note["record_uuid"] for note in answer["notes"] if note["code"] == "segment")
    check.equal("SEG-008", expected=sorted(part[0].uuid for part in parts[1:]), seen=seen, where="segments")
    session = Session()
    branches = forked(session, steps(session, 2)[-1])
    answer = await rebuild.ask({"envelope": session.envelope()}, split=BOTH)
    noted = [note["record_uuid"] for note in answer["notes"] if note["code"] == "branch"]
    firsts = [branch[0].uuid for branch in branches]
    ok = len(noted) == 1 and noted[0] in firsts
    check("SEG-008", ok, expected={"one of": firsts}, seen=noted, where="branches")


@covers("SEG-013")
async def test_whole_rollouts_are_whole_or_asked_for_in_parts(rebuild: RebuildUnderTest, check: Check) -> None:
    session = Session()
    compacted(session, 1)
    envelope = {"envelope": session.envelope()}
    answer = await rebuild.ask(envelope, allow_partial=False)
    refused = answer["outcome"] == "failed" and answer["error"] is not None and not rollouts.trained(answer)
    check("SEG-013", refused, expected="failed, with an error", seen=triples.standing(answer))
    answer = await rebuild.ask(envelope, allow_partial=False, split=["segments"])
    check("SEG-013", answer["error"] is None, expected="no error", seen=answer["error"], where="asked for in segments")


@covers("SEG-015")
async def test_a_compacted_child_is_split_beside_its_root(rebuild: RebuildUnderTest, check: Check) -> None:
    root, child = Session("root"), Session("child", parent="root")
    turns = steps(root, 2)
    turns.append(root.call(turns[-1].then(answered(turns[-1])), says("Done.")))
    parts, _ = compacted(child, 1)
    answer = await rebuild.ask({"sessions": [child.envelope(), root.envelope()]}, split=["segments"])
    sequences = [views.window(truth(part)) for part in (turns, *parts)]
    check.that("SEG-015", views.same_sequences(answer, sequences))
    check.that("SEG-015", rollouts.never_wrong(answer, truth_of(root, child)))
    named = sorted((one["session_id"], str(one["parent"])) for one in answer["trajectories"])
    check.equal("SEG-015", expected=[("child", "root"), ("child", "root"), ("root", "None")], seen=named)
