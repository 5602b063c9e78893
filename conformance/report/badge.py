"""``badge.svg``: one line for a README. It says what was counted, never a bare percentage."""

from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from conformance.contract.vocabulary import Level, Verdict
from conformance.report.lines import printable
from conformance.report.results import Report
from conformance.report.summary import ExitStatus, by_requirement, extent, tally

COLOURS = {ExitStatus.AS_EXPECTED: "#2f8f5b", ExitStatus.STALE: "#8250df"}
OTHERWISE = "#d1242f"
LITTLE = "#6e7781"
"""Neither good nor bad: nothing was seen to break, and most was not looked at, since the system does not claim it."""
_NARROW, _WIDE = frozenset(" .,:;'|/iljtfr1()"), frozenset("mwMW@·%")


def write(path: Path, report: Report) -> None:
    path.write_text(drawn(report), encoding="utf-8", errors="backslashreplace")


def told(report: Report) -> str:
    """``must 363/363 · should 121/121``, and what that leaves out of account: known failures, and what was skipped."""
    single = by_requirement(report.results).values()
    status = report.footer.exit_status
    if status == ExitStatus.NO_SYSTEM:
        return "did not start"
    if status == ExitStatus.NOTHING_RAN:
        return "nothing ran"
    parts = [f"{level.lower()} {tally(verdict for its, verdict in single if its is level)}" for level in Level]
    known = sum(verdict is Verdict.KNOWN for _, verdict in single)
    shown = [part for part in parts if not part.endswith(" 0/0")]
    reach = extent(report.results)
    skipped = [str(reach)] if reach.judged < reach.asked else []
    return " · ".join([*shown, *([f"known {known}"] if known else []), *skipped])


def drawn(report: Report) -> str:
    """The SVG, drawn for the sans-serif at hand: widths are of the usual letters, and held by ``textLength``."""
    left, right = "trackgauge", printable(told(report))
    colour = COLOURS.get(ExitStatus(report.footer.exit_status), OTHERWISE)
    if report.footer.exit_status == ExitStatus.AS_EXPECTED and extent(report.results).little:
        colour = LITTLE
    one, other = _width(left) + 12, _width(right) + 12
    name = quoteattr(f"{left}: {right}")
    texts = "".join(
        f'<text x="{x}" y="14" textLength="{_width(text)}" lengthAdjust="spacingAndGlyphs">{escape(text)}</text>'
        for x, text in ((6, left), (one + 6, right))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{one + other}" height="20" role="img" aria-label={name}>'
        f'<clipPath id="r"><rect width="{one + other}" height="20" rx="3"/></clipPath>'
        f'<g clip-path="url(#r)"><rect width="{one}" height="20" fill="#414a53"/>'
        f'<rect x="{one}" width="{other}" height="20" fill="{colour}"/></g>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">{texts}</g></svg>\n'
    )


def _width(text: str) -> int:
    return round(sum(4.1 if letter in _NARROW else 9.2 if letter in _WIDE else 6.9 for letter in text))
