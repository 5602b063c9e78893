"""The requirement catalogue: what a system must do, why it matters to training, and where that comes from.

Requirements are data: one TOML file a family in ``families/``, the closed list of capabilities in
``capabilities.toml``, and the dated, frozen sets in ``sets/``. Everything that is wrong with them is a
``CatalogueError`` of one line that names the file, the key and what is allowed.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from conformance.contract.vocabulary import Level, SystemKind
from conformance.requirements.form import CatalogueError, level_of, parse, refuse_unknown, table_of, text_of, version_of

HERE = Path(__file__).parent

ORIGIN_KINDS = ("pr", "recording", "trainer", "bug", "project")
_FAMILY_KEYS = ("code", "title", "about", "place", "applies_to", "needs", "since")
_REQUIREMENT_KEYS = (
    "level",
    "needs",
    "unless",
    "applies_to",
    "statement",
    "harm",
    "origin",
    "since",
    "withdrawn",
    "excluded",
    "no_mutant",
)
_ID = re.compile(r"[A-Z]{3}-[0-9]{3}")
_SET_NAME = re.compile(r"[0-9]{4}-[0-9]{2}")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a requirement comes from; ``project`` marks a decision of Trackgauge itself."""

    kind: str
    ref: str


@dataclass(frozen=True, slots=True)
class Requirement:
    """One sentence that a test from outside can find true or false.

    ``needs`` are capabilities, all of them; an entry ``a|b`` is met by either. ``unless`` are capabilities that put
    something else in its place. ``excluded`` says why the sentence
    cannot be observed from outside, ``no_mutant`` why no fault can turn exactly it red, ``withdrawn`` since which
    contract version it no longer holds. ``harm`` is never blank where ``level`` is MUST.
    """

    id: str
    level: Level
    needs: tuple[str, ...]
    applies_to: SystemKind
    statement: str
    harm: str
    origin: Origin
    since: str
    unless: tuple[str, ...] = ()
    withdrawn: str | None = None
    excluded: str | None = None
    no_mutant: str | None = None

    @property
    def family(self) -> str:
        return self.id[:3]

    @property
    def checkable(self) -> bool:
        """Whether a scenario has to cover it."""
        return self.excluded is None and self.withdrawn is None

    @property
    def gates_others(self) -> bool:
        """Whether it counts against a system that never asked for this project's own decisions."""
        return self.origin.kind != "project"


@dataclass(frozen=True, slots=True)
class Family:
    """``code`` begins the ids of its requirements; ``title`` is short, for tables, ``about`` a sentence."""

    code: str
    title: str
    about: str


@dataclass(frozen=True)
class Catalogue(Mapping[str, Requirement]):
    """All requirements by id, in the order of the files; ``set_name`` names the frozen set they were cut to."""

    requirements: Mapping[str, Requirement]
    families: Mapping[str, Family]
    capabilities: Mapping[str, str]
    set_name: str | None = None

    def __getitem__(self, key: str) -> Requirement:
        return self.requirements[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.requirements)

    def __len__(self) -> int:
        return len(self.requirements)


def load(set_name: str | None = None, directory: Path = HERE) -> Catalogue:
    """Read the catalogue, cut to a frozen set and its levels if one is named.

    Raises CatalogueError when a file breaks the form or the set does not exist.
    """
    capabilities = _read_capabilities(directory / "capabilities.toml")
    places: dict[int, str] = {}
    read: list[tuple[int, Family, list[Requirement]]] = []
    for path in sorted((directory / "families").glob("*.toml")):
        place, family, requirements = _read_family(path, capabilities)
        if place in places:
            raise CatalogueError(f"{path.name}: [family] place: {place} is taken by {places[place]}; take a free one")
        if any(family.code == other.code for _, other, _ in read):
            raise CatalogueError(f"{path.name}: [family] code: {family.code} is taken; one file a family")
        places[place] = path.name
        read.append((place, family, requirements))
    read.sort(key=lambda entry: entry[0])
    catalogue = Catalogue(
        requirements={r.id: r for _, _, requirements in read for r in requirements},
        families={family.code: family for _, family, _ in read},
        capabilities=capabilities,
    )
    return catalogue if set_name is None else _cut(catalogue, set_name, directory / "sets")


def missing(requirement: Requirement, declared: Collection[str]) -> str | None:
    """Why a system that declares these capabilities is not judged by this requirement; None if it is judged."""
    lacking = [need for need in requirement.needs if not set(need.split("|")) & set(declared)]
    if not lacking:
        instead = [name for name in requirement.unless if name in declared]
        return f"declared instead: {', '.join(instead)}" if instead else None
    return "not declared: " + ", ".join(need.replace("|", " or ") for need in lacking)


def set_text(catalogue: Catalogue, name: str) -> str:
    """The text of a set file that freezes the catalogue as it stands: every judged id with its level."""
    lines = [
        f"# The requirements of {name}: which are judged, and how binding each is.",
        "# Frozen when its release is cut; a later change of the catalogue does not change what this set asks.",
        "",
    ]
    lines += [f'{r.id} = "{r.level}"' for r in catalogue.values() if r.withdrawn is None]
    return "\n".join(lines) + "\n"


def _cut(catalogue: Catalogue, name: str, folder: Path) -> Catalogue:
    names = sorted(path.stem for path in folder.glob("*.toml"))
    if name not in names:
        raise CatalogueError(f"requirement set {name!r} is unknown; allowed: {', '.join(names) or 'none exist'}")
    file = f"sets/{name}.toml"
    if not _SET_NAME.fullmatch(name):
        raise CatalogueError(f"{file}: a set is named by year and month, like 2026-12")
    levels = parse(folder / f"{name}.toml")
    kept: dict[str, Requirement] = {}
    for key, level in levels.items():
        if key not in catalogue:
            raise CatalogueError(f"{file}: {key}: no such requirement; ids are never reused, so none may vanish")
        kept[key] = replace(catalogue[key], level=level_of(level, file, key))
    return replace(catalogue, requirements={key: kept[key] for key in catalogue if key in kept}, set_name=name)


def _read_capabilities(path: Path) -> dict[str, str]:
    capabilities: dict[str, str] = {}
    for name, about in parse(path).items():
        capabilities[name] = text_of(about, path.name, name)
    return capabilities


def _read_family(path: Path, capabilities: Collection[str]) -> tuple[int, Family, list[Requirement]]:
    document = parse(path)
    file = path.name
    head = table_of(document.pop("family", None), file, "[family]")
    refuse_unknown(head, _FAMILY_KEYS, file, "[family]")
    for key in ("code", "title", "about", "place", "applies_to", "since"):
        if key not in head:
            raise CatalogueError(f"{file}: [family] {key}: missing; only needs may be left out")
    place = head["place"]
    if not isinstance(place, int) or isinstance(place, bool) or place < 1:
        raise CatalogueError(f"{file}: [family] place: {place!r}; allowed: a whole number from 1")
    family = Family(
        code=text_of(head["code"], file, "[family] code"),
        title=text_of(head["title"], file, "[family] title"),
        about=text_of(head["about"], file, "[family] about"),
    )
    common = _capabilities_of("needs", head, capabilities, file, "[family]")
    requirements = []
    for key, entry in document.items():
        if not _ID.fullmatch(key) or not key.startswith(f"{family.code}-"):
            raise CatalogueError(f"{file}: [{key}]: not an id here; allowed: {family.code}-001 to {family.code}-999")
        table = {"applies_to": head["applies_to"], "since": head["since"]} | table_of(entry, file, f"[{key}]")
        requirements.append(_read_requirement(key, table, common, capabilities, file))
    return place, family, requirements


def _read_requirement(
    key: str, table: dict[str, object], common: tuple[str, ...], capabilities: Collection[str], file: str
) -> Requirement:
    refuse_unknown(table, _REQUIREMENT_KEYS, file, f"[{key}]")
    for name in ("level", "statement", "origin"):
        if name not in table:
            raise CatalogueError(f"{file}: [{key}] {name}: missing; required: level, statement, origin")
    level = level_of(table["level"], file, f"[{key}] level")
    harm = text_of(table["harm"], file, f"[{key}] harm") if "harm" in table else ""
    if level is Level.MUST and not harm:
        raise CatalogueError(f"{file}: [{key}] harm: missing; a MUST says what its breach does to training")
    kind = table["applies_to"]
    if not isinstance(kind, str) or kind not in tuple(SystemKind):
        raise CatalogueError(f"{file}: [{key}] applies_to: {kind!r}; allowed: {', '.join(SystemKind)}")
    own = _capabilities_of("needs", table, capabilities, file, f"[{key}]")
    return Requirement(
        id=key,
        level=level,
        needs=tuple(dict.fromkeys(common + own)),
        applies_to=SystemKind(kind),
        statement=text_of(table["statement"], file, f"[{key}] statement"),
        harm=harm,
        origin=_origin(table["origin"], file, f"[{key}] origin"),
        since=version_of(table["since"], file, f"[{key}] since"),
        unless=_capabilities_of("unless", table, capabilities, file, f"[{key}]"),
        withdrawn=version_of(table["withdrawn"], file, f"[{key}] withdrawn") if "withdrawn" in table else None,
        excluded=text_of(table["excluded"], file, f"[{key}] excluded") if "excluded" in table else None,
        no_mutant=text_of(table["no_mutant"], file, f"[{key}] no_mutant") if "no_mutant" in table else None,
    )


def _capabilities_of(
    key: str, table: Mapping[str, object], capabilities: Collection[str], file: str, where: str
) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise CatalogueError(f'{file}: {where} {key}: {value!r}; allowed: a list of capabilities, like ["chat", "a|b"]')
    for name in (name for entry in value for name in entry.split("|")):
        if name not in capabilities:
            raise CatalogueError(
                f"{file}: {where} {key}: {name!r} is no capability; allowed: {', '.join(capabilities)}"
            )
    return tuple(value)


def _origin(value: object, file: str, where: str) -> Origin:
    table = table_of(value, file, where)
    refuse_unknown(table, ("kind", "ref"), file, where)
    kind, ref = table.get("kind"), table.get("ref")
    if not isinstance(kind, str) or kind not in ORIGIN_KINDS:
        raise CatalogueError(f"{file}: {where} kind: {kind!r}; allowed: {', '.join(ORIGIN_KINDS)}")
    return Origin(kind=kind, ref=text_of(ref, file, f"{where} ref"))
