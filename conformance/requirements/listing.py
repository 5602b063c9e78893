"""The catalogue as text: a plain list, JSON, and the count by family and level."""

import json

from conformance.contract.vocabulary import Level
from conformance.requirements.catalogue import Catalogue, Requirement
from conformance.requirements.form import CatalogueError


def listing(catalogue: Catalogue, family: str | None = None, as_json: bool = False) -> str:
    """One line a requirement (id, level, statement), or a JSON array of everything known of each.

    Raises CatalogueError for a family that does not exist.
    """
    if family is not None and family not in catalogue.families:
        raise CatalogueError(f"family {family!r} is unknown; allowed: {', '.join(catalogue.families)}")
    chosen = [r for r in catalogue.values() if family in (None, r.family)]
    if as_json:
        return json.dumps([_plain(r) for r in chosen], indent=2, ensure_ascii=False)
    return "\n".join(f"{r.id}  {r.level:<6}  {r.statement}{_remark(r)}" for r in chosen)


def entry(catalogue: Catalogue, name: str) -> str:
    """What is known of one requirement, for reading. Raises CatalogueError for an id that does not exist."""
    if name not in catalogue:
        raise CatalogueError(f"requirement {name!r} is unknown; trackgauge requirements lists them all")
    one = catalogue[name]
    rows = {
        "harm": one.harm,
        "origin": f"{one.origin.kind}: {one.origin.ref}",
        "judges": one.applies_to.value,
        "needs": ", ".join(one.needs) or "nothing",
        "unless": ", ".join(one.unless),
    }
    told = [f"  {key:<8}{value}" for key, value in rows.items() if value]
    return "\n".join([f"{one.id}  {one.level}  {one.statement}{_remark(one)}", *told])


def counts(catalogue: Catalogue) -> str:
    """A table: for each family how many of each level are checked, and how many are excluded."""
    head = f"{'family':<26}" + "".join(f"{level:>8}" for level in Level) + f"{'checked':>9}{'excluded':>10}"
    lines = [head]
    for code, family in catalogue.families.items():
        lines.append(_row(f"{code} {family.title}", [r for r in catalogue.values() if r.family == code]))
    lines.append(_row("all", list(catalogue.values())))
    return "\n".join(lines)


def _row(name: str, requirements: list[Requirement]) -> str:
    checked = [r for r in requirements if r.checkable]
    excluded = sum(r.excluded is not None for r in requirements)
    by_level = "".join(f"{sum(r.level is level for r in checked):>8}" for level in Level)
    return f"{name:<26}{by_level}{len(checked):>9}{excluded:>10}"


def _remark(requirement: Requirement) -> str:
    if requirement.withdrawn is not None:
        return f" (withdrawn in {requirement.withdrawn})"
    return "" if requirement.excluded is None else f" (not checked: {requirement.excluded})"


def _plain(requirement: Requirement) -> dict[str, object]:
    return {
        "id": requirement.id,
        "family": requirement.family,
        "level": requirement.level.value,
        "applies_to": requirement.applies_to.value,
        "needs": list(requirement.needs),
        "unless": list(requirement.unless),
        "statement": requirement.statement,
        "harm": requirement.harm,
        "origin": {"kind": requirement.origin.kind, "ref": requirement.origin.ref},
        "since": requirement.since,
        "withdrawn": requirement.withdrawn,
        "excluded": requirement.excluded,
        "no_mutant": requirement.no_mutant,
    }
