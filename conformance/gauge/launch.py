"""Runs the scenarios under pytest, in a process of its own, and gives the run's own exit status."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.report.folder import RESULTS
from conformance.report.summary import ExitStatus

SCENARIOS = Path(__file__).parent.parent / "scenarios"

QUIET = ("--tb=no", "-rN")
"""What went wrong is told once, by the report; whoever wants tracebacks too says --tb=short."""


def launch(arguments: list[str], report: Path) -> int:
    """``arguments`` are pytest's, the plugin's options among them. ``report`` is the folder the run writes to."""
    results = report / RESULTS
    results.unlink(missing_ok=True)
    paths = [] if any(_is_path(word) for word in arguments) else [str(SCENARIOS)]
    options = ["-m", "e2e", "--import-mode=importlib", f"--report={report}", *QUIET]
    process = subprocess.Popen([sys.executable, "-m", "pytest", *options, *arguments, *paths])
    try:
        status = process.wait()
    except KeyboardInterrupt:
        # The terminal has told pytest too; it ends its servers and says what it knew.
        process.wait()
        raise SystemExit(130) from None
    return _status(status, results)


def _status(status: int, results: Path) -> int:
    if status == pytest.ExitCode.USAGE_ERROR:
        return ExitStatus.USAGE
    if not results.exists():
        return ExitStatus.NOTHING_RAN if status == pytest.ExitCode.NO_TESTS_COLLECTED else ExitStatus.NOT_CONFORMING
    footer = json.loads(results.read_bytes().splitlines()[-1])
    own = int(footer["exit_status"])
    unfinished = status in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR)
    return ExitStatus.NOT_CONFORMING if unfinished and own == ExitStatus.AS_EXPECTED else own


def _is_path(word: str) -> bool:
    return not word.startswith("-") and ("/" in word or ".py" in word) and Path(word.partition("::")[0]).exists()
