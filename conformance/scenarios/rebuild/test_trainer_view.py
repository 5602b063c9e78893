"""What the trainer takes: the tokens that were in the window, masked where they were sampled."""

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.oracle import triples, views
from conformance.scenarios.rebuild.sessions import Made, Session, call, result, says, system, user
from conformance.systems.rebuild import RebuildUnderTest

END = 151645
"""An end token, as engines sample it: it is the last id of a turn that stopped by itself."""

ODD_IDS = (0, 1, 151936, 262_144_000, 2**31 - 1, 2**31, 2**53 + 1)
"""Ids beyond any vocabulary, and those that a narrow integer or a float would change."""

ODD_LOG_PROBS = (-0.0, 0.0, -5e-324, -1.1754943508222875e-38, -0.10000000149011612, -1e-05, -87.33654022216797)
"""Zeros of both signs, the smallest doubles, floats widened from 32 bits."""


def begun(session: Session) -> Made:
    """A turn whose context and generation hold the odd ids, and whose log probs are odd too."""
    start = session.begin(system("You are an agent."), user("Look."))
    answer = says("I look.", call(id="call_1"))
    return session.call(start, answer, generation=(*ODD_IDS, END), log_probs=(*ODD_LOG_PROBS, -0.5))


def whole_session() -> tuple[Session, list[Made]]:
    """Turns that a view has to hold: a call, two calls at once, a reminder, silence, a last word."""
    session = Session()
    turns = [begun(session)]
    at = turns[-1].then(result("a.py\n"), tokens=7)
    turns.append(session.call(at, says("", call("cat a", id="call_2"), call("cat b", id="call_3")), generation=9))
    at = turns[-1].then(result("one", "call_2"), result("", "call_3"), user("Be quick."), tokens=1)
    turns.append(session.call(at, says(""), generation=1))
    turns.append(session.call(turns[-1].then(user("Go on."), tokens=2), says("It is repaired."), generation=30))
    return session, turns


@covers("REB-077", "REB-078", "REB-079", "REB-080", "REB-084")
async def test_the_view_of_a_session_is_its_window_token_by_token(rebuild: RebuildUnderTest, check: Check) -> None:
    session, turns = whole_session()
    answer = await rebuild.ask({"envelope": session.envelope()})
    check.that("REB-084", triples.one_clean_chain(answer, [turn.truth for turn in turns]))
    if not answer["trajectories"]:
        raise Inconclusive("a plain session became no trajectory")
    check.that("REB-077", views.equal_lengths(answer))
    check.that("REB-078", views.columns(answer, session.truth(), "mask"))
    check.that("REB-079", views.columns(answer, session.truth(), "log_probs"))
    check.that("REB-080", views.columns(answer, session.truth(), "tokens"))


@covers("REB-077", "REB-078", "REB-079", "REB-080")
async def test_what_is_withheld_is_told_as_exactly(rebuild: RebuildUnderTest, check: Check) -> None:
    session = Session()
    before = session.turns(3)
    session.turns(2, before[-1].then(user("Go on.")).retokenised(at=6))
    answer = await rebuild.ask({"envelope": session.envelope()})
    check.that("REB-077", views.equal_lengths(answer))
    check.that("REB-078", views.columns(answer, session.truth(), "mask"))
    check.that("REB-079", views.columns(answer, session.truth(), "log_probs"))
    check.that("REB-080", views.columns(answer, session.truth(), "tokens"))


@covers("REB-081")
async def test_no_end_is_added_to_a_generation_that_was_cut(rebuild: RebuildUnderTest, check: Check) -> None:
    for turns_after in (0, 1):
        session = Session()
        first = session.call(session.begin(user("Write a lot.")), says("A lot"), generation=(5000, 5001, END))
        at = first.then(user("More."))
        cut = session.call(at, says("of wo"), generation=(5002, 5003), finish_reason="length")
        if turns_after:
            session.call(cut.then(user("Go on."), tokens=3), says("rds."), generation=(5004, END))
        answer = await rebuild.ask({"envelope": session.envelope()})
        check.that("REB-081", views.columns(answer, session.truth(), "tokens"))


@covers("REB-082")
async def test_a_turn_of_only_an_end_token_is_trained(rebuild: RebuildUnderTest, check: Check) -> None:
    for place in (1, 2, 3):
        session = Session()
        at = session.begin(system("You are an agent."), user("Look."))
        turns = []
        for number in (1, 2, 3):
            silent = number == place
            turns.append(session.call(at, says("" if silent else "Yes."), generation=(END,) if silent else 4))
            at = turns[-1].then(user("Go on."))
        answer = await rebuild.ask({"envelope": session.envelope()})
        check.that("REB-082", views.each_trained_once(answer, [turn.truth for turn in turns]))


@covers("REB-083")
async def test_a_generation_without_ids_trains_nothing(rebuild: RebuildUnderTest, check: Check) -> None:
    """Its words stand in the next prompt, so that a rebuild could take their ids for sampled ones."""
    for claimed in (True, False):
        session = Session()
        first, *_, unread = session.turns(2)
        session.call(unread.then(user("Go on.")), says("It is repaired."))
        unread.broken(generation_token_ids=[], generation_log_probs=[], is_valid=claimed)
        answer = await rebuild.ask({"envelope": session.envelope()})
        context = {*unread.truth.prompt, *unread.truth.generation} - {*first.truth.generation}
        check.that("REB-083", views.never_masked_in(answer, context))
        held = {uuid: one for uuid, one in session.truth().items() if uuid != unread.uuid}
        check.that("REB-083", views.columns(answer, held, "tokens"))
