"""A history that is rewritten on the way: nothing passes for whole, and no token is lost."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.oracle import placing, triples, views
from conformance.scenarios.rebuild.sessions import TOOLS, Made, Session, call, result, says, system, user
from conformance.systems.rebuild import RebuildUnderTest

AGENT = system("You are an agent.")
TASK = user("Find out why the build fails.")


@dataclass(frozen=True)
class Compacted:
    """A session with its turns before and after, and the call that wrote the summary."""

    session: Session
    before: list[Made]
    summary: Made | None
    after: list[Made]

    @property
    def turns(self) -> list[Made]:
        return [*self.before, *self.after]


def steps(session: Session, number: int) -> list[Made]:
    """Turns that each end with a call, so that the session goes on after them."""
    found: list[Made] = []
    at = session.begin(AGENT, TASK)
    for _ in range(number):
        name = f"call_{len(session.made) + 1}"
        found.append(session.call(at, says(f"Step {name}.", call("ls", id=name))))
        at = found[-1].then(result("a.py", name))
    return found


def last_pair(turn: Made) -> tuple[dict[str, object], dict[str, object]]:
    """A turn and the result of its call, as a history keeps them."""
    answer = turn.record["messages"][-1]
    return answer, result("a.py", answer["tool_calls"][0]["id"])


def as_openhands(turns_after: int) -> Compacted:
    """The SDK's condenser: the summary becomes a second block of the first user message, and the tail is kept."""
    session = Session()
    before = steps(session, 3)
    asked = session.begin(system("You keep a context."), user("Everything: step 1, 2, 3."), tools=())
    summary = session.call(asked, says("We looked."))
    told = user([{"type": "text", "text": TASK["content"]}, {"type": "text", "text": "We looked."}])
    start = session.begin(AGENT, told, *last_pair(before[-1]))
    return Compacted(session, before, summary, session.turns(turns_after, start))


def as_opencode(turns_after: int) -> Compacted:
    """The task is gone from the wire; the summary stands in the history as an answer, and the tail is kept."""
    session = Session()
    before = steps(session, 3)
    asked = session.begin(system("You summarise."), user("Everything: step 1, 2, 3."), tools=())
    summary = session.call(asked, says("We looked."))
    told = (user("What did we do so far?"), says("We looked."), *last_pair(before[-1]), user("Go on if there is more."))
    start = session.begin(AGENT, *told)
    return Compacted(session, before, summary, session.turns(turns_after, start))


def as_claude_code(turns_after: int) -> Compacted:
    """The summary is asked with the agent's own tools, beside the newest turn, which is kept with its call id."""
    session = Session()
    before = steps(session, 3)
    name = before[-2].record["messages"][-1]["tool_calls"][0]["id"]
    asked = result([{"type": "text", "text": "a.py"}, {"type": "text", "text": "Sum up what was done."}], name)
    summary = session.call(before[-2].then(asked), says("We looked."))
    told = user([{"type": "text", "text": "This session is being continued."}, {"type": "text", "text": "We looked."}])
    start = session.begin(system("You are an agent (2)."), told, *last_pair(before[-1]))
    return Compacted(session, before, summary, session.turns(turns_after, start))


def as_claude_code_by_hand(turns_after: int) -> Compacted:
    """The summary goes on from the last turn, and nothing stays verbatim after it, not even the system."""
    session = Session()
    before = steps(session, 3)
    name = before[-1].record["messages"][-1]["tool_calls"][0]["id"]
    before.append(
        session.call(before[-1].then(result("a.py", name), user("Sum up what was done.")), says("We looked."))
    )
    told = user([{"type": "text", "text": "This session is being continued."}, {"type": "text", "text": "We looked."}])
    start = session.begin(system("You are an agent (2)."), told, user("Go on."))
    return Compacted(session, before, None, session.turns(turns_after, start))


def without_a_summary_call(turns_after: int) -> Compacted:
    """The oldest turns are dropped, and nothing is said in their place."""
    session = Session()
    before = steps(session, 3)
    start = session.begin(AGENT, TASK, *last_pair(before[-1]))
    return Compacted(session, before, None, session.turns(turns_after, start))


Compact = Callable[[int], Compacted]

TOLD_BY_STRUCTURE: list[Compact] = [as_openhands, as_opencode, as_claude_code, without_a_summary_call]
"""The conversation after each shows by its system or by a turn that it is the one before."""


def each(compactions: Sequence[Compact]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("compacted", compactions, ids=[one.__name__ for one in compactions])


@covers("REB-063", "REB-064", "REB-065")
@each([*TOLD_BY_STRUCTURE, as_claude_code_by_hand])
async def test_a_compacted_session_is_withheld_and_keeps_its_tokens(
    rebuild: RebuildUnderTest, check: Check, compacted: Compact
) -> None:
    for turns_after in (1, 2, 3):
        made = compacted(turns_after)
        answer = await rebuild.ask({"envelope": made.session.envelope()})
        check.that("REB-063", triples.withheld(answer))
        check.that("REB-064", placing.all_delivered(answer, [turn.truth for turn in made.turns]))
        beside = [] if made.summary is None else [made.summary.truth]
        check.that("REB-065", placing.apart(answer, beside, [turn.truth for turn in made.turns]))


def with_other_tools(turns_after: int) -> Compacted:
    """A tool server has come up meanwhile, so that the shortened history is sent with more tools."""
    session = Session()
    before = steps(session, 3)
    start = session.begin(AGENT, TASK, *last_pair(before[-1]), tools=[*TOOLS, {"id": "search"}])
    return Compacted(session, before, None, session.turns(turns_after, start))


@covers("REB-066")
@each([*TOLD_BY_STRUCTURE, as_claude_code_by_hand, with_other_tools])
async def test_a_compaction_right_before_the_last_call_is_seen(
    rebuild: RebuildUnderTest, check: Check, compacted: Compact
) -> None:
    made = compacted(1)
    answer = await rebuild.ask({"envelope": made.session.envelope()})
    check.that("REB-066", placing.no_side_calls(answer, [made.after[0].truth]))
    whole = triples.one_clean_chain(answer, [turn.truth for turn in made.before])
    check("REB-066", not whole.ok, expected="not clean without its last call", seen=triples.standing(answer))


@covers("REB-067")
@each(TOLD_BY_STRUCTURE)
async def test_each_part_of_a_compacted_session_is_trained_once(
    rebuild: RebuildUnderTest, check: Check, compacted: Compact
) -> None:
    made = compacted(2)
    parts = [[turn.truth for turn in part] for part in (made.before, made.after)]
    answer = await rebuild.ask({"envelope": made.session.envelope()}, split=["segments"])
    check.that("REB-067", views.each_trained_once(answer, [call for part in parts for call in part]))
    check.that("REB-067", views.same_sequences(answer, map(views.window, parts)))


def sessions_compacted_twice() -> Iterator[Session]:
    for compacted in (as_openhands, as_opencode, without_a_summary_call):
        made = compacted(2)
        name = made.session.made[-1].uuid
        made.session.call(made.session.begin(AGENT, user(f"Summary of {name}."), user("Go on.")), says("Done."))
        yield made.session


@covers("REB-063", "REB-064")
async def test_a_session_that_was_compacted_twice_is_withheld(rebuild: RebuildUnderTest, check: Check) -> None:
    for session in sessions_compacted_twice():
        answer = await rebuild.ask({"envelope": session.envelope()})
        check.that("REB-063", triples.withheld(answer))
        beside = [one for one in session.made if not one.record["tools"]]
        check.that("REB-064", placing.all_delivered(answer, [t.truth for t in session.made if t not in beside]))


def as_codex(turns_after: int) -> Compacted:
    """What the user said stands at the beginning again, letter by letter, and the summary is one more of his words."""
    session = Session()
    before = steps(session, 3)
    start = session.begin(AGENT, TASK).then(user("Another model looked at this already: the build is broken."))
    return Compacted(session, before, None, session.turns(turns_after, start))


@covers("CMP-013")
async def test_a_beginning_that_is_told_again_with_a_summary_is_no_retry(
    rebuild: RebuildUnderTest, check: Check
) -> None:
    for turns_after in (1, 2, 3):
        made = as_codex(turns_after)
        answer = await rebuild.ask({"envelope": made.session.envelope()})
        check.that("CMP-013", triples.withheld(answer), f"{turns_after} turns after it")
