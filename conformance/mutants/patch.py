"""A mutant: one piece of the reference's source replaced by a faulty one, and what that fault has to turn red."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PATCHES = Path(__file__).with_name("patches")

_REQUIRED = frozenset({"about", "module", "old", "new", "violates"})
_OPTIONAL = frozenset({"also", "smoke", "more"})


class MutantError(ValueError):
    """Raised when a patch breaks the form, or its target is gone from the reference; one line for its author."""


@dataclass(frozen=True, slots=True)
class Patch:
    """``old`` stands exactly once in the source of ``module`` and is replaced by ``new``."""

    module: str
    old: str
    new: str

    def apply(self, source: str) -> str:
        """The faulty source. Raises MutantError when the target is gone or stands more than once."""
        found = source.count(self.old)
        if found != 1:
            shown = self.old.strip()
            raise MutantError(f"a mutant's target stands {found} times in {self.module}, not once: {shown!r}")
        return source.replace(self.old, self.new)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault, as a rule one patch.

    ``violates`` is the requirement that must fail; ``also`` those that fail as its consequence in the same scenarios.
    ``smoke`` says whether the smoke scenario still passes with this fault.
    """

    name: str
    about: str
    patches: tuple[Patch, ...]
    violates: str
    also: tuple[str, ...] = ()
    smoke: bool = True

    @property
    def kind(self) -> str:
        """Which of the reference's commands the fault lives in."""
        place = self.patches[0].module.removeprefix("conformance.reference.")
        return next((kind for kind in ("rebuild", "rollout") if place.startswith(kind)), "proxy")


def load(directory: Path = PATCHES) -> dict[str, Mutant]:
    """All mutants by name, one file a family, in the order of the files."""
    mutants: dict[str, Mutant] = {}
    for path in sorted(directory.glob("*.toml")):
        try:
            document = tomllib.loads(path.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise MutantError(f"{path.name}: not TOML: {error}") from None
        for name, entry in document.items():
            if name in mutants:
                raise MutantError(f"{path.name}: [{name}]: the name is taken; names are unique over all families")
            mutants[name] = _read(path.name, name, entry)
    return mutants


def _read(file: str, name: str, entry: object) -> Mutant:
    if not isinstance(entry, Mapping):
        raise MutantError(f"{file}: {name}: allowed: a table")
    keys = set(entry)
    if missing := _REQUIRED - keys:
        raise MutantError(f"{file}: [{name}] {min(missing)}: missing; required: {', '.join(sorted(_REQUIRED))}")
    if unknown := keys - _REQUIRED - _OPTIONAL:
        raise MutantError(f"{file}: [{name}] {min(unknown)}: unknown key; allowed: {', '.join(sorted(_OPTIONAL))}")
    for key in _REQUIRED:
        if not isinstance(entry[key], str) or not entry[key].strip():
            raise MutantError(f"{file}: [{name}] {key}: {entry[key]!r}; allowed: a text, not blank")
    also = entry.get("also", [])
    if not isinstance(also, list) or not all(isinstance(one, str) for one in also):
        raise MutantError(f"{file}: [{name}] also: {also!r}; allowed: a list of requirement ids")
    smoke = entry.get("smoke", True)
    if not isinstance(smoke, bool):
        raise MutantError(f"{file}: [{name}] smoke: {smoke!r}; allowed: true or false")
    first = Patch(entry["module"], entry["old"], entry["new"])
    more = tuple(_more(file, name, one) for one in entry.get("more", []))
    return Mutant(name, entry["about"], (first, *more), entry["violates"], tuple(also), smoke)


def _more(file: str, name: str, entry: object) -> Patch:
    """A further patch of a fault that one cannot make alone."""
    keys = ("module", "old", "new")
    if not isinstance(entry, Mapping) or set(entry) != set(keys) or not all(isinstance(entry[k], str) for k in keys):
        raise MutantError(f"{file}: [{name}] more: {entry!r}; allowed: tables of {', '.join(keys)}")
    return Patch(entry["module"], entry["old"], entry["new"])
