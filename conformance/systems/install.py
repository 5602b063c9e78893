"""Installing a system of somebody else's into a virtual environment of its own, away from the suite's."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from conformance.systems.needs import STAMP, Checkout, Needs, stamp

SECONDS = 900
COMPILED = (".so", ".pyd")


class CannotInstall(Exception):
    """Raised with the reason, one line, why a system cannot be had here."""


def install(needs: Needs, checkout: Path | None = None, begins: Callable[[], None] = lambda: None) -> None:
    """Blocks until it is there, from scratch. ``checkout`` is the one named on the command line.

    ``begins`` is called once nothing more is to be asked of the user: from there on it takes its time, and what was
    there before is gone. Raises :class:`CannotInstall`.
    """
    sources = None if needs.checkout is None else _sources(needs.checkout, checkout)
    python = _python(needs.python)
    begins()
    shutil.rmtree(needs.place, ignore_errors=True)
    _run([python, "-m", "venv", *(() if needs.packages else ("--without-pip",)), str(needs.place)])
    if needs.packages:
        pins = needs.place / "constraints.txt"
        pins.write_text("\n".join((*needs.constraints, "")), encoding="utf-8")
        quietly = ("--quiet", "--disable-pip-version-check", "-c", str(pins))
        _run([str(needs.interpreter), "-m", "pip", "install", *quietly, *needs.packages])
    if sources is not None and needs.checkout is not None:
        _lay_over(sources, needs.checkout.packages, _site_packages(needs))
    version = _run([str(needs.interpreter), "-c", "import platform; print(platform.python_version())"]).strip()
    (needs.place / STAMP).write_text(stamp(needs, sources, version), encoding="utf-8")


def _sources(wanted: Checkout, named: Path | None) -> Path:
    given = named or Path(os.environ.get(wanted.variable) or "")
    if given == Path():
        raise CannotInstall(
            f"its sources are not on a package index: name a checkout, --checkout DIR or {wanted.variable}"
        )
    if not (given / wanted.has).exists():
        raise CannotInstall(f"{given} is not the checkout that it needs: there is no {wanted.has} in it")
    return given.absolute()


def _lay_over(sources: Path, packages: tuple[str, ...], site: Path) -> None:
    """By links, so that an edit in the checkout is what the next start runs."""
    for package in packages:
        there = site / package
        there.mkdir(exist_ok=True)
        for entry in there.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            elif entry.suffix not in COMPILED:
                entry.unlink()
        for entry in (sources / package).iterdir():
            if entry.name != "__pycache__" and not (there / entry.name).exists():
                (there / entry.name).symlink_to(entry)


def _site_packages(needs: Needs) -> Path:
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(_run([str(needs.interpreter), "-c", code]).strip())


def _python(oldest: str) -> str:
    """The oldest interpreter that will do: foreign packages are slower than the language."""
    least = tuple(int(part) for part in oldest.split("."))
    for candidate in _pythons(least):
        code = f"import sys, venv, ensurepip; sys.exit(sys.version_info < {least!r})"
        if subprocess.run([candidate, "-c", code], capture_output=True, check=False).returncode == 0:
            return candidate
    raise CannotInstall(f"it needs Python {oldest} or newer with its venv module, which is not there")


def _pythons(least: tuple[int, ...]) -> Iterator[str]:
    minors = range(least[1], least[1] + 4)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for minor in minors:
        yield from (str(path) for path in sorted(pyenv.glob(f"3.{minor}.*/bin/python")))
        found = shutil.which(f"python3.{minor}")
        if found is not None:
            yield found
    yield sys.executable


def _run(command: list[str]) -> str:
    what = f"{Path(command[0]).name} {' '.join(command[1:3])}"
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise CannotInstall(f"{what} was not done within {SECONDS} s") from None
    except OSError as error:
        raise CannotInstall(f"{what}: {error.strerror}") from None
    if done.returncode != 0:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise CannotInstall(f"{what} ended with {done.returncode}: {lines[-1] if lines else 'without a word'}")
    return done.stdout
