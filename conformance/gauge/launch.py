"""Runs the scenarios under pytest, in a process of its own, and gives the run's own exit status."""

import ctypes
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from conformance.report import ndjson
from conformance.report.folder import RESULTS
from conformance.report.summary import ExitStatus

SCENARIOS = Path(__file__).parent.parent / "scenarios"
PROCESS = Path(__file__).with_name("pytest_process.py")

QUIET = ("--tb=no", "-rN")
"""What went wrong is told once, by the report; whoever wants tracebacks too says --tb=short."""


HOLD = "--hold"
PR_SET_PDEATHSIG = 1


class ReportFolderError(Exception):
    """Raised when no report can be written where it was asked for. The message is one line."""


def launch(arguments: list[str], report: Path, command: str, options: Iterable[str]) -> int:
    """``arguments`` are pytest's, the plugin's options among them. ``report`` is the folder the run writes to.

    ``command`` is what people typed and ``options`` are its own, by which a mistyped one is told.
    Raises :class:`ReportFolderError` before anything starts.
    """
    results = _cleared(report)
    paths = [] if any(_is_path(word) for word in arguments) else [str(SCENARIOS)]
    held = HOLD in arguments
    fixed = ["-m", "e2e", "--import-mode=importlib", f"--report={report}", *QUIET]
    fixed += ["--timeout=0"] if held else []  # under which somebody looks around takes as long as they look
    # pytest's own folder is shared by all its runs of a user, and two that tidy it up at once can trip over each other.
    with tempfile.TemporaryDirectory(prefix="trackgauge-run-", ignore_cleanup_errors=True) as scratch:
        started = [sys.executable, str(PROCESS), command, ",".join(options)]
        try:
            status = _run([*started, *fixed, f"--basetemp={scratch}/files", *arguments, *paths], held=held)
        except SystemExit:  # told to end
            _settled(results, pytest.ExitCode.INTERRUPTED)
            raise
    ended = _status(status, results)  # before an earlier report, which had a status of its own, comes back
    _settled(results, status)
    return ended


def _run(command: list[str], held: bool) -> int:
    """pytest's exit status. Raises SystemExit when the run was told to end; where it is ``held``, Ctrl-C does not."""
    process = subprocess.Popen(command, preexec_fn=interrupted_with_its_starter)
    # The terminal tells pytest of Ctrl-C too; it ends its servers and says what it knew, however often it is told.
    told: list[int] = []

    def end(number: int, _: object) -> None:
        if not (held and number == signal.SIGINT):
            told.append(number)
        if number == signal.SIGTERM:
            process.send_signal(signal.SIGINT)

    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    status = process.wait()
    if told:
        raise SystemExit(128 + told[0])
    return status


def interrupted_with_its_starter() -> None:
    """In the child: on Linux a starter that is killed takes the run along, as by Ctrl-C.

    What a shell runs in the background, or nohup runs, ignores Ctrl-C; the run has to hear of it all the same.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)


def _cleared(report: Path) -> Path:
    """The results file of a folder that exists, can be written and holds no earlier results: those are set aside."""
    results = report / RESULTS
    try:
        report.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=report).close()
        if results.exists():
            results.replace(_aside(results))
    except OSError as error:
        why = error.strerror or str(error)
        raise ReportFolderError(f"--report {report}: {why}; give a folder that can be written") from None
    return results


def _settled(results: Path, status: int) -> None:
    """Earlier results come back where the run was refused before it began: a typing error costs no report."""
    aside = _aside(results)
    if status == pytest.ExitCode.USAGE_ERROR and aside.exists() and not results.exists():
        aside.replace(results)
    aside.unlink(missing_ok=True)


def _aside(results: Path) -> Path:
    return results.with_name(f".{results.name}.before")


def _status(status: int, results: Path) -> int:
    if status == pytest.ExitCode.USAGE_ERROR:
        return ExitStatus.NO_SYSTEM if _own_status(results) == ExitStatus.NO_SYSTEM else ExitStatus.USAGE
    if not results.exists():
        return ExitStatus.NOTHING_RAN if status == pytest.ExitCode.NO_TESTS_COLLECTED else ExitStatus.NOT_CONFORMING
    own = _own_status(results)
    if own is None:
        return ExitStatus.NOT_CONFORMING
    unfinished = status in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR)
    return ExitStatus.NOT_CONFORMING if unfinished and own == ExitStatus.AS_EXPECTED else own


def _own_status(results: Path) -> int | None:
    """None for a report that is not there, or was cut, as by a disk without room."""
    try:
        return ndjson.read(results).footer.exit_status
    except ndjson.ReportError:
        return None


def _is_path(word: str) -> bool:
    return not word.startswith("-") and ("/" in word or ".py" in word) and Path(word.partition("::")[0]).exists()
