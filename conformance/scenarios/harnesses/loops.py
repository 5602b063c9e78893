"""What one agent's loop came to: did it run to its end, and is each of its calls recorded under the right session?"""

from collections.abc import Iterable, Mapping
from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.scene import Scene
from conformance.oracle import records
from fakes.harnesses.conversation import Conversation
from fakes.harnesses.exchanges import Exchange

JSON = Any
Call = Mapping[str, JSON]
Turn = dict[str, JSON]


def loop(*calls: Call, end: Call | None = None) -> list[Turn]:
    """Turns in which the model thinks and makes these calls, one a turn, and ends with ``end`` or with text."""
    turns: list[Turn] = [{"calls": [call]} for call in calls]
    turns[0]["reasoning"] = "I look around first."
    return [*turns, {"calls": [end]} if end is not None else {"text": "{tag} It is done."}]


async def script(scene: Scene, **scopes: list[Turn]) -> None:
    """One scope of turns for each agent that is going to work."""
    named = {name: {"turns": turns} for name, turns in scopes.items()}
    await scene.script({"about": "Agents at work, one a scope.", "sampling": "drifting", "scopes": named})


def generations(talk: Conversation) -> list[Exchange]:
    """The requests of an agent itself that asked for a generation: all but the knock at its base address."""
    return [exchange for exchange in talk.exchanges if exchange.request.method == "POST"]


async def check_loop(
    scene: Scene, check: Check, requirement: str, talk: Conversation, *, calls: int, scope: int = 0
) -> None:
    """Ran to its end in so many calls, each of them recorded as it was sampled, under the scene's session."""
    seen = [talk.ended, talk.error, len(generations(talk))]
    ok = talk.ended in ("answered", "finished") and len(generations(talk)) == calls
    check(requirement, ok, expected=["an end of its own", None, calls], seen=seen, where=talk.harness)
    captured = await scene.records()
    rows = [row for row in await scene.ledger() if row["scope"] == scope]
    of_session = [record.get("session_id") for record in captured]
    check.equal(requirement, expected=[scene.session()] * calls, seen=of_session, where=f"{talk.harness}, sessions")
    check.that(requirement, records.law(captured, rows))
    check.that(requirement, records.none_lost(captured, rows))


async def check_names(
    scene: Scene, check: Check, requirement: str, session: str, calls: int, others: Iterable[str | None]
) -> None:
    """All calls of an agent lie under ``session``; there is nothing under what else its requests name."""
    captured = await scene.records(session)
    check.equal(requirement, expected=calls, seen=len(captured), where=f"records under {session}")
    held = {other: len(await scene.records(other)) for other in others if other and other != session}
    check(requirement, bool(held) and not any(held.values()), expected="none under the harness's own", seen=held)


def named_in(talk: Conversation, *headers: str) -> list[str]:
    """What these headers of an agent's requests say, each value once."""
    values = (exchange.request.header(header) for exchange in generations(talk) for header in headers)
    return list(dict.fromkeys(value for value in values if value is not None))
