"""Stands for a pytest worker: starts the family under the guard, repeats its pids, and then works on."""

import signal
import sys
from pathlib import Path

from conformance.systems import guard


def main() -> None:
    place = Path(sys.argv[1])
    family = Path(__file__).with_name("family.py")
    started = guard.start(
        [sys.executable, "-S", str(family), *sys.argv[2:]],
        log=place / "family.log",
        env=guard.environment(place),
        cwd=place,
        grace=0.3,
    )
    while "pids" not in started.output():
        started.wait(0.01)
    sys.stdout.write(f"{started.output().strip()} {started._supervisor.pid}\n")
    sys.stdout.flush()
    signal.pause()


main()
