"""The rebuild of a source: each session its own trajectories, the root's outcome the rollout's."""

from collections.abc import Set
from dataclasses import dataclass

from conformance.contract.rebuilds import RebuildAnswer, RebuildRequest, TraceErrorShape
from conformance.contract.vocabulary import Outcome, Part, ReasonCode
from conformance.reference.rebuild.copies import withhold_copies
from conformance.reference.rebuild.errors import Rule, TraceError
from conformance.reference.rebuild.outcome import gravest, is_withheld, outcome_of, sentence
from conformance.reference.rebuild.pieces import Finding
from conformance.reference.rebuild.reading import Sessions
from conformance.reference.rebuild.session import SessionRollout, rebuild_session
from conformance.reference.rebuild.sources import read
from conformance.reference.rebuild.tokens import Tokens
from conformance.reference.rebuild.tree import Tree, grow


def rebuild(request: RebuildRequest) -> RebuildAnswer:
    """The answer to one request. What the trace breaks is told in it; nothing is raised."""
    answer = rebuild_lazily(request)
    for trajectory in answer.trajectories:
        for item in trajectory.items:
            if isinstance(item.get("prompt_token_ids"), Tokens):
                item["prompt_token_ids"] = list(item["prompt_token_ids"])
    return answer


def rebuild_lazily(request: RebuildRequest) -> RebuildAnswer:
    """As :func:`rebuild`, but the prompts on items are ``Tokens``, which ``writing.pieces`` can write one by one.

    As lists they are as many ids as all records together hold.
    """
    try:
        rebuilt = rebuild_sessions(read(request.source), frozenset(request.split))
    except TraceError as error:
        return failed(request.id, error, ReasonCode.NO_RECORDS)
    worst = gravest([session.broken for session in rebuilt.sessions if session.broken] + rebuilt.findings)
    if worst is not None and not request.allow_partial:
        return failed(request.id, _error_behind(worst), worst.reason)
    finding = rebuilt.finding
    return RebuildAnswer(
        id=request.id,
        outcome=outcome_of(finding),
        withheld=is_withheld(finding),
        reason=None if finding is None else sentence(finding),
        reason_code=None if finding is None else finding.reason,
        error=error_of(rebuilt),
        excluded=[excluded for session in rebuilt.sessions for excluded in session.excluded],
        notes=[note for session in rebuilt.sessions for note in session.notes],
        trajectories=[
            trajectory if finding is None else trajectory.model_copy(update={"withheld": True})
            for session in rebuilt.sessions
            for trajectory in session.trajectories
        ],
    )


@dataclass(frozen=True)
class Rollout:
    """The sessions of a source, the root first, and what was found wrong with the whole."""

    sessions: list[SessionRollout]
    findings: list[Finding]

    @property
    def finding(self) -> Finding | None:
        """Null where the rollout is clean; a broken child does not count, it has its own outcome."""
        return gravest(self.findings)


def rebuild_sessions(sessions: Sessions, split: Set[Part] = frozenset()) -> Rollout:
    """Raises TraceError where the source holds no session at all."""
    if not sessions.found:
        raise sessions.faults[0] if sessions.faults else TraceError(Rule.NO_RECORDS, "no session was captured")
    rebuilt = [rebuild_session(session, split) for _, session in sorted(sessions.found.items())]
    tree = Tree(rebuilt, []) if sessions.alone else grow(rebuilt)
    withhold_copies(tree.sessions)
    findings = list(tree.findings)
    if sessions.faults:
        findings.append(Finding(ReasonCode.RECORDS_LOST, sessions.faults[0].message))
    root = tree.sessions[0]
    if root.finding is not None:
        findings.append(root.finding)
    return Rollout(tree.sessions, findings)


def error_of(rebuilt: Rollout) -> TraceErrorShape | None:
    """The error an answer carries: that of a rollout of which nothing is left."""
    if rebuilt.finding is None or outcome_of(rebuilt.finding) is not Outcome.FAILED:
        return None
    return _error_behind(rebuilt.finding).shape()


def _error_behind(finding: Finding) -> TraceError:
    if finding.error is not None:
        return finding.error
    return TraceError(finding.reason, sentence(finding), finding.turn.uuid if finding.turn else None)


def failed(answer_id: str, error: TraceError, reason: ReasonCode) -> RebuildAnswer:
    """The answer that stands for a raised error: no trajectory, nothing to train."""
    return RebuildAnswer(
        id=answer_id,
        outcome=Outcome.FAILED,
        withheld=True,
        reason=error.message,
        reason_code=reason,
        error=error.shape(),
    )
