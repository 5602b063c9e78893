"""The rebuild of one session: its records validated, split by agent, linked, settled, and cut into trajectories."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from conformance.contract.rebuilds import ExcludedRecord, Note, Trajectory
from conformance.contract.vocabulary import ExcludedWhy, NoteCode, Outcome, ReasonCode
from conformance.reference.rebuild.agents import Agent, agents
from conformance.reference.rebuild.chain import links
from conformance.reference.rebuild.errors import Rule, TraceError
from conformance.reference.rebuild.items import function_tools, items
from conformance.reference.rebuild.outcome import gravest, is_withheld, outcome_of
from conformance.reference.rebuild.pieces import Finding, Piece, Walk
from conformance.reference.rebuild.siblings import family, without_twins
from conformance.reference.rebuild.side_calls import choose, lines, segments
from conformance.reference.rebuild.sources import Session
from conformance.reference.rebuild.trainer_view import trainer_view
from conformance.reference.rebuild.turns import Keys, Turn
from conformance.reference.rebuild.validate import turn_of

WHOLE_ANSWERS = ("stop", "tool_calls", "function_call")


@dataclass
class SessionRollout:
    """What became of one session. ``finding`` is null where its own agent's rollout is clean."""

    session_id: str
    parent: str | None
    finding: Finding | None = None
    error: TraceError | None = None
    trajectories: list[Trajectory] = field(default_factory=list)
    excluded: list[ExcludedRecord] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def exclude(self, uuids: Sequence[str], why: ExcludedWhy) -> None:
        self.excluded.extend(ExcludedRecord(record_uuid=uuid, why=why) for uuid in uuids)

    @property
    def sampled(self) -> int:
        return sum(sum(trajectory.mask) for trajectory in self.trajectories)


@dataclass
class Validated:
    """The valid records of a session in the contract's order, and what the others broke."""

    turns: list[Turn]
    errors: list[TraceError]
    invalid_uuids: list[str]
    invalid_answers: frozenset[int]


def validated(session: Session, keys: Keys) -> Validated:
    """A record without a usable uuid is named by its place, ``#0`` for the first."""
    turns: dict[str, Turn] = {}
    errors, uuids, answers = [], [], set()
    for index, record in enumerate(session.records):
        try:
            turn = turn_of(record, session.session_id, keys)
            if turn.uuid in turns:
                raise TraceError(Rule.UUID_UNIQUE, f"two records have the uuid {turn.uuid}", turn.uuid)
            turns[turn.uuid] = turn
        except TraceError as error:
            errors.append(error)
            uuids.append(error.record_uuid or f"#{index}")
            answers |= _answer_of(record, keys)
    in_order = sorted(turns.values(), key=lambda turn: turn.place)
    return Validated(in_order, errors, uuids, frozenset(answers))


def _answer_of(record: Any, keys: Keys) -> set[int]:
    """The generated turn of a record that is not valid, if it can be read at all."""
    try:
        return {keys.of_message(record["messages"][-1])[1]}
    except (TraceError, LookupError, TypeError, AttributeError):
        return set()


def rebuild_session(session: Session) -> SessionRollout:
    """Never raises for what the records hold: what they break is told in the answer."""
    keys = Keys()
    rollout = SessionRollout(session.session_id, session.parent)
    known = validated(session, keys)
    rollout.exclude(known.invalid_uuids, ExcludedWhy.INVALID)
    if not known.turns:
        return _failed(rollout, known.errors)
    lost = [Finding(ReasonCode.RECORDS_LOST, "the proxy says that records are lost")] if session.incomplete else []
    split = agents(known.turns)
    if sum(agent.is_root for agent in split) > 1:
        lost.append(Finding(ReasonCode.SEVERAL_ROOTS, "several native sessions without a parent"))
    for agent in split:
        finding = _rebuild_agent(agent, rollout, known.invalid_answers, keys, lost)
        if agent is split[0]:
            rollout.finding = finding
    return rollout


def _failed(rollout: SessionRollout, errors: Sequence[TraceError]) -> SessionRollout:
    reason = ReasonCode.NO_VALID_RECORD if errors else ReasonCode.NO_RECORDS
    rollout.error = errors[0] if errors else TraceError(Rule.ENVELOPE, "the session holds no record")
    rollout.finding = Finding(reason, rollout.error.message)
    rollout.trajectories.append(
        Trajectory(
            session_id=rollout.session_id,
            parent=rollout.parent,
            outcome=Outcome.FAILED,
            withheld=True,
            reason_code=reason,
        )
    )
    return rollout


def _rebuild_agent(
    agent: Agent, rollout: SessionRollout, invalid_answers: frozenset[int], keys: Keys, lost: Sequence[Finding]
) -> Finding | None:
    twins = without_twins(agent.turns)
    found_links = links(twins.kept, keys)
    kin = family(twins.kept, found_links)
    choice = choose(lines(segments(kin)))
    walk = Walk(found_links, kin, keys, invalid_answers)
    walk.findings.extend(lost)
    if choice.reason is not None:
        walk.findings.append(Finding(choice.reason, "several conversations that no id tells apart"))
    for line in choice.lines:
        for segment in line.segments:
            walk.add(segment)
        if len(line.segments) > 1:
            start = line.segments[1].turns[0]
            walk.findings.append(Finding(ReasonCode.HISTORY_REWRITTEN, "a rewritten history starts here", start))
    _look_for_unresolved(walk, twins.unsure | kin.unresolved)
    side_calls = {turn.uuid for turn in choice.side_calls}
    orphans = [turn.uuid for turn in (*twins.orphans, *kin.orphans)]
    rollout.exclude(orphans, ExcludedWhy.ORPHAN)
    rollout.exclude([turn.uuid for turn in choice.side_calls], ExcludedWhy.SIDE_CALL)
    rollout.notes += [Note(record_uuid=uuid, code=NoteCode.TWIN) for uuid in sorted(twins.doubled - side_calls)]
    rollout.notes += walk.notes
    finding = gravest(walk.findings)
    main = longest_first(walk.pieces)
    rollout.notes += _cut_generations(main)
    rollout.trajectories += [_trajectory(piece, agent, rollout, finding) for piece in main]
    return finding


def _look_for_unresolved(walk: Walk, unresolved: set[str]) -> None:
    for piece in walk.pieces:
        for turn in piece.turns:
            if turn.uuid in unresolved:
                detail = "nothing tells which of several calls the harness went on with"
                walk.findings.append(Finding(ReasonCode.UNRESOLVED_SIBLINGS, detail, turn))


def longest_first(pieces: Sequence[Piece]) -> list[Piece]:
    """The longest piece, the earliest of equals, then the others in order."""
    in_order = sorted(pieces, key=lambda piece: piece.turns[0].place)
    main = max(in_order, key=lambda piece: len(piece.turns))
    return [main, *(piece for piece in in_order if piece is not main)]


def _cut_generations(pieces: Sequence[Piece]) -> list[Note]:
    return [
        Note(record_uuid=turn.uuid, code=NoteCode.CUT_GENERATION)
        for piece in pieces
        for turn in piece.turns
        if turn.finish_reason not in WHOLE_ANSWERS
    ]


def _trajectory(piece: Piece, agent: Agent, rollout: SessionRollout, finding: Finding | None) -> Trajectory:
    view = trainer_view(piece.turns)
    first = piece.turns[0]
    return Trajectory(
        session_id=rollout.session_id,
        parent=rollout.parent if agent.is_root else agent.parent or rollout.session_id,
        agent=agent.name,
        outcome=outcome_of(finding),
        withheld=is_withheld(finding),
        reason_code=None if finding is None else finding.reason,
        model=first.model,
        tools=function_tools(first.tools),
        items=items(piece.turns),
        record_uuids=[turn.uuid for turn in piece.turns],
        tokens=view.tokens,
        mask=view.mask,
        log_probs=view.log_probs,
    )
