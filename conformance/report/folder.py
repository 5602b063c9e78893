"""The report folder: what a run leaves behind, all drawn from the same results."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from conformance.report import junit, ndjson, summary
from conformance.report.results import Footer, Header, Report, Result, Sentences, SuiteError

RESULTS, SUMMARY, JUNIT = "results.ndjson", "summary.json", "junit.xml"
SCOREBOARD = "scoreboard.ndjson"
PAGE, MARKDOWN, BADGE = "index.html", "summary.md", "badge.svg"


def write(
    folder: Path, header: Header, results: Iterable[Result], errors: Iterable[SuiteError], footer: Footer
) -> Report:
    """Writes ``results.ndjson``, ``summary.json`` and ``junit.xml``."""
    report = ndjson.write(folder / RESULTS, header, results, errors, footer)
    draw(folder, report)
    return report


def draw(folder: Path, report: Report) -> None:
    """Writes what is drawn from a report, for a run whose results were written line by line."""
    summary.write(folder / SUMMARY, report)
    junit.write(folder / JUNIT, report)


def draw_for_people(
    folder: Path,
    report: Report,
    sentences: Sentences,
    titles: Mapping[str, str],
    again: Callable[[str], str],
    not_started: str | None = None,
) -> None:
    """Writes ``index.html``, ``summary.md`` and ``badge.svg``.

    ``titles`` are of families, by code; ``again`` turns a requirement into the command that plays it alone;
    ``not_started`` is why a system did not start: its first line is told.
    """
    from conformance.report import badge, markdown, page  # a run that draws nothing pays nothing

    page.write(folder / PAGE, report, sentences, titles, again)
    markdown.write(folder / MARKDOWN, report, sentences, again, not_started)
    badge.write(folder / BADGE, report)
