"""What a system of somebody else's needs to be there before it can be started, and whether it is.

Each has a virtual environment of its own in a cache folder, made by ``trackgauge systems install NAME``. Where its
sources are not on a package index, the user names a checkout of them; the suite ships neither.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from conformance.systems.tables import Table

CACHE_VARIABLE = "TRACKGAUGE_CACHE"
STAMP = "installed.json"


@dataclass(frozen=True, slots=True)
class Checkout:
    """Sources that the user has. ``variable`` may name them, ``has`` is a path that tells the right ones.

    The ``packages`` in it take the place of installed ones of the same name, of which only compiled modules stay.
    """

    variable: str
    has: str
    packages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Needs:
    """``python`` is the oldest version that will do, such as 3.12; profiles of the same ``name`` share what is there.

    ``packages`` and ``constraints`` are for pip.
    """

    name: str
    python: str
    packages: tuple[str, ...]
    constraints: tuple[str, ...]
    checkout: Checkout | None

    @property
    def place(self) -> Path:
        return cache() / "systems" / self.name

    @property
    def interpreter(self) -> Path:
        return self.place / "bin" / "python"


@dataclass(frozen=True, slots=True)
class Found:
    """What an installation says of itself."""

    python: str
    checkout: Path | None


def cache() -> Path:
    """``$TRACKGAUGE_CACHE``, else the user's cache folder."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "trackgauge"


def read(table: Table | None, profile: str) -> Needs | None:
    """The table ``install`` of a profile. Raises :class:`conformance.systems.tables.ProfileError`."""
    if table is None:
        return None
    needs = Needs(
        name=table.take("name", str, profile),
        python=table.take("python", str, "3.11"),
        packages=table.strings("packages", ()),
        constraints=table.strings("constraints", ()),
        checkout=_checkout(table.optional_table("checkout")),
    )
    table.done()
    if not all(part.isdigit() for part in needs.python.split(".")):
        raise table.wrong("python", f"expected the oldest version that will do, such as 3.12; seen {needs.python!r}")
    if Path(needs.name).name != needs.name:
        raise table.wrong("name", f"expected a plain folder name, seen {needs.name!r}")
    return needs


def _checkout(table: Table | None) -> Checkout | None:
    if table is None:
        return None
    checkout = Checkout(table.take("variable", str), table.take("has", str), table.strings("packages", ()))
    table.done()
    return checkout


def stamp(needs: Needs, checkout: Path | None, python: str) -> str:
    """What an installation leaves behind once it is whole."""
    wanted = {"wanted": _wanted(needs), "checkout": None if checkout is None else str(checkout), "python": python}
    return json.dumps(wanted, indent=2) + "\n"


def found(needs: Needs) -> Found | None:
    """None where :func:`lacking` says why."""
    told = _told(needs)
    if told is None or lacking(needs) is not None:
        return None
    checkout = told["checkout"]
    return Found(str(told["python"]), None if checkout is None else Path(str(checkout)))


def lacking(needs: Needs) -> str | None:
    """One line on what keeps the system from being started and what to do, or None."""
    told, again = _told(needs), f"trackgauge systems install {needs.name}"
    if told is None:
        sources = f" --checkout DIR (or {needs.checkout.variable}=DIR)" if needs.checkout else ""
        return f"it is not installed: {again}{sources}"
    if told.get("wanted") != json.loads(json.dumps(_wanted(needs))):
        return f"another version than the profile asks for is installed: {again}"
    if needs.checkout is None:
        return None
    there = Path(str(told["checkout"]))
    named = os.environ.get(needs.checkout.variable)
    if named and Path(named).absolute() != there:
        return f"{needs.checkout.variable} names another checkout than it was installed with: {again}"
    if not (there / needs.checkout.has).exists():
        return f"the checkout it was installed with is gone: {again} --checkout DIR"
    return None


def places(needs: Needs | None) -> Mapping[str, str]:
    """What ``{venv}`` and ``{checkout}`` stand for."""
    if needs is None:
        return {}
    there = found(needs)
    checkout = {} if there is None or there.checkout is None else {"checkout": str(there.checkout)}
    return {"venv": str(needs.place), **checkout}


def _wanted(needs: Needs) -> dict[str, object]:
    return {key: value for key, value in asdict(needs).items() if key != "name"}


def _told(needs: Needs) -> dict[str, object] | None:
    try:
        told = json.loads((needs.place / STAMP).read_bytes())
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) and {"python", "checkout"} <= set(told) else None
