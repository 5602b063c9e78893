"""Which requirements a scenario judges, and which of them apply to the systems at hand."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

import pytest

from conformance.contract.vocabulary import SystemKind
from conformance.requirements.catalogue import Catalogue, missing

_Function = TypeVar("_Function", bound=Callable[..., Any])


def covers(*requirements: str) -> Callable[[_Function], _Function]:
    """Name the requirements that a scenario judges. A ``check`` of any other id is an error of the scenario."""
    mark: Callable[[_Function], _Function] = pytest.mark.covers(*requirements)
    return mark


def scripted(reason: str) -> Callable[[_Function], _Function]:
    """Say why a scenario can only be played with the fake engine, where its playbook does not show it."""
    mark: Callable[[_Function], _Function] = pytest.mark.scripted(reason)
    return mark


def needs_the_fake(item: pytest.Item) -> str | None:
    """The reason that the scenario gives for it, or None."""
    mark = item.get_closest_marker("scripted")
    return None if mark is None else f"needs the fake engine: {mark.args[0]}"


def covered_by(item: pytest.Item) -> tuple[str, ...]:
    """The ids a scenario names, over all its ``covers`` marks, in order."""
    found: dict[str, None] = {}
    for mark in reversed(list(item.iter_markers("covers"))):
        found.update(dict.fromkeys(mark.args))
    return tuple(found)


def refuse_unknown(item: pytest.Item, whole: Catalogue) -> None:
    """``whole`` is the catalogue before it was cut to a frozen set. Raises pytest.UsageError."""
    for identity in covered_by(item):
        if identity not in whole or not whole[identity].checkable:
            problem = f"{item.nodeid}: covers({identity!r}): no requirement that can be checked"
            raise pytest.UsageError(f"{problem}; trackgauge requirements lists them")


def skips(
    identities: Sequence[str], catalogue: Catalogue, declared: Mapping[SystemKind, Collection[str]]
) -> dict[str, str]:
    """Why each of these requirements is not judged here; a requirement that is judged has no entry."""
    reasons: dict[str, str] = {}
    for identity in identities:
        if identity not in catalogue:
            reasons[identity] = f"not in the requirement set {catalogue.set_name}"
            continue
        requirement = catalogue[identity]
        if requirement.applies_to not in declared and requirement.applies_to is not SystemKind.SERVER:
            reasons[identity] = f"no {requirement.applies_to} system was given"
            continue
        reason = missing(requirement, declared.get(requirement.applies_to, ()))
        if reason is not None:
            reasons[identity] = reason
    return reasons
