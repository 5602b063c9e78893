"""Runs the tiers of tiers.toml one after another; ends with 1 after the first tier that fails, naming it."""

import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import TypedDict, cast

HERE = Path(__file__).parent
PROGRAMS = Path(sys.executable).parent


class Tier(TypedDict):
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


def run(name: str, tier: Tier) -> float:
    """Seconds the tier took. Ends the run with 1 when one of its commands fails."""
    say(f"\n── {name}: {tier['about']}")
    started = time.monotonic()
    for program, *arguments in tier["commands"]:
        status = subprocess.run([PROGRAMS / program, *arguments], cwd=HERE.parent, check=False).returncode
        if status != 0:
            say(f"ci/test: tier {name} failed: {program} {' '.join(arguments)} ended with status {status}")
            raise SystemExit(1)
    return time.monotonic() - started


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - this is a command


def main(names: list[str]) -> None:
    tiers = cast("dict[str, Tier]", tomllib.loads((HERE / "tiers.toml").read_text(encoding="utf-8")))
    seconds = {name: run(name, tiers[name]) for name in chosen(names, tiers)}
    say("\n" + " · ".join(f"{name} {spent:.0f} s" for name, spent in seconds.items()))


if __name__ == "__main__":
    main(sys.argv[1:])
