"""One requirement or one scenario alone: what ``trackgauge repro`` plays."""

import difflib
import re
from collections.abc import Iterator
from pathlib import Path

from conformance.gauge.launch import SCENARIOS
from conformance.requirements.catalogue import Catalogue

ALONE = ("-p", "no:randomly", "-p", "no:xdist", "-v")

_REQUIREMENT = re.compile(r"[A-Za-z]{3}-[0-9]{3}")
_FUNCTION = re.compile(r"^(?:async )?def (test_\w+)\(", re.MULTILINE)


class NothingToPlay(Exception):
    """Raised for what names neither a requirement nor a scenario. The message is one line."""


def selection(name: str, catalogue: Catalogue) -> list[str]:
    """The arguments with which pytest plays it.

    ``name`` is a requirement, a scenario as reports name it (``streams/test_cut.py::test_…[id]``), a scenario's bare
    name with or without its ``[id]``, or a path of the user's own. Raises :class:`NothingToPlay`.
    """
    if _REQUIREMENT.fullmatch(name):
        identity = _checkable(name.upper(), catalogue)
        return [f"--covering={identity}", f"--judging={identity}"]
    file, _, function = name.partition("::")
    for place in (SCENARIOS / file, Path(file)):
        if function and place.is_file():
            if function.partition("[")[0] not in _functions_in(place):
                raise NothingToPlay(f"{name}: {file} has no such scenario{_close(function, place)}")
            return [f"{place}::{function}"]
    bare = (function or name).partition("[")[0]
    found = [path for path in _scenario_files() if bare in _functions_in(path)]
    if not found:
        near = difflib.get_close_matches(bare.upper(), list(catalogue), n=1, cutoff=0.8)
        better = f"{_or(near)}; trackgauge requirements lists them" if near else _close(bare, *_scenario_files())
        raise NothingToPlay(f"{name}: no requirement and no scenario{better}")
    return [f"{path}::{function or name}" for path in found]


def _checkable(identity: str, catalogue: Catalogue) -> str:
    requirement = catalogue.get(identity)
    if requirement is None:
        near = difflib.get_close_matches(identity, list(catalogue), n=3)
        raise NothingToPlay(f"{identity}: no such requirement{_or(near)}; trackgauge requirements lists them")
    if not requirement.checkable:
        why = requirement.excluded or f"it is withdrawn since {requirement.withdrawn}"
        raise NothingToPlay(f"{identity} is not judged by any scenario: {why}")
    return identity


def _scenario_files() -> Iterator[Path]:
    return iter(sorted(SCENARIOS.rglob("test_*.py")))


def _functions_in(path: Path) -> list[str]:
    return _FUNCTION.findall(path.read_text(encoding="utf-8"))


def _close(bare: str, *places: Path) -> str:
    every = [function for path in places for function in _functions_in(path)]
    near = difflib.get_close_matches(bare.partition("[")[0], every, n=3)
    return f"{_or(near)}; results.ndjson names the scenarios of a run"


def _or(near: list[str]) -> str:
    return f"; did you mean {' or '.join(near)}?" if near else ""
