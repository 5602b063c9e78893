"""Several answers to one prompt: which of them is the turn, and how often anything is trained."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.oracle import triples, views
from conformance.scenarios.rebuild.sessions import Context, Made, Session, call, result, says, system, user
from conformance.systems.rebuild import RebuildUnderTest

BEFORE_ALL = "2026-12-01T07:00:00.000000+00:00"
AFTER_ALL = "2026-12-01T09:00:00.000000+00:00"


def begun(session: Session) -> Context:
    return session.begin(system("You are an agent."), user("Find out why the build fails."))


def step(session: Session, at: Context, number: int) -> Made:
    return session.call(at, says(f"Step {number}.", call(f"cat {number}.py", id=f"call_{number}")))


def after(made: Made) -> Context:
    """With the result of the call that the turn made."""
    asked = made.record["messages"][-1]["tool_calls"][0]["id"]
    return made.then(result("some text", asked))


def one_retry_in_a_session_of_four_turns() -> Iterator[tuple[str, Session, list[Made], Made]]:
    """Where it happened, the session, its turns, and the answer that nobody went on with."""
    for first_wins in (True, False):
        for place in (1, 2, 3):
            for sorts in (None, BEFORE_ALL, AFTER_ALL):
                session, turns, lost = Session(), [], None
                at = begun(session)
                for number in (1, 2, 3, 4):
                    if number == place and not first_wins:
                        lost = step(session, at, 20)
                    turns.append(step(session, at, number))
                    if number == place and first_wins:
                        lost = step(session, at, 20)
                    at = after(turns[-1])
                assert lost is not None
                if sorts is not None:
                    lost.record["captured_at"] = sorts
                which = "second" if first_wins else "first"
                yield f"{which} answer to call {place} lost, sorted at {sorts or 'its place'}", session, turns, lost


@covers("REB-054", "REB-055")
async def test_a_retry_after_a_cut_stream_is_trained_once(rebuild: RebuildUnderTest, check: Check) -> None:
    for where, session, turns, lost in one_retry_in_a_session_of_four_turns():
        answer = await rebuild.ask({"envelope": session.envelope()})
        check.that("REB-054", triples.not_trained(answer, [lost.truth]), where)
        check.that("REB-055", triples.one_clean_chain(answer, [turn.truth for turn in turns]), where)


@covers("REB-054", "REB-055", "REB-056")
async def test_an_answer_that_the_harness_drops_before_it_nudges_is_not_trained(
    rebuild: RebuildUnderTest, check: Check
) -> None:
    for dropped_answer in (says(""), says("Use", call(arguments='{"comm')), says("I am done.")):
        session = Session()
        first = step(session, begun(session), 1)
        dropped = session.call(after(first), dropped_answer)
        nudged = step(session, after(first).then(user("Use a tool, or say that you are done.")), 2)
        last = session.call(after(nudged), says("It is repaired."))
        answer = await rebuild.ask({"envelope": session.envelope()})
        check.that("REB-056", triples.not_trained(answer, [dropped.truth]))
        check.that("REB-054", triples.not_trained(answer, [dropped.truth]))
        check.that("REB-055", triples.one_clean_chain(answer, [first.truth, nudged.truth, last.truth]))


@covers("REB-057", "REB-058")
async def test_a_call_that_was_recorded_twice_is_one_turn(rebuild: RebuildUnderTest, check: Check) -> None:
    for place in (1, 2, 3):
        for same_request in (True, False):
            session = Session()
            turns = session.turns(3)
            doubled = turns[place - 1]
            copy = dict(doubled.record, uuid=f"{session.session_id}-again")
            if not same_request:
                copy["request_id"] = f"{copy['request_id']}-again"
            answer = await rebuild.ask({"envelope": session.envelope([*session.records, copy])})
            check.that("REB-057", views.nothing_trained_twice(answer))
            check.that("REB-058", triples.one_clean_chain(answer, [turn.truth for turn in turns]))


@covers("REB-057", "REB-058")
async def test_two_equal_answers_that_differ_in_a_call_id_alone_are_one_turn(
    rebuild: RebuildUnderTest, check: Check
) -> None:
    for taken in (0, 1):
        session = Session()
        start = begun(session)
        one = session.call(start, says("I look.", call(id="call_a")))
        other = session.call(
            start,
            says("I look.", call(id="call_b")),
            generation=one.truth.generation,
            log_probs=one.truth.log_probs,
        )
        kept = (one, other)[taken]
        last = session.call(after(kept), says("It is repaired."))
        answer = await rebuild.ask({"envelope": session.envelope()})
        check.that("REB-057", views.nothing_trained_twice(answer))
        check.that("REB-058", triples.one_clean_chain(answer, [kept.truth, last.truth]))


@covers("REB-055", "REB-059")
async def test_of_two_spellings_of_one_answer_the_one_in_the_later_prompt_is_the_turn(
    rebuild: RebuildUnderTest, check: Check
) -> None:
    for place in (1, 2):
        for taken in (0, 1):
            session = Session()
            turns = [] if place == 1 else [step(session, begun(session), 1)]
            at = after(turns[0]) if turns else begun(session)
            spellings = [step(session, at, 9), step(session, at, 9)]
            turns += [spellings[taken], step(session, after(spellings[taken]), 10)]
            answer = await rebuild.ask({"envelope": session.envelope()})
            check.that("REB-059", triples.not_trained(answer, [spellings[1 - taken].truth]))
            check.that("REB-055", triples.one_clean_chain(answer, [turn.truth for turn in turns]))


def forks() -> Iterator[tuple[Session, list[Made], list[list[Made]]]]:
    """A session, the turns that its branches share, and what each branch made after them."""
    for shared_turns in (0, 2):
        session = Session()
        at, shared = begun(session), []
        for number in range(shared_turns):
            shared.append(step(session, at, number))
            at = after(shared[-1])
        firsts = [step(session, at, 20), step(session, at, 30)]
        seconds = [step(session, after(first), 40) for first in firsts]
        yield session, shared, [[first, second] for first, second in zip(firsts, seconds, strict=True)]

    session = Session()
    shared = [step(session, begun(session), 1)]
    ends = [shared[0].then(result(words, "call_1")) for words in ("It failed.", "It passed.")]
    firsts = [step(session, end, 2) for end in ends]
    yield session, shared, [[first, step(session, after(first), 3)] for first in firsts]


@covers("REB-060", "REB-061")
async def test_a_fork_is_not_trained_as_one_episode(rebuild: RebuildUnderTest, check: Check) -> None:
    for session, shared, branches in forks():
        answer = await rebuild.ask({"envelope": session.envelope()})
        check.that("REB-060", triples.withheld(answer))
        answer = await rebuild.ask({"envelope": session.envelope()}, split=["branches"])
        sampled = [turn.truth for turns in (shared, *branches) for turn in turns]
        check.that("REB-061", views.each_trained_once(answer, sampled))
        ends = [views.window([turn.truth for turn in branch]) for branch in branches]
        check.that("REB-061", views.same_sequences(answer, ends))


@covers("REB-092")
async def test_an_answer_is_not_trained_where_the_one_that_replaced_it_is_bad(
    rebuild: RebuildUnderTest, check: Check
) -> None:
    for turns_before in (0, 2):
        session = Session()
        at = begun(session)
        for number in range(turns_before):
            at = after(step(session, at, number))
        rejected = session.call(at, says("It is repaired."))
        session.call(at, says("It is not, but now it is.")).broken(generation_log_probs=None)
        answer = await rebuild.ask({"envelope": session.envelope()})
        check.that("REB-092", triples.not_trained(answer, [rejected.truth]), f"after {turns_before} turns")


@covers("REB-100")
async def test_an_answer_is_not_trained_where_a_nudge_took_its_place_and_that_call_is_bad(
    rebuild: RebuildUnderTest, check: Check
) -> None:
    for turns_before in (0, 2):
        for told in ([user("Use a tool.")], [says("(nothing)"), user("Use a tool.")]):
            session = Session()
            at = begun(session)
            for number in range(turns_before):
                at = after(step(session, at, number))
            dropped = session.call(at, says(""))
            session.call(at.then(*told), says("It is repaired.")).broken(generation_log_probs=None)
            answer = await rebuild.ask({"envelope": session.envelope()})
            check.that("REB-100", triples.not_trained(answer, [dropped.truth]), f"after {turns_before} turns")


def answers_that_no_client_had() -> Iterator[tuple[str, Session, list[Made], Made]]:
    """What came of it, the session, the turns that its harness had, and the answer that it had not."""
    for turns_before in (0, 2):
        for then in ("no more", "asked again", "asked again, in equal words", "asked again with a nudge"):
            for sorts in (None, AFTER_ALL):
                session, had = Session(), []
                at = begun(session)
                for number in range(turns_before):
                    had.append(step(session, at, number))
                    at = after(had[-1])
                lost = step(session, at, 20)
                if then == "asked again with a nudge":
                    had.append(step(session, at.then(user("Go on.")), 30))
                elif then != "no more":
                    had.append(step(session, at, 30 if then == "asked again" else 20))
                if sorts is not None:
                    lost.record["captured_at"] = sorts
                yield f"after {turns_before} turns, {then}, sorted at {sorts or 'its place'}", session, had, lost


@covers("REB-098", "REB-099")
async def test_an_answer_that_no_client_had_is_no_turn(rebuild: RebuildUnderTest, check: Check, tmp_path: Path) -> None:
    for number, (where, session, had, lost) in enumerate(answers_that_no_client_had()):
        sources: list[dict[str, Any]] = [{"envelope": session.envelope(undelivered=[lost.uuid])}]
        if "rebuild-directory" in rebuild.capabilities:
            sources.append({"log_dir": str(session.write(tmp_path / str(number), undelivered=[lost.uuid]))})
        for source in sources:
            answer = await rebuild.ask(source)
            check.that("REB-098", triples.not_trained(answer, [lost.truth]), f"{where}, {next(iter(source))}")
            if had:
                one_chain = triples.one_clean_chain(answer, [turn.truth for turn in had])
                check.that("REB-099", one_chain, f"{where}, {next(iter(source))}")


@covers("REB-062")
@pytest.mark.parametrize("turns_before", [0, 2], ids=["first-call", "third-call"])
async def test_nobody_guesses_which_of_the_last_answers_counted(
    rebuild: RebuildUnderTest, check: Check, turns_before: int
) -> None:
    for words in (("It is repaired.", "I give up."), ("It is repaired.", "It is repaired.")):
        session = Session()
        at = begun(session)
        for number in range(turns_before):
            at = after(step(session, at, number))
        for answer_words in words:
            session.call(at, says(answer_words))
        check.that("REB-062", triples.withheld(await rebuild.ask({"envelope": session.envelope()})))
