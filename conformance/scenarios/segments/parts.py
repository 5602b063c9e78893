"""Sessions in parts, built by hand: compacted, forked, begun anew, and what can be wrong with one of the parts."""

from collections.abc import Sequence

from conformance.oracle.rollouts import Sampled
from conformance.scenarios.rebuild.sessions import Context, Made, Message, Session, call, result, says, system, user

AGENT = system("You are an agent.")
TASK = user("Find out why the build fails.")


def step(session: Session, at: Context) -> Made:
    """A turn that ends with a call, so that the session goes on after it."""
    name = f"call_{len(session.made) + 1}"
    return session.call(at, says(f"Step {name}.", call("ls", id=name)))


def answered(turn: Made) -> Message:
    """The result of the call that a turn ends with."""
    return result("a.py", turn.record["messages"][-1]["tool_calls"][0]["id"])


def steps(session: Session, number: int, at: Context | None = None) -> list[Made]:
    at = at or session.begin(AGENT, TASK)
    found: list[Made] = []
    for _ in range(number):
        found.append(step(session, at))
        at = found[-1].then(answered(found[-1]))
    return found


def summary(session: Session, words: str) -> Made:
    """Asked beside the conversation, without tools."""
    asked = session.begin(system("You shorten records."), user(f"All of it, to call {len(session.made)}."), tools=())
    return session.call(asked, says(words))


def shortened(session: Session, words: str, tail: Sequence[Made] = ()) -> Context:
    """A conversation that begins with a summary and keeps some of the last turns word for word."""
    kept = [message for turn in tail for message in (turn.record["messages"][-1], answered(turn))]
    return session.begin(AGENT, user(f"{TASK['content']}\n{words}"), *kept)


def compacted(session: Session, times: int, *, tail: int = 1, turns: int = 3) -> tuple[list[list[Made]], list[Made]]:
    """The turns of each segment, and the calls that wrote the summaries."""
    parts, summaries = [steps(session, turns)], list[Made]()
    for number in range(times):
        words = f"Summary {number}: the build was looked at, and nothing was found."
        summaries.append(summary(session, words))
        parts.append(steps(session, turns, shortened(session, words, parts[-1][-tail:] if tail else ())))
    return parts, summaries


def forked(session: Session, at: Made) -> list[list[Made]]:
    """Two ways on from one turn, each of two turns."""
    return [steps(session, 2, at.then(answered(at))) for _ in range(2)]


def truth(turns: Sequence[Made]) -> list[Sampled]:
    return [turn.truth for turn in turns]
