"""What a run leaves behind: its report in a folder, with the commands that play its parts again."""

import shlex
from pathlib import Path

from conformance.gauge.collect import Collected
from conformance.gauge.options import Chosen
from conformance.report import folder as report_folder
from conformance.report import terminal
from conformance.report.results import Report
from conformance.systems.profiles import DEFAULT_NAMES, PROFILES


def write(collected: Collected, report: Report, folder: Path) -> None:
    """Raises OSError."""
    chosen = collected.chosen
    report_folder.write(folder, report.header, report.results, report.errors, report.footer)
    if chosen.drawings:
        titles = {code: family.title for code, family in chosen.whole.families.items()}
        report_folder.draw_for_people(folder, report, chosen.whole, titles, again(chosen), collected.not_started)


def again(chosen: Chosen) -> terminal.Again:
    """From a requirement or scenario to the command that plays it alone, on the systems of this run."""
    named = [
        profile.file.stem if profile.file.parent == PROFILES else shlex.quote(str(profile.file))
        for profile in chosen.profiles.values()
    ]
    systems = "" if sorted(named) == sorted(DEFAULT_NAMES) else "".join(f" --system {name}" for name in named)
    project = " --with-project" if chosen.with_project else ""
    engine = "" if chosen.real_engine is None else f" --real-engine {shlex.quote(chosen.real_engine)}"
    return lambda name: f"trackgauge repro {shlex.quote(name)}{systems}{project}{engine}"
