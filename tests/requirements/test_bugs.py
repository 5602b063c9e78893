"""Every kind of public bug known to the field is caught by requirements, or it is said why none can."""

import re
import tomllib
from collections.abc import Mapping
from typing import TypedDict, cast

import pytest

from conformance.requirements import load
from conformance.requirements.catalogue import HERE

UNUSED = frozenset(
    {
        *(3, 8, 18, 24, 28, 34, 38, 48, 51, 60, 64, 72, 76),
        *(86, 90, 92, 95, 108, 112, 133, 140, 147, 151, 154, 155, 156),
    }
)
"""Numbers up to the last that no bug has."""
LAST = 159
CATALOGUE = load()


class Bug(TypedDict, total=False):
    """``reports`` are public issues; ``requirements`` catch the bug, ``reason`` says what of it is not caught."""

    reports: list[str]
    requirements: list[str]
    reason: str


BUGS = cast("Mapping[str, Bug]", tomllib.loads((HERE / "bugs.toml").read_text(encoding="utf-8")))


def test_every_known_bug_is_accounted_for_in_order() -> None:
    assert list(BUGS) == [f"BUG-{number:03}" for number in range(1, LAST + 1) if number not in UNUSED]


@pytest.mark.parametrize("name", list(BUGS))
def test_a_bug_has_reports_and_either_requirements_or_a_reason(name: str) -> None:
    bug = BUGS[name]
    assert set(bug) <= {"reports", "requirements", "reason"}
    assert bug["reports"]
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", report) for report in bug["reports"])
    assert bug.get("requirements") or bug.get("reason")
    reason = bug.get("reason", "It is caught.")
    assert reason.endswith(".")
    assert len(reason) > 10
    assert "\n" not in reason


@pytest.mark.parametrize("name", list(BUGS))
def test_requirements_that_a_bug_names_exist_once_and_are_not_withdrawn(name: str) -> None:
    named = BUGS[name].get("requirements", [])
    assert [one for one in named if one not in CATALOGUE or CATALOGUE[one].withdrawn is not None] == []
    assert len(named) == len(set(named))


@pytest.mark.parametrize("name", list(BUGS))
def test_a_bug_whose_requirements_are_all_excluded_says_why_it_is_not_caught(name: str) -> None:
    named = BUGS[name].get("requirements", [])
    assert any(CATALOGUE[one].checkable for one in named) or BUGS[name].get("reason")


def test_each_requirement_that_a_bug_gave_rise_to_is_named_by_that_bug_and_by_one_of_its_reports() -> None:
    for requirement in CATALOGUE.values():
        if requirement.origin.kind == "bug":
            name, report = requirement.origin.ref.split(" ", 1)
            assert requirement.id in BUGS[name].get("requirements", []), requirement.id
            assert any(known.endswith(report) for known in BUGS[name]["reports"]), requirement.id
