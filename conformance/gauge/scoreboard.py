"""Runs systems one after the other, each judged alone, and shows how far it is."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from conformance.gauge.launch import interrupted_with_its_starter
from conformance.report import ndjson
from conformance.report.board import Run, board_of
from conformance.report.board import ndjson as ndjson_of
from conformance.report.board_markdown import markdown
from conformance.report.folder import RESULTS, SCOREBOARD
from conformance.report.summary import ExitStatus
from conformance.requirements.catalogue import Catalogue
from conformance.systems import needs, profiles
from conformance.systems.profile import Profile

LOG = "run.log"
CUT = "its run was ended before all was played"
ENDED = "the scoreboard was ended before its run"
_PERCENT = re.compile(rb"\[ *([0-9]+)%\]")

Say = Callable[[str], None]
Told = Callable[[str, int], None]
"""Progress: which system runs now, and how many percent of its scenarios are over."""


class NothingToDraw(Exception):
    """Raised where a folder holds the run of none of the systems that a board is to show. The message is one line."""

    def __init__(self, folder: Path, runs: Sequence[Run]) -> None:
        names = ", ".join(run.name for run in runs)
        super().__init__(f"--report {folder}: no NAME/{RESULTS} to draw, of {names}; leave out --draw to run them")


def board(
    systems: Sequence[Profile],
    folder: Path,
    publish: Path | None,
    arguments: Sequence[str] | None,
    catalogue: Catalogue,
) -> int:
    """Runs them (with ``arguments`` None only draws what is in ``folder``) and writes the board.

    Returns 0 for a board on which every system stands that could be started, else 1. Raises OSError, and
    :class:`NothingToDraw`, and then has written nothing.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if arguments is None:
        runs = [kept(profile, folder) for profile in systems]
        if all(run.report is None for run in runs):
            raise NothingToDraw(folder, runs)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        with shown_progress(len(systems)) as (progress, say):
            runs = list(play(systems, folder, arguments, progress, say))
    drawn = board_of(runs, catalogue)
    for place in (folder, publish):
        if place is not None:
            place.mkdir(parents=True, exist_ok=True)
            (place / "scoreboard.md").write_text(markdown(drawn, catalogue, catalogue.families), encoding="utf-8")
            (place / SCOREBOARD).write_bytes(ndjson_of(drawn))
    say_line(f"board {(publish or folder) / 'scoreboard.md'}")
    judged = [one for one in drawn.systems if one.not_judged is None]
    return 0 if judged and not any(run.why in (CUT, ENDED) for run in runs) else 1


@contextmanager
def shown_progress(count: int) -> Iterator[tuple[Told, Say]]:
    """A bar on a terminal; elsewhere only the line that each run ends with. Talk goes to standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    columns = (TextColumn("{task.description:<24}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(
        *columns, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=100)
        number: dict[str, int] = {}

        def progress(name: str, percent: int) -> None:
            at = number.setdefault(name, len(number) + 1)
            bar.update(task, description=f"{name} ({at} of {count})", completed=percent)

        yield progress, lambda line: console.print(line, soft_wrap=True)


def say_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def everything() -> list[str]:
    """The profiles that ship, the built-in ones first."""
    shipped = profiles.names()
    built_in = [name for name in profiles.DEFAULT_NAMES if name in shipped]
    return [*built_in, *(name for name in shipped if name not in built_in)]


def column_of(profile: Profile) -> str:
    """What a system is called on the board: its profile's file name, which is what ``--system`` takes."""
    return profile.file.stem


def play(systems: Sequence[Profile], folder: Path, arguments: Sequence[str], progress: Told, say: Say) -> Iterable[Run]:
    """One run a system, its report in ``folder/NAME``. Ctrl-C ends the run under way and those to come."""
    stopped = False
    for profile in systems:
        name = column_of(profile)
        lacking = None if profile.install is None else needs.lacking(profile.install)
        if stopped or lacking is not None:
            yield Run(name, profile.kind, None, lacking or ENDED)
            continue
        began = time.monotonic()
        progress(name, 0)
        try:
            _run(profile, folder / name, arguments, progress)
        except KeyboardInterrupt:
            stopped = True
        run = replace(kept(profile, folder), why=CUT) if stopped else kept(profile, folder)
        say(f"{name:<24} {time.monotonic() - began:6.1f} s  {_told(run)}")
        yield run


def kept(profile: Profile, folder: Path) -> Run:
    """The run of a system whose report lies in ``folder/NAME``, however it ended."""
    name = column_of(profile)
    try:
        report = ndjson.read(folder / name / RESULTS)
    except ndjson.ReportError as error:
        return Run(name, profile.kind, None, _last_line(folder / name / LOG) or str(error))
    if report.footer.cut and report.footer.exit_status != ExitStatus.NO_SYSTEM:
        return Run(name, profile.kind, report, CUT)
    if report.footer.exit_status == ExitStatus.NO_SYSTEM:
        return Run(name, profile.kind, report, "it did not start; its run.log says why")
    if report.footer.exit_status == ExitStatus.NOTHING_RAN:
        return Run(name, profile.kind, report, "nothing of what it claims could be run")
    return Run(name, profile.kind, report)


def _last_line(log: Path) -> str | None:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    return next((line.strip() for line in reversed(lines) if line.strip()), None)


def _run(profile: Profile, report: Path, arguments: Sequence[str], progress: Told) -> None:
    report.mkdir(parents=True, exist_ok=True)
    system = profile.file.stem if profile.file.parent == profiles.PROFILES else str(profile.file)
    command = [sys.executable, "-m", "conformance.cli", "run", "--system", system, "--report", str(report), *arguments]
    with (
        (report / LOG).open("wb") as log,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=interrupted_with_its_starter,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            for line in process.stdout:
                log.write(line)
                found = _PERCENT.search(line)
                if found is not None:
                    progress(report.name, int(found[1]))
        except KeyboardInterrupt:
            process.terminate()  # whoever told this one may not have told it; it ends its servers and says what it knew
            process.wait()
            raise


def _told(run: Run) -> str:
    if run.why is not None or run.report is None:
        return run.why or "no report"
    counts = {name: count for name, count in run.report.footer.verdicts.items() if count}
    return " · ".join(f"{name} {count}" for name, count in counts.items())
