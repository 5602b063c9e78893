"""Starts that a wrong profile has to end: before the first call, and with one clear line."""

import asyncio
from pathlib import Path

import pytest

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.scenarios.configuration.profiles import Wrong, wrong_ones
from conformance.systems import routing
from conformance.systems.proxy import ProxyUnderTest
from conformance.systems.proxy_start import RefusedStart, refused_start

TRACE = "Traceback"


HALVES = (
    ("CFG-002", "CFG-003", "CFG-004", "CFG-005", "CFG-006"),
    ("CFG-007", "CFG-008", "CFG-009", "CFG-018", "CFG-022"),
)
"""Some systems take seconds to start: two scenarios, so that neither is given up for the number of its starts."""


@covers("CFG-010")
@pytest.mark.parametrize("half", [pytest.param(ids, marks=pytest.mark.covers(*ids), id=ids[0]) for ids in HALVES])
async def test_a_wrong_profile_ends_the_start_with_one_line(
    proxy: ProxyUnderTest, tmp_path: Path, check: Check, half: tuple[str, ...]
) -> None:
    (tmp_path / "occupied").touch()

    def start(place: int, wrong: Wrong) -> RefusedStart:
        return refused_start(
            proxy.profile,
            tmp_path / wrong.log_dir,
            wrong.written,
            arguments=wrong.arguments,
            files=tmp_path / f"{place:02}",
        )

    tried = [wrong for wrong in wrong_ones(routing.CLOSED_ADDRESS) if wrong.requirement in half]
    ends = await asyncio.gather(*(asyncio.to_thread(start, *one) for one in enumerate(tried)))
    for wrong, end in zip(tried, ends, strict=True):
        refused = end.exit_code not in (None, 0)
        requirement = "CFG-008" if wrong.requirement == "CFG-009" else wrong.requirement
        seen = "it goes on" if end.exit_code is None else f"status {end.exit_code}"
        check(requirement, refused, expected="a status other than 0", seen=seen, where=wrong.name)
        if refused and wrong.requirement == "CFG-009":
            named = all(name in end.output for name in wrong.says)
            check("CFG-009", named, expected=wrong.says, seen=end.output[-300:], where=wrong.name)
        if refused:
            _says_what_is_wrong(check, wrong, end.output)


def _says_what_is_wrong(check: Check, wrong: Wrong, output: str) -> None:
    lines = [line for line in output.splitlines() if line.strip()]
    told = any(all(text in line for text in wrong.says) for line in lines)
    clear = told and TRACE not in output
    check("CFG-010", clear, expected=["one line with", *wrong.says], seen=output[-300:], where=wrong.name)
