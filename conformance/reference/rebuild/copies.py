"""One generation is for one place: records that tell of it elsewhere, or otherwise, are not trained beside it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from conformance.contract.vocabulary import ReasonCode
from conformance.reference.rebuild.errors import Rule, TraceError
from conformance.reference.rebuild.outcome import held_back
from conformance.reference.rebuild.pieces import Finding
from conformance.reference.rebuild.reading import Broken
from conformance.reference.rebuild.turns import Turn

if TYPE_CHECKING:
    from conformance.reference.rebuild.session import SessionRollout

Generation = tuple[str, tuple[int, ...], tuple[float, ...]]


def generation(turn: Turn) -> Generation:
    """What no two generations of an engine share: their request id with all ids and log probs."""
    return turn.request_id, tuple(turn.generation), tuple(turn.log_probs)


def disputed(found: Iterable[Turn | Broken]) -> dict[str, TraceError]:
    """By uuid the turns of one session that another record contradicts, so that nobody knows which tells the truth.

    One uuid stands for different records, or one generation behind different prompts. Equal records are no dispute.
    """
    found = list(found)
    invalid = {one.error.record_uuid for one in found if isinstance(one, Broken)}
    turns = [one for one in found if isinstance(one, Turn)]
    by_uuid: dict[str, set[object]] = defaultdict(set)
    by_generation: dict[Generation, set[object]] = defaultdict(set)
    times = Counter(turn.uuid for turn in turns)
    for turn in turns:
        if times[turn.uuid] > 1:  # whole histories are only compared where they must be
            said = (turn.prompt_end, turn.model, turn.normal.tobytes(), turn.agent_id, turn.native_session_id)
            by_uuid[turn.uuid].add((said, generation(turn)))
        by_generation[generation(turn)].add(turn.prompt_end)
    errors: dict[str, TraceError] = {}
    for turn in turns:
        if len(by_uuid[turn.uuid]) > 1 or turn.uuid in invalid:
            detail = f"records of the one uuid {turn.uuid} say different things"
            errors[turn.uuid] = TraceError(Rule.UUID_UNIQUE, detail, turn.uuid)
        elif len(by_generation[generation(turn)]) > 1:
            detail = f"one generation of request {turn.request_id} stands behind different prompts"
            errors[turn.uuid] = TraceError(Rule.REQUEST_ID, detail, turn.uuid)
    return errors


def withhold_copies(sessions: Sequence["SessionRollout"]) -> None:
    """Withholds each trajectory that holds a generation which an earlier one holds: of agents, or of sessions."""
    held: dict[object, str] = {}
    for session in sessions:
        for number, one in enumerate(session.trajectories):
            turns = [session.turns[uuid] for uuid in one.record_uuids]
            again = next((turn for turn in turns if any(mark in held for mark in _marks(turn))), None)
            for turn in turns:
                for mark in _marks(turn):
                    held.setdefault(mark, one.session_id)
            if again is None:
                continue
            before = next(held[mark] for mark in _marks(again) if mark in held)
            detail = f"the generation of record {again.uuid} stands in another trajectory too, of session {before}"
            error = TraceError(Rule.UUID_UNIQUE, detail, again.uuid)
            finding = Finding(ReasonCode.INVALID_RECORD, detail, again, error)
            session.trajectories[number] = held_back(one, finding.reason)
            session.broken = session.broken or finding
            if one.agent is None:
                session.finding = session.finding or finding


def _marks(turn: Turn) -> Iterator[object]:
    yield turn.uuid
    yield generation(turn)
