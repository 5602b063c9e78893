"""The rebuild of one session: its records validated, split by agent, linked, settled, and cut into trajectories."""

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from conformance.contract.rebuilds import ExcludedRecord, Note, Trajectory
from conformance.contract.vocabulary import ExcludedWhy, NoteCode, Outcome, Part, ReasonCode
from conformance.reference.rebuild.agents import Agent, agents, hanging
from conformance.reference.rebuild.chain import links
from conformance.reference.rebuild.errors import Rule, TraceError
from conformance.reference.rebuild.invalid import Validated, validated
from conformance.reference.rebuild.items import function_tools, items
from conformance.reference.rebuild.outcome import gravest, is_withheld, outcome_of
from conformance.reference.rebuild.pieces import Finding, Piece, Walk
from conformance.reference.rebuild.reading import Session
from conformance.reference.rebuild.siblings import family, without_twins
from conformance.reference.rebuild.side_calls import choose, lines, segments
from conformance.reference.rebuild.trainer_view import trainer_view
from conformance.reference.rebuild.turns import Messages, Turn

WHOLE_ANSWERS = ("stop", "tool_calls", "function_call")


@dataclass
class SessionRollout:
    """What became of one session.

    ``finding`` is null where its own agent is clean, ``broken`` where all its agents are. ``lone`` is its only call
    where it holds one record and no more. ``turns`` are its valid records by uuid.
    """

    session_id: str
    parent: str | None
    finding: Finding | None = None
    broken: Finding | None = None
    lone: Turn | None = None
    trajectories: list[Trajectory] = field(default_factory=list)
    turns: dict[str, Turn] = field(default_factory=dict)
    excluded: list[ExcludedRecord] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def exclude(self, uuids: Sequence[str], why: ExcludedWhy) -> None:
        self.excluded.extend(ExcludedRecord(record_uuid=uuid, why=why) for uuid in uuids)

    @property
    def sampled(self) -> int:
        return sum(sum(trajectory.mask) for trajectory in self.trajectories)


def rebuild_session(session: Session, split: Set[Part] = frozenset()) -> SessionRollout:
    """Never raises for what the records hold: what they break is told in the answer.

    ``split`` names what is delivered as trajectories of their own instead of being withheld.
    """
    rollout = SessionRollout(session.session_id, session.parent)
    known = validated(session)
    rollout.turns = {turn.uuid: turn for turn in known.turns}
    rollout.excluded += [
        ExcludedRecord(record_uuid=str(error.record_uuid), why=ExcludedWhy.INVALID, error=error.shape())
        for error in known.errors
    ]
    if not known.turns:
        return _failed(rollout, known.errors)
    lost = [Finding(ReasonCode.RECORDS_LOST, "the proxy says that records are lost")] if session.incomplete else []
    rollout.lone = known.turns[0] if len(session.entries) == 1 and not session.incomplete else None
    found = agents(known.turns)
    if sum(agent.is_root for agent in found) > 1:
        lost.append(Finding(ReasonCode.SEVERAL_ROOTS, "several native sessions without a parent"))
    if not found[0].is_root:
        lost.append(Finding(ReasonCode.NO_ROOT, "calls of agents and none of the session's own"))
    hang = hanging({agent.name: agent.parent for agent in found if agent.name is not None})
    ring = Finding(ReasonCode.NO_ROOT, "its parents lead back to themselves")
    for agent in found:
        astray = [ring] if agent.name in hang else []
        finding = _rebuild_agent(agent, rollout, known, session, [*lost, *astray], split)
        rollout.broken = rollout.broken or finding
        if agent is found[0]:
            rollout.finding = finding
    return rollout


def _failed(rollout: SessionRollout, errors: Sequence[TraceError]) -> SessionRollout:
    reason = ReasonCode.NO_VALID_RECORD if errors else ReasonCode.NO_RECORDS
    error = errors[0] if errors else TraceError(Rule.NO_RECORDS, "the session holds no record")
    rollout.finding = rollout.broken = Finding(reason, error.message, error=error)
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
    agent: Agent,
    rollout: SessionRollout,
    known: Validated,
    session: Session,
    lost: Sequence[Finding],
    split: Set[Part],
) -> Finding | None:
    keys = session.keys
    twins = without_twins(agent.turns, session.undelivered, keys)
    found_links = links(twins.kept, keys)
    kin = family(twins.kept, found_links, twins.unheard)
    choice = choose(lines(segments(kin)))
    answers = {turn.answer for turn in known.turns}
    walk = Walk(found_links, kin, keys, answers, known.invalid_answers, split)
    walk.findings.extend(lost)
    unheard = known.unheard(choice.lines[0].start, choice.lines[0].turns)
    if unheard is not None:
        detail = f"record {unheard.record_uuid} may have been the main conversation and is invalid: {unheard.message}"
        walk.findings.append(Finding(ReasonCode.INVALID_RECORD, detail, error=unheard))
    if choice.reason is not None:
        walk.findings.append(Finding(choice.reason, "several conversations that no id tells apart"))
    for line in choice.lines:
        walk.add_line(line, beside=[*twins.orphans, *kin.orphans, *choice.side_calls])
    continued = {link.parent for link in found_links.values()}
    overtaken = {turn.uuid for turn in twins.kept if turn not in continued and known.overtaken(turn, keys)}
    _look_for_unresolved(walk, twins.unsure | kin.unresolved | overtaken)
    _exclude(rollout, [*twins.orphans, *kin.orphans], choice.side_calls)
    pieces = longest_first(walk.pieces)
    rollout.notes += [*walk.notes, *_notes(pieces, twins.doubled)]
    finding = gravest(walk.findings)
    rollout.trajectories += [_trajectory(piece, agent, rollout, session, finding) for piece in pieces]
    return finding


def _exclude(rollout: SessionRollout, orphans: Sequence[Turn], side_calls: Sequence[Turn]) -> None:
    """A side call that was retried is a side call as often as it was asked."""
    kinds = {(turn.tools_key, turn.system) for turn in side_calls}
    beside = [turn for turn in orphans if (turn.tools_key, turn.system) in kinds]
    others = [turn for turn in orphans if (turn.tools_key, turn.system) not in kinds]
    rollout.exclude([turn.uuid for turn in others], ExcludedWhy.ORPHAN)
    rollout.exclude([turn.uuid for turn in (*side_calls, *beside)], ExcludedWhy.SIDE_CALL)


def _look_for_unresolved(walk: Walk, unresolved: set[str]) -> None:
    for piece in walk.pieces:
        for turn in piece.turns:
            if turn.uuid in unresolved:
                detail = "nothing tells whether the harness went on with this call, or with which of several"
                walk.findings.append(Finding(ReasonCode.UNRESOLVED_SIBLINGS, detail, turn))


def longest_first(pieces: Sequence[Piece]) -> list[Piece]:
    """The longest piece, the earliest of equals, then the others in order."""
    in_order = sorted(pieces, key=lambda piece: piece.turns[0].place)
    main = max(in_order, key=lambda piece: len(piece.turns))
    return [main, *(piece for piece in in_order if piece is not main)]


def _notes(pieces: Sequence[Piece], doubled: set[str]) -> list[Note]:
    turns = [turn for piece in pieces for turn in piece.turns]
    cut = [turn.uuid for turn in turns if turn.finish_reason not in WHOLE_ANSWERS]
    twins = [turn.uuid for turn in turns if turn.uuid in doubled]
    return [
        *(Note(record_uuid=uuid, code=NoteCode.CUT_GENERATION) for uuid in cut),
        *(Note(record_uuid=uuid, code=NoteCode.TWIN) for uuid in twins),
    ]


def _trajectory(
    piece: Piece, agent: Agent, rollout: SessionRollout, session: Session, finding: Finding | None
) -> Trajectory:
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
        items=items(piece.turns, Messages(session.keys, piece.assembled)),
        record_uuids=[turn.uuid for turn in piece.turns],
        tokens=view.tokens,
        mask=view.mask,
        log_probs=view.log_probs,
    )
