"""What a scenario checks does not depend on which of its parts is quicker."""

import asyncio

import pytest

from conformance.gauge.check import Inconclusive
from conformance.gauge.together import together


async def _stops_at_once() -> str:
    raise Inconclusive("there was nothing to see")


async def _gives_up(after: asyncio.Event) -> str:
    await after.wait()
    raise ZeroDivisionError("a fault of the suite's")


async def _checks(noted: list[str], after: asyncio.Event, name: str) -> str:
    await asyncio.sleep(0)
    noted.append(name)
    after.set()
    return name


@pytest.mark.anyio
async def test_parts_come_to_their_end_though_one_stops_before() -> None:
    noted: list[str] = []
    with pytest.raises(Inconclusive):
        await together(_stops_at_once(), _checks(noted, asyncio.Event(), "late"))
    assert noted == ["late"]


@pytest.mark.anyio
async def test_a_fault_of_the_suite_is_told_before_what_a_system_may_do() -> None:
    after = asyncio.Event()
    with pytest.raises(ZeroDivisionError):
        await together(_stops_at_once(), _gives_up(after), _checks([], after, "other"))


@pytest.mark.anyio
async def test_what_the_parts_came_to_is_told_in_their_order() -> None:
    noted: list[str] = []
    assert await together(*(_checks(noted, asyncio.Event(), name) for name in "abc")) == ["a", "b", "c"]
