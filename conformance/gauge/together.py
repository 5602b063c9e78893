"""Parts of a scenario that are played at once, and none of which is left off because another one stops."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from conformance.gauge.check import Inconclusive, Unmet
from conformance.systems.calls import SystemFailed

T = TypeVar("T")

FORESEEN = (Unmet, Inconclusive, SystemFailed)


async def together(*parts: Awaitable[T]) -> list[T]:
    """What each part came to, in their order; for parts that check something.

    All come to their end, so that what is checked does not depend on which of them was quicker. Raises what the first
    of them, in their order, raised; what no scenario foresees before what it does.
    """
    ended = await asyncio.gather(*parts, return_exceptions=True)
    raised = [each for each in ended if isinstance(each, BaseException)]
    for each in sorted(raised, key=lambda error: isinstance(error, FORESEEN)):
        raise each
    return [each for each in ended if not isinstance(each, BaseException)]
