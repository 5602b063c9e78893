"""Runs of pytest that are forked from a process which has imported all they need: four fifths of a short run is that.

As ``python -m conformance.mutants.nursery SCENARIOS`` it reads lines ``{"arguments", "cwd", "log"}`` and answers each
with the status of its run, one after the other; whatever a run leaves in memory goes with the fork that played it.
"""

import json
import os
import select
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

from conformance.mutants.covering import SCENARIOS
from conformance.systems import guard

UNUSED_PLUGINS = ("randomly", "cacheprovider", "xdist", "hypothesispytest")
"""Hypothesis' plugin imports all of hypothesis to end a run with."""

QUIET = ("-q", *(word for name in UNUSED_PLUGINS for word in ("-p", f"no:{name}")), "--import-mode=importlib")
LOADED = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
"""What is imported already is not rewritten any more, of which pytest warns."""


class Nursery:
    """One such process, for runs one after the other. Started at first need, and anew after a run that did not end."""

    def __init__(self, log: Path, scenarios: Path = SCENARIOS) -> None:
        """``scenarios`` is the folder whose modules, and all they import, are imported before the first run."""
        self._log = log
        self._scenarios = scenarios
        self._started: guard.Started | None = None

    def run(self, arguments: Sequence[str], *, cwd: Path, log: Path, seconds: float) -> int | None:
        """pytest's exit status; None where it did not end in time, and is ended with all it started.

        What it writes is appended to ``log``. Raises :class:`guard.CannotRun`, also when the nursery itself ended.
        """
        started = self._started = self._started or self._start()
        assert started.stdin
        assert started.stdout
        asked = {"arguments": [*LOADED, *arguments], "cwd": str(cwd), "log": str(log)}
        with suppress(BrokenPipeError):  # seen below, where no answer comes
            started.stdin.write(json.dumps(asked).encode() + b"\n")
            started.stdin.flush()
        if not select.select([started.stdout], [], [], seconds)[0]:
            self.close()
            return None
        answer = started.stdout.readline()
        if not answer:
            self.close()
            raise guard.CannotRun(f"the process that runs are forked from ended: {started.tail(1)}")
        return int(answer)

    def close(self) -> None:
        """Ends it with everything below it; may be called again."""
        if self._started is not None:
            self._started.kill()
            self._started = None

    def _start(self) -> guard.Started:
        command = [sys.executable, "-m", "conformance.mutants.nursery", str(self._scenarios)]
        return guard.start(
            command, log=self._log, env=dict(os.environ), cwd=self._log.parent, role="command", piped=True
        )


def main(scenarios: str) -> int:
    """Until its input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)  # whatever is printed goes into the log, never among the answers
    _import_all(scenarios)
    for line in sys.stdin:
        asked = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _play(asked["arguments"], asked["cwd"], asked["log"])
        _, status = os.waitpid(pid, 0)
        answers.write(f"{os.waitstatus_to_exitcode(status)}\n")
    return 0


def _import_all(scenarios: str) -> None:
    """By collecting the suite, which imports the scenarios and what they need, and runs nothing."""
    import pytest

    with tempfile.TemporaryFile("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        pytest.main(["-m", "e2e or ray", "--collect-only", *LOADED, *QUIET, scenarios])


def _play(arguments: list[str], cwd: str, log: str) -> None:
    """In the fork; does not return."""
    import pytest

    status = 1
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sink = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for stream in (1, 2):
            os.dup2(sink, stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(cwd)
        status = int(pytest.main(arguments))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
