"""``summary.md``: a run in a page of Markdown, for a pull request or a job's summary."""

from collections.abc import Callable, Iterator
from pathlib import Path

from conformance.contract.vocabulary import Level, Verdict
from conformance.report.lines import contrast, printable
from conformance.report.results import Report, Result, Sentences, family_of
from conformance.report.summary import by_requirement, gating_failure
from conformance.report.terminal import closing, effort

MOST = 50
"""Findings that are told in full; a pull request's comment has a limit too."""


def write(
    path: Path, report: Report, sentences: Sentences, again: Callable[[str], str], not_started: str | None = None
) -> None:
    path.write_text(drawn(report, sentences, again, not_started), encoding="utf-8", errors="backslashreplace")


def drawn(report: Report, sentences: Sentences, again: Callable[[str], str], not_started: str | None = None) -> str:
    """What it comes to, why a system did not start, then each finding, then the table by family."""
    title = safe(", ".join(report.header.systems.values()) or "no system")
    blocks = [f"## Trackgauge: {title}", f"{closing(report.results, report.errors)}  \n{effort(report.footer)}"]
    if not_started is not None:  # without the end of its log, which may hold what is not for a pull request
        blocks.append(f"**{safe(not_started.splitlines()[0])}**")
    blocks += [f"- **error of the suite** `{printable(one.scenario)}`: {safe(one.reason)}" for one in report.errors]
    found = list(_findings(report))
    blocks += [_finding(lines, report.header.strict, sentences, again) for lines in found[:MOST]]
    if len(found) > MOST:
        blocks.append(f"… and {len(found) - MOST} more; `results.ndjson` has them all.")
    blocks.append(_table(report))
    return "\n\n".join(blocks) + "\n"


def safe(text: str) -> str:
    """Text on one line that neither ends a cell nor becomes markup."""
    plain = printable(" ".join(text.split()))
    for sign in "\\|<*_`":
        plain = plain.replace(sign, f"\\{sign}" if sign != "<" else "&lt;")
    return plain


def _findings(report: Report) -> Iterator[list[Result]]:
    """Lines of one requirement with one verdict; what fails the run first."""
    order = (Verdict.FAIL, Verdict.ERROR, Verdict.INCONCLUSIVE, Verdict.STALE, Verdict.KNOWN)
    levels = list(Level)
    groups: dict[tuple[int, int, str], list[Result]] = {}
    for line in report.results:
        if line.verdict in order:
            key = (order.index(line.verdict), levels.index(line.level), line.requirement)
            groups.setdefault(key, []).append(line)
    return iter(groups[key] for key in sorted(groups))


def _finding(lines: list[Result], strict: bool, sentences: Sentences, again: Callable[[str], str]) -> str:
    first = lines[0]
    sentence = sentences.get(first.requirement)
    idle = first.verdict is Verdict.FAIL and not any(gating_failure(line, strict) for line in lines)
    text = [
        f"- **{first.verdict} {first.requirement}** ({first.level}{', does not gate' if idle else ''}) "
        f"{safe(sentence.statement) if sentence else ''}".rstrip()
    ]
    if first.verdict is Verdict.FAIL:
        expected, seen = contrast(first.expected, first.seen, 160)
        text.append(f"expected {_code(expected)}, seen {_code(seen)}")
    if first.reason is not None:
        text.append(safe(first.reason))
    if first.disputed is not None:
        text.append(f"disputed: {first.disputed}")
    if first.verdict is not Verdict.KNOWN:
        text.append(_code(again(first.requirement)))
    return "  \n  ".join(text)


def _table(report: Report) -> str:
    families: dict[str, list[Verdict]] = {}
    for identity, (_, verdict) in by_requirement(report.results).items():
        families.setdefault(family_of(identity), []).append(verdict)
    shown = [verdict for verdict in Verdict if any(verdict in its for its in families.values())]
    rows = [
        ["family", *(verdict.value for verdict in shown)],
        ["---", *("---:" for _ in shown)],
        *([code, *(str(its.count(verdict) or "·") for verdict in shown)] for code, its in sorted(families.items())),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _code(text: str) -> str:
    fence = "``" if "`" in text else "`"
    return f"{fence}{printable(text)}{fence}"
