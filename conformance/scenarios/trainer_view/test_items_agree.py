"""A trainer that reads items and one that reads columns have to see one rollout."""

from collections.abc import Callable

import pytest

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.oracle import sequences
from conformance.scenarios.rebuild.sessions import Session, says, user
from conformance.scenarios.trainer_view.test_sequences import busy
from conformance.systems.rebuild import RebuildUnderTest


def straight(session: Session) -> None:
    session.turns(4)


def beside(session: Session) -> None:
    busy(session)


def broken(session: Session) -> None:
    last = session.turns(3)[-1]
    session.call(last.then(user("Go on.")).retokenised(at=6), says("Really."))


def silent(session: Session) -> None:
    first = session.call(session.begin(user("Look.")), says(""), generation=1)
    session.call(first.then(user("Speak.")), says("Well."), generation=9)


@covers("TRV-014", "TRV-015")
@pytest.mark.parametrize("play", [straight, beside, broken, silent])
async def test_items_and_columns_tell_one_rollout(
    play: Callable[[Session], None], rebuild: RebuildUnderTest, check: Check
) -> None:
    session = Session()
    play(session)
    answer = await rebuild.ask({"envelope": session.envelope()})
    for one in answer["trajectories"]:
        check.that("TRV-014", sequences.items_say_the_same(one))
        check.that("TRV-015", sequences.prompts_say_the_same(one))
    for requirement in ("TRV-014", "TRV-015"):
        check(requirement, bool(answer["trajectories"]), expected="a sequence", seen="none")
