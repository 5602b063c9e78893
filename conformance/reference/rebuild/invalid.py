"""Which records of a session are valid, and what the others still tell: what was asked and answered around them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from conformance.reference.rebuild.copies import disputed
from conformance.reference.rebuild.errors import Rule, TraceError
from conformance.reference.rebuild.reading import Attempt, Broken, Place, Session
from conformance.reference.rebuild.turns import Keys, Turn


@dataclass
class Validated:
    """The valid records of a session in the contract's order, and what the others broke."""

    turns: list[Turn]
    errors: list[TraceError]
    invalid_answers: dict[int, TraceError]
    invalid_attempts: list[Attempt] = field(default_factory=list)

    def overtaken(self, turn: Turn, keys: Keys) -> bool:
        """Whether a later call went on from the turn's request and not from its answer, and its own is not valid."""
        whose = (turn.native_session_id, turn.agent_id)
        return any(
            attempt.agent == whose
            and attempt.place > turn.place
            and attempt.tools_key == turn.tools_key
            and passes_over(turn, attempt, keys)
            for attempt in self.invalid_attempts
        )

    def unheard(self, start: Turn, turns: Sequence[Turn]) -> TraceError | None:
        """What broke a call that may have been the agent's conversation, or its start, in place of these ``turns``.

        A line without tools is none where a call had some; a first call counts unless it was made once more.
        """
        whose = {(turn.native_session_id, turn.agent_id) for turn in turns}
        for attempt in self.invalid_attempts:
            if attempt.agent not in whose or not attempt.has_tools:
                continue
            again = any(turn.request[: len(attempt.request)] == attempt.request for turn in turns)
            is_first = attempt.tools_key == start.tools_key and attempt.place < start.place
            if not start.tools or (is_first and not again):
                return attempt.error
        return None


def passes_over(turn: Turn, attempt: Attempt, keys: Keys) -> bool:
    """Whether the attempt has the turn's request in its own, and the turn's answer not after it: a retry, a nudge."""
    asked = turn.request_length
    if attempt.request[:asked] != turn.request:
        return False
    return len(attempt.request) == asked or not keys.agree(turn.exact[-1], attempt.exact[asked])


def validated(session: Session) -> Validated:
    """Of equal records with one uuid the first is it; of those that contradict one another none is."""
    turns: dict[str, Turn] = {}
    known = Validated([], [], {})
    disputes = disputed(entry.found for entry in session.entries)
    for entry in sorted(session.entries, key=lambda entry: (entry.place, entry.index)):
        found = entry.found
        dispute = disputes.get(found.uuid) if isinstance(found, Turn) else None
        if isinstance(found, Turn) and found.uuid not in turns and dispute is None:
            turns[found.uuid] = found
            continue
        broken = found if isinstance(found, Broken) else _repeated(found, entry.place, dispute)
        known.errors.append(broken.error)
        if broken.answer is not None:
            known.invalid_answers.setdefault(broken.answer, broken.error)
        if broken.attempt is not None:
            known.invalid_attempts.append(broken.attempt)
    known.turns.extend(sorted(turns.values(), key=lambda turn: turn.place))
    return known


def _repeated(turn: Turn, place: Place, dispute: TraceError | None) -> Broken:
    error = dispute or TraceError(Rule.UUID_UNIQUE, f"two records have the uuid {turn.uuid}", turn.uuid)
    agent = (turn.native_session_id, turn.agent_id)
    attempt = Attempt(turn.request, turn.exact[:-1], turn.tools_key, bool(turn.tools), agent, place, error)
    return Broken(error, turn.answer, attempt)
