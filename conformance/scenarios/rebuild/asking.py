"""Questions that a broken rebuild may not survive."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from conformance.contract.rebuilds import RebuildAnswer
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
        RebuildAnswer.model_validate(answer)
    except RebuildFailed as failure:
        check(requirement, False, expected="an answer", seen=failure.why, where=where)
        return NOTHING
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        check(requirement, False, expected="an answer in the contract's form", seen=str(first)[:200], where=where)
        return NOTHING
    check(requirement, True)
    return answer
