"""What came of a conversation as a whole: how its rollout stands, and where each sampled token of it went."""

from collections.abc import Iterable
from dataclasses import dataclass

from conformance.oracle.judgement import Judgement
from conformance.oracle.law import Account
from conformance.oracle.matching import Row
from conformance.oracle.rollouts import Answer


@dataclass(frozen=True, slots=True)
class Fate:
    """``calls`` counts records; the other counts are sampled tokens of these, as the engine's ledger has them.

    ``law`` tells the first token that is not where it may be.
    """

    calls: int
    outcome: str
    reason: str
    trained: int
    withheld: int
    excluded: int
    law: Judgement

    @property
    def sampled(self) -> int:
        return self.trained + self.withheld + self.excluded

    @property
    def standing(self) -> str:
        """The outcome, with the reason if there is one."""
        return f"{self.outcome} ({self.reason})" if self.reason else self.outcome


def fate(answer: Answer, calls: int, found: Account, rows: Iterable[Row]) -> Fate:
    """``found`` is the account of ``answer``, made of so many records and of ``rows``."""
    size = {row["seq"]: len(row["generation_token_ids"] or ()) for row in rows}
    return Fate(
        calls=calls,
        outcome=answer["outcome"],
        reason=answer["reason_code"] or "",
        trained=sum(size[seq] for seq in found.trained),
        withheld=sum(size[seq] for seq in found.withheld),
        excluded=sum(size[seq] for seq in found.excluded),
        law=found.law,
    )
