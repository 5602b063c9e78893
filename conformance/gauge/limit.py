"""No scenario waits for ever: one that does not come to its end is cancelled, so that its fixtures can end too.

The time-out of pytest-timeout cannot do that: it leaves the coroutine in the loop, and the teardown behind it.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import ParamSpec

import pytest

from conformance.systems.calls import SystemFailed

P = ParamSpec("P")

SCENARIO_SECONDS = 45.0
"""Below pytest-timeout's own, and many times what the slowest scenario takes with a system that answers."""

REAL_ENGINE_SECONDS = 400.0
"""Of pytest-timeout, where a real engine generates on a CPU that others use too."""


def seconds_of(item: pytest.Item) -> float:
    """Of a scenario: the usual time, or three quarters of a pytest-timeout of its own."""
    own = item.get_closest_marker("timeout")
    return SCENARIO_SECONDS if own is None else 0.75 * float(own.args[0])


def patiently(item: pytest.Item) -> None:
    """Gives a scenario the time that a real engine takes, unless it has a time of its own."""
    if item.get_closest_marker("timeout") is None:
        item.add_marker(pytest.mark.timeout(REAL_ENGINE_SECONDS))


class NeverEnded(SystemFailed):
    """Raised when a scenario is given up: the system kept it waiting too long."""


def limited(scenario: Callable[P, Awaitable[None]], seconds: float = SCENARIO_SECONDS) -> Callable[P, Awaitable[None]]:
    """The scenario, ended by :class:`NeverEnded` after that time. A time-out of its own stays what it is."""

    @functools.wraps(scenario)
    async def run(*args: P.args, **kwargs: P.kwargs) -> None:
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                await scenario(*args, **kwargs)
        except TimeoutError:
            if limit.expired():
                raise NeverEnded(f"the scenario did not come to its end within {seconds:g} s") from None
            raise

    return run
