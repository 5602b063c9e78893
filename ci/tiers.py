"""Runs the tiers of tiers.toml one after another; ends with 1 if one failed, and names those that did in its last line.

A tier that failed does not keep the others from being run: a run takes long, and is to say all it can.
"""

import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import TypedDict, cast

HERE = Path(__file__).parent
PROGRAMS = Path(sys.executable).parent


class Tier(TypedDict):
    """A table of tiers.toml; ``ci`` marks what has to pass before a change lands."""

    ci: bool
    about: str
    commands: list[list[str]]


def chosen(names: list[str], tiers: dict[str, Tier]) -> list[str]:
    """The tiers asked for, or all that are marked ``ci``. Ends the run with 2 on an unknown name."""
    unknown = [name for name in names if name not in tiers]
    if unknown:
        say(f"ci/test: no tier {unknown[0]!r} in ci/tiers.toml; there are: {', '.join(tiers)}")
        raise SystemExit(2)
    return names or [name for name, tier in tiers.items() if tier["ci"]]


def run(name: str, tier: Tier) -> str | None:
    """What failed, in words; None if all commands of the tier ended well."""
    say(f"\n── {name}: {tier['about']}")
    for program, *arguments in tier["commands"]:
        status = subprocess.run([PROGRAMS / program, *arguments], cwd=HERE.parent, check=False).returncode
        if status != 0:
            return f"{name} ({program} {' '.join(arguments)} ended with status {status})"
    return None


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - this is a command


def main(names: list[str]) -> None:
    tiers = cast("dict[str, Tier]", tomllib.loads((HERE / "tiers.toml").read_text(encoding="utf-8")))
    spent: list[str] = []
    failures: list[str] = []
    for name in chosen(names, tiers):
        started = time.monotonic()
        failure = run(name, tiers[name])
        spent.append(f"{name} {time.monotonic() - started:.0f} s")
        if failure is not None:
            failures.append(failure)
            say(f"ci/test: tier failed: {failure}")
    say("\n" + " · ".join(spent))
    if failures:
        say(f"ci/test: failed: {'; '.join(failures)}")
        raise SystemExit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
