"""A scenario that waits for ever is ended, and says that it was the system that let it wait."""

import asyncio

import pytest

from conformance.gauge.limit import NeverEnded, limited


@pytest.mark.anyio
async def test_a_scenario_that_waits_for_ever_is_cancelled_and_cleans_up() -> None:
    cleaned: list[str] = []

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append("up")

    with pytest.raises(NeverEnded, match=r"^the scenario did not come to its end within 0\.01 s$"):
        await limited(waits, 0.01)()
    assert cleaned == ["up"]


@pytest.mark.anyio
async def test_a_time_out_of_the_scenarios_own_stays_what_it_is() -> None:
    async def late() -> None:
        async with asyncio.timeout(0.001):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await limited(late, 30)()
