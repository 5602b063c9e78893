"""The rebuild of a source: each session its own trajectories, the root's outcome the rollout's."""

from collections.abc import Sequence

from conformance.contract.rebuilds import RebuildAnswer, RebuildRequest, TraceErrorShape
from conformance.contract.vocabulary import Outcome, ReasonCode
from conformance.reference.rebuild.errors import TraceError
from conformance.reference.rebuild.outcome import gravest, is_withheld, outcome_of, sentence
from conformance.reference.rebuild.pieces import Finding
from conformance.reference.rebuild.session import SessionRollout, rebuild_session
from conformance.reference.rebuild.sources import Sessions, read


def rebuild(request: RebuildRequest) -> RebuildAnswer:
    """The answer to one request. What the trace breaks is told in it; nothing is raised."""
    try:
        answer = rollout(request.id, read(request.source))
    except TraceError as error:
        return failed(request.id, error)
    if request.allow_partial:
        return answer
    return strict(answer)


def rollout(answer_id: str, sessions: Sessions) -> RebuildAnswer:
    """Raises TraceError where the source holds no session at all."""
    if not sessions.found:
        raise sessions.faults[0] if sessions.faults else TraceError(ReasonCode.NO_RECORDS, "no session was captured")
    rebuilt = [rebuild_session(session) for _, session in sorted(sessions.found.items())]
    main, findings = choose_root(rebuilt)
    if sessions.faults:
        findings.append(Finding(ReasonCode.RECORDS_LOST, sessions.faults[0].message))
    if main.finding is not None:
        findings.append(main.finding)
    finding = gravest(findings)
    ordered = [main, *(session for session in rebuilt if session is not main)]
    return RebuildAnswer(
        id=answer_id,
        outcome=outcome_of(finding),
        withheld=is_withheld(finding),
        reason=None if finding is None else sentence(finding),
        reason_code=None if finding is None else finding.reason,
        error=None if main.error is None else shape(main.error),
        excluded=[excluded for session in ordered for excluded in session.excluded],
        notes=[note for session in ordered for note in session.notes],
        trajectories=[trajectory for session in ordered for trajectory in session.trajectories],
    )


def choose_root(rebuilt: Sequence[SessionRollout]) -> tuple[SessionRollout, list[Finding]]:
    """The session without a parent; of several the one with most sampled tokens, ties by id."""
    if len(rebuilt) == 1:
        return rebuilt[0], []
    roots = [session for session in rebuilt if session.parent is None]
    by_size = sorted(roots or rebuilt, key=lambda session: (-session.sampled, session.session_id))
    if not roots:
        return by_size[0], [Finding(ReasonCode.NO_ROOT, "each session names a parent")]
    if len(roots) > 1:
        return by_size[0], [Finding(ReasonCode.SEVERAL_ROOTS, f"{len(roots)} sessions name no parent")]
    return by_size[0], []


def strict(answer: RebuildAnswer) -> RebuildAnswer:
    """The answer where nothing partial is allowed: clean as it is, or an error."""
    broken = next((one for one in answer.trajectories if one.outcome is not Outcome.CLEAN), None)
    if answer.outcome is Outcome.CLEAN and broken is None:
        return answer
    reason = answer.reason_code or (broken.reason_code if broken else None) or ReasonCode.NO_VALID_RECORD
    where = broken.session_id if broken else ""
    error = TraceError(reason, answer.reason or f"session {where} is not clean: {reason}")
    return failed(answer.id, error if answer.error is None else TraceError(**answer.error.model_dump()))


def failed(answer_id: str, error: TraceError) -> RebuildAnswer:
    return RebuildAnswer(
        id=answer_id,
        outcome=Outcome.FAILED,
        withheld=True,
        reason=error.message,
        reason_code=ReasonCode.NO_VALID_RECORD,
        error=shape(error),
    )


def shape(error: TraceError) -> TraceErrorShape:
    return TraceErrorShape(rule=error.rule, record_uuid=error.record_uuid, message=error.message)
