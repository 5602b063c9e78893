"""The end of a run as people read it: a table by family and level, a block per finding, one closing line."""

import io
import shlex
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePosixPath
from typing import TextIO

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from conformance.contract.vocabulary import Level, Verdict
from conformance.report.lines import contrast, printable
from conformance.report.results import Footer, Report, Result, Sentences, SuiteError, family_of
from conformance.report.summary import ExitStatus, by_requirement, extent, gating_failure, tally, unexplained

NARROWEST = 40
SEPARATOR = " · "
LABEL = 11
"""Columns of the label in a block, its indent included."""

MEANINGS = {
    ExitStatus.AS_EXPECTED: "as expected",
    ExitStatus.NOT_CONFORMING: "not conforming, or not shown to be",
    ExitStatus.USAGE: "usage",
    ExitStatus.STALE: "a known failure is stale",
    ExitStatus.NO_SYSTEM: "the system did not start",
    ExitStatus.NOTHING_RAN: "nothing ran",
}

_COLOURS = {Verdict.FAIL: "bold red", Verdict.ERROR: "bold magenta", Verdict.KNOWN: "dim"}


Again = Callable[[str], str]
"""From a requirement, or a scenario, to the command line that plays it alone."""


def run_again(name: str) -> str:
    return f"trackgauge repro {shlex.quote(name)}"


def show(report: Report, sentences: Sentences, stream: TextIO, results_path: str, again: Again = run_again) -> None:
    """Prints the end of a run: in colour on a terminal only, and never failing on what a stream cannot encode."""
    terminal = stream.isatty()
    width = shutil.get_terminal_size((80, 24)).columns if terminal else 80
    text = render(report, sentences, results_path, again, width=width, colour=terminal)
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def render(
    report: Report,
    sentences: Sentences,
    results_path: str,
    again: Again = run_again,
    *,
    width: int = 80,
    colour: bool = False,
) -> str:
    """The same as text. Lines are at most ``width`` wide, but for commands and paths, which are never broken."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=max(width, NARROWEST),
        force_terminal=colour,
        color_system="standard" if colour else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    for error in report.errors:
        _suite_error(console, error, again)
    folder = PurePosixPath(results_path).parent
    for first, *others in _by_requirement(_findings(report.results)):
        evidence = str(folder / first.evidence) if first.evidence else None
        _block(console, first, report.header.strict, sentences, evidence, again)
        _line(console, "also in", ", ".join(each.scenario for each in others))
    for together in _by_scenario(_asides(report.results)):
        _aside(console, together)
    console.print()
    console.print(_table(report.results))
    console.print()
    for line in (closing(report.results, report.errors), effort(report.footer)):
        console.print(Text(_folded(line, console.width)))
    console.print(Text(f"results {printable(results_path)}"), soft_wrap=True)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def closing(results: Sequence[Result], errors: Sequence[SuiteError]) -> str:
    """``must 41/43 · should 9/12 · …``: requirements that passed of those judged; then all the others.

    Where some were skipped it ends with how many were judged at all.
    """
    single = by_requirement(results)
    verdicts = [verdict for _, verdict in single.values()]
    unfinished = {
        "inconclusive": verdicts.count(Verdict.INCONCLUSIVE),
        "errors": verdicts.count(Verdict.ERROR) + len(errors),
    }
    reach = extent(results)
    return SEPARATOR.join(
        [
            *(f"{level.lower()} {tally(v for its, v in single.values() if its is level)}" for level in Level),
            f"skipped {verdicts.count(Verdict.SKIP)}",
            f"known {verdicts.count(Verdict.KNOWN)} (stale {verdicts.count(Verdict.STALE)})",
            *(f"{name} {count}" for name, count in unfinished.items() if count),
            *([str(reach)] if reach.judged < reach.asked else []),
        ]
    )


def effort(footer: Footer) -> str:
    """What the run took, and how it ends."""
    return (
        f"{_counted(footer.scenarios, 'scenario')} · {_counted(footer.servers_started, 'server')} · "
        f"{footer.seconds:.1f} s · "
        f"exit {footer.exit_status}: {_meaning(footer.exit_status)}"
    )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _folded(line: str, width: int) -> str:
    """Broken between its parts, never within one."""
    lines: list[str] = []
    for part in line.split(SEPARATOR):
        together = SEPARATOR.join([*lines[-1:], part])
        if lines and len(together) <= width:
            lines[-1] = together
        else:
            lines.append(part)
    return "\n".join(lines)


def _meaning(status: int) -> str:
    return MEANINGS[ExitStatus(status)] if status in tuple(ExitStatus) else "unknown"


def _table(results: Sequence[Result]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("family")
    for title in ("must", "should", "may", "skipped", "known", "stale", "open"):
        table.add_column(title, justify="right")
    families: dict[str, list[tuple[Level, Verdict]]] = {}
    for requirement, its in by_requirement(results).items():
        families.setdefault(family_of(requirement), []).append(its)
    for family, judged in sorted(families.items()):
        verdicts = [verdict for _, verdict in judged]
        if all(verdict is Verdict.SKIP for verdict in verdicts):
            continue
        others = [
            verdicts.count(Verdict.SKIP),
            verdicts.count(Verdict.KNOWN),
            verdicts.count(Verdict.STALE),
            verdicts.count(Verdict.INCONCLUSIVE) + verdicts.count(Verdict.ERROR),
        ]
        cells = [_level_cell(verdict for its, verdict in judged if its is level) for level in Level]
        table.add_row(Text(printable(family)), *cells, *(Text(str(count) if count else "·") for count in others))
    return table


def _level_cell(verdicts: Iterable[Verdict]) -> Text:
    judged = list(verdicts)
    if all(verdict is Verdict.SKIP for verdict in judged):
        return Text("·")
    held = all(verdict in (Verdict.PASS, Verdict.SKIP) for verdict in judged)
    return Text(tally(judged), style="bold red" if Verdict.FAIL in judged else "" if held else "yellow")


def _findings(results: Sequence[Result]) -> list[Result]:
    """What gets a block: failures, MUST first, then errors, what nothing explains, and stale known failures."""
    levels = list(Level)
    failures = [result for result in results if result.verdict is Verdict.FAIL]
    return [
        *sorted(failures, key=lambda result: levels.index(result.level)),
        *(result for result in results if result.verdict is Verdict.ERROR),
        *unexplained(results),
        *(result for result in results if result.verdict is Verdict.STALE),
    ]


def _asides(results: Sequence[Result]) -> list[Result]:
    """What is told in one line: known failures, and what a failure in the same scenario explains."""
    bare = {id(result) for result in unexplained(results)}
    return [
        result
        for result in results
        if result.verdict is Verdict.KNOWN or (result.verdict is Verdict.INCONCLUSIVE and id(result) not in bare)
    ]


def _by_requirement(results: Iterable[Result]) -> list[list[Result]]:
    """One finding each: the same requirement with the same verdict, in however many scenarios."""
    groups: dict[tuple[str, Verdict], list[Result]] = {}
    for result in results:
        groups.setdefault((result.requirement, result.verdict), []).append(result)
    return list(groups.values())


def _by_scenario(results: Iterable[Result]) -> list[list[Result]]:
    """What is said in one breath: the requirements of one scenario that share verdict and reason."""
    groups: dict[tuple[str, Verdict, str | None], list[Result]] = {}
    for result in results:
        groups.setdefault((result.scenario, result.verdict, result.reason), []).append(result)
    return list(groups.values())


def _block(
    console: Console, result: Result, strict: bool, sentences: Sentences, evidence: str | None, again: Again
) -> None:
    idle = result.verdict is Verdict.FAIL and not gating_failure(result, strict)
    gate = f"{result.level}, does not gate" if idle else result.level
    _title(console, result.verdict, f"{result.requirement} ({gate}) · {result.system}")
    _line(console, "scenario", result.scenario, whole=True)
    sentence = sentences.get(result.requirement)
    _line(console, "rule", sentence.statement if sentence else "not in the catalogue")
    if result.expected is not None or result.seen is not None:
        expected, seen = contrast(result.expected, result.seen)
        _line(console, "expected", expected)
        _line(console, "seen", seen)
    _line(console, "where", result.where)
    _line(console, "reason", result.reason)
    if result.verdict is Verdict.STALE:
        _line(console, "do", f"it holds now: take {result.requirement} off the known failures")
    _line(console, "disputed", result.disputed, whole=True)
    _line(console, "harm", sentence.harm if sentence else None)
    _line(console, "evidence", evidence, whole=True)
    _line(console, "again", again(result.requirement), whole=True)


def _suite_error(console: Console, error: SuiteError, again: Again) -> None:
    _title(console, Verdict.ERROR, "of the suite, not of a system")
    _line(console, "scenario", error.scenario, whole=True)
    _line(console, "reason", error.reason)
    _line(console, "again", again(error.scenario), whole=True)


def _aside(console: Console, together: Sequence[Result]) -> None:
    first = together[0]
    named = ", ".join(f"{each.requirement} ({each.level})" for each in together)
    _title(console, first.verdict, f"{named} · {first.system}")
    _line(console, "scenario", first.scenario, whole=True)
    _line(console, "reason", first.reason)
    _line(console, "disputed", first.disputed, whole=True)


def _title(console: Console, verdict: Verdict, text: str) -> None:
    console.print()
    console.print(Text.assemble((verdict.upper(), _COLOURS.get(verdict, "bold yellow")), f" {printable(text)}"))


def _line(console: Console, label: str, text: str | None, whole: bool = False) -> None:
    """One labelled entry, wrapped under itself; ``whole`` keeps it on one line, so that it can be copied."""
    if not text:
        return
    if whole:
        console.print(Text(f"  {label:<{LABEL - 2}}{printable(text)}"), soft_wrap=True)
        return
    entry = Table.grid()
    entry.add_column(width=LABEL - 2)
    entry.add_column(overflow="fold")
    entry.add_row(Text(label, style="dim"), Text(printable(text)))
    console.print(Padding(entry, (0, 0, 0, 2)))
