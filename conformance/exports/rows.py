"""The trainer view as rows: one training sequence each, with all that a trainer must know of it."""

from collections.abc import Iterable, Iterator
from typing import Any, TypedDict

from conformance.contract.rebuilds import RebuildAnswer

JSON = Any


class Row(TypedDict):
    """``tokens``, ``mask`` and ``log_probs`` are of equal length; ``log_probs`` is null exactly where ``mask`` is 0.

    ``withheld`` says that nothing of the row may be trained, be it for its own or for the whole rollout's sake: the
    mask then tells what was sampled, and no more. ``rollout`` is the same in all rows of one answer.
    """

    rollout: str
    session_id: str
    parent: str | None
    agent: str | None
    outcome: str
    withheld: bool
    reason_code: str | None
    model: str | None
    record_uuids: list[str]
    tokens: list[int]
    mask: list[int]
    log_probs: list[float | None]


def rows(answers: Iterable[RebuildAnswer]) -> Iterator[Row]:
    """One row a trajectory that holds tokens, in the answer's order."""
    for answer in answers:
        for one in answer.trajectories:
            if one.tokens:
                yield Row(
                    rollout=answer.id,
                    session_id=one.session_id,
                    parent=one.parent,
                    agent=one.agent,
                    outcome=one.outcome.value,
                    withheld=answer.withheld or one.withheld,
                    reason_code=one.reason_code or answer.reason_code,
                    model=one.model,
                    record_uuids=one.record_uuids,
                    tokens=one.tokens,
                    mask=one.mask,
                    log_probs=one.log_probs,
                )
