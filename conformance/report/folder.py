"""The report folder: what a run leaves behind, all drawn from the same results."""

from collections.abc import Iterable
from pathlib import Path

from conformance.report import junit, ndjson, summary
from conformance.report.results import Footer, Header, Report, Result, SuiteError

RESULTS, SUMMARY, JUNIT = "results.ndjson", "summary.json", "junit.xml"


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
