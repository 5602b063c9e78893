"""Why a rollout is not clean, told so that a fleet can count it."""

from collections.abc import Iterator
from typing import Any

from conformance.contract.vocabulary import ReasonCode
from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.scenarios.rebuild.sessions import TOOLS, Made, Session, says, system, user
from conformance.systems.rebuild import RebuildUnderTest


def causes() -> Iterator[tuple[ReasonCode, Any]]:
    """An envelope for each cause that one session can have."""
    yield from broken_chains()
    yield from several_answers()
    yield from several_conversations()
    yield from missing_records()


def broken_chains() -> Iterator[tuple[ReasonCode, Any]]:
    session, last = begun()
    session.turns(1, last.then(user("Go on.")).retokenised(at=5))
    yield ReasonCode.TOKENS_DISAGREE, session.envelope()

    session, last = begun()
    session.turns(1, last.then(user("Go on.")).retold(1, user("Break the build.")))
    yield ReasonCode.HISTORY_DISAGREES, session.envelope()

    session, last = begun()
    session.turns(1, last.then(user("Go on.")).served(model="another-model"))
    yield ReasonCode.MODEL_CHANGED, session.envelope()

    session, last = begun()
    session.turns(2, session.begin(system("You are an agent."), user("So far: nothing."), user("Go on.")))
    yield ReasonCode.HISTORY_REWRITTEN, session.envelope()


def several_answers() -> Iterator[tuple[ReasonCode, Any]]:
    session, last = begun()
    for words in ("Yes.", "No."):
        session.call(last.then(user("Sure?")), says(words))
    sides = session.made[-2:]
    yield ReasonCode.UNRESOLVED_SIBLINGS, session.envelope()

    for side in sides:
        session.call(side.then(user("Why?")), says("I looked."))
    yield ReasonCode.FORK, session.envelope()


def several_conversations() -> Iterator[tuple[ReasonCode, Any]]:
    session, _ = begun()
    session.turns(2, session.begin(system("You explore."), user("Search."), tools=({**TOOLS[0], "id": "search"},)))
    session.turns(1, session.made[1].then(user("Go on.")))
    yield ReasonCode.SEVERAL_CHAINS, session.envelope()

    session = Session()
    for words in ("You repair.", "You explore."):
        session.call(session.begin(system(words), user("Go.")), says("Done."))
    yield ReasonCode.AMBIGUOUS_MAIN, session.envelope()


def missing_records() -> Iterator[tuple[ReasonCode, Any]]:
    session, last = begun()
    session.turns(1, last.then(says("Not captured."), user("Go on.")))
    yield ReasonCode.UNCAPTURED_TURN, session.envelope()

    session, last = begun()
    session.turns(1, last.then(user("Go on.")))
    last.broken(generation_log_probs=None)
    yield ReasonCode.INVALID_RECORD, session.envelope()

    session, _ = begun()
    yield ReasonCode.RECORDS_LOST, session.envelope(incomplete=True)

    session = Session()
    session.turns(1)[0].broken(is_valid=False)
    yield ReasonCode.NO_VALID_RECORD, session.envelope()
    yield ReasonCode.NO_RECORDS, session.envelope([])


def begun() -> tuple[Session, Made]:
    session = Session()
    return session, session.turns(2)[-1]


@covers("REB-053")
async def test_each_cause_has_its_reason_code(rebuild: RebuildUnderTest, check: Check) -> None:
    """A system whose capabilities make a cause harmless may call the rollout clean."""
    for code, envelope in causes():
        answer = await rebuild.ask({"envelope": envelope})
        told = answer["outcome"] == "clean" or answer["reason_code"] == code
        check("REB-053", told, expected=code.value, seen=answer["reason_code"], where=f"a session with {code}")
