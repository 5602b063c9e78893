"""Questions that a broken rebuild may not survive."""

from collections.abc import Mapping
from typing import Any

from conformance.gauge.check import Check
from conformance.oracle.rollouts import Answer
from conformance.systems.rebuild import RebuildFailed, RebuildUnderTest

NOTHING: Answer = {"outcome": "failed", "withheld": True, "trajectories": [], "excluded": [], "notes": []}
"""Stands for the answer that did not come: nothing is trained of it."""


async def answered(
    rebuild: RebuildUnderTest, check: Check, source: Mapping[str, Any], where: str, *, requirement: str = "REB-016"
) -> Answer:
    """The answer, in the contract's form; a rebuild that ends or is late instead violates the requirement."""
    try:
        answer = await rebuild.ask(source)
    except RebuildFailed as failure:
        check(requirement, False, expected="an answer in the contract's form", seen=failure.why, where=where)
        return NOTHING
    check(requirement, True)
    return answer
