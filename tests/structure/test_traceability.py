"""Each requirement is covered or excluded, and each MUST has a fault that turns it red, or says why none can."""

from functools import cache

import pytest

from conformance.contract.vocabulary import Level
from conformance.mutants.covering import scenarios
from conformance.mutants.patch import load as load_mutants
from conformance.requirements.catalogue import load


@cache
def covered() -> dict[str, tuple[str, ...]]:
    """Scenario → the requirements it covers, as pytest collects them."""
    return {scenario.name: scenario.covers for scenario in scenarios()}


def test_every_checkable_requirement_is_covered_by_a_scenario() -> None:
    by_scenarios = {identity for identities in covered().values() for identity in identities}
    catalogue = load()
    assert [identity for identity in catalogue if catalogue[identity].checkable and identity not in by_scenarios] == []


def test_every_scenario_covers_something_that_can_be_checked() -> None:
    catalogue = load()
    for scenario, identities in covered().items():
        assert identities, f"{scenario} covers nothing"
        strange = [one for one in identities if one not in catalogue or not catalogue[one].checkable]
        assert strange == [], scenario


def test_every_must_has_a_mutant_or_says_why_none_can() -> None:
    broken = {mutant.violates for mutant in load_mutants().values()}
    lacking = [
        requirement.id
        for requirement in load().values()
        if requirement.level is Level.MUST
        and requirement.checkable
        and requirement.no_mutant is None
        and requirement.id not in broken
    ]
    assert lacking == []


def test_no_requirement_excuses_itself_from_a_mutant_that_exists() -> None:
    broken = {mutant.violates for mutant in load_mutants().values()}
    assert [one.id for one in load().values() if one.no_mutant is not None and one.id in broken] == []


@pytest.mark.parametrize("name", list(load_mutants()))
def test_a_mutant_names_requirements_that_are_judged(name: str) -> None:
    mutant, catalogue = load_mutants()[name], load()
    for identity in (mutant.violates, *mutant.also):
        assert identity in catalogue
        assert catalogue[identity].checkable, identity
