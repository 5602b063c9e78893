"""From what was found to one outcome: the gravest finding is the reason, and any finding withholds."""

from collections.abc import Sequence

from conformance.contract.rebuilds import Trajectory
from conformance.contract.vocabulary import Outcome, ReasonCode
from conformance.reference.rebuild.pieces import Finding

GRAVEST_FIRST = (
    ReasonCode.NO_RECORDS,
    ReasonCode.NO_VALID_RECORD,
    ReasonCode.RECORDS_LOST,
    ReasonCode.NO_ROOT,
    ReasonCode.SEVERAL_ROOTS,
    ReasonCode.AMBIGUOUS_MAIN,
    ReasonCode.SEVERAL_CHAINS,
    ReasonCode.FORK,
    ReasonCode.HISTORY_REWRITTEN,
    ReasonCode.MODEL_CHANGED,
    ReasonCode.HISTORY_DISAGREES,
    ReasonCode.TOKENS_DISAGREE,
    ReasonCode.INVALID_RECORD,
    ReasonCode.UNCAPTURED_TURN,
    ReasonCode.UNRESOLVED_SIBLINGS,
)


def gravest(findings: Sequence[Finding]) -> Finding | None:
    return min(findings, key=lambda finding: GRAVEST_FIRST.index(finding.reason), default=None)


def outcome_of(finding: Finding | None) -> Outcome:
    if finding is None:
        return Outcome.CLEAN
    if finding.reason in (ReasonCode.NO_RECORDS, ReasonCode.NO_VALID_RECORD):
        return Outcome.FAILED
    return Outcome.PARTIAL


def is_withheld(finding: Finding | None) -> bool:
    return finding is not None


def held_back(one: Trajectory, reason: ReasonCode) -> Trajectory:
    """As it is, and withheld; a reason that it has already stays."""
    outcome = Outcome.PARTIAL if one.outcome is Outcome.CLEAN else one.outcome
    return one.model_copy(update={"withheld": True, "outcome": outcome, "reason_code": one.reason_code or reason})


def sentence(finding: Finding) -> str:
    where = "" if finding.turn is None else f" at record {finding.turn.uuid}"
    return f"{finding.reason}{where}: {finding.detail}"
