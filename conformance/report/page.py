"""``index.html``: the report as one file to look at, offline. A square a requirement, behind it what was found."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from conformance.contract.vocabulary import Level, Verdict
from conformance.report import hops
from conformance.report.lines import contrast, printable
from conformance.report.results import Header, Report, Result, Sentences, SuiteError, family_of
from conformance.report.summary import WORST_FIRST, ExitStatus, Extent, by_requirement, extent, gating_failure, tally
from conformance.report.terminal import MEANINGS, effort

TEMPLATE = Path(__file__).with_name("page.html.j2")
MARKS = {Verdict.FAIL: "✗", Verdict.ERROR: "!", Verdict.INCONCLUSIVE: "?", Verdict.STALE: "s", Verdict.KNOWN: "k"}
WITH_HOPS = 200
"""Scenarios whose hops are drawn; of more, the others have their evidence linked only."""


@dataclass(frozen=True, slots=True)
class Card:
    """A figure at the head of the page."""

    value: str
    label: str


@dataclass(frozen=True, slots=True)
class Line:
    """What one scenario found of a requirement. ``told`` are labelled texts, ``evidence`` and ``har`` links."""

    scenario: str
    verdict: str
    idle: bool
    told: Sequence[tuple[str, str]]
    disputed: str | None
    evidence: str | None
    har: str | None
    hops: Sequence[hops.Column]


@dataclass(frozen=True, slots=True)
class Rule:
    """A requirement: its square, and what opens behind it. ``again`` is the command that plays it alone."""

    id: str
    level: str
    verdict: str
    mark: str
    statement: str
    harm: str
    again: str | None
    lines: Sequence[Line]


@dataclass(frozen=True, slots=True)
class Family:
    """A row of squares."""

    code: str
    title: str
    rules: Sequence[Rule]


@dataclass(frozen=True, slots=True)
class Shown:
    """A verdict in the filter, and whether it is shown at first."""

    name: str
    count: int
    shown: bool


@dataclass(frozen=True, slots=True)
class Page:
    """Everything the template shows; it decides nothing."""

    title: str
    header: Header
    effort: str
    exit_status: int
    meaning: str
    mood: str
    cards: Sequence[Card]
    verdicts: Sequence[Shown]
    families: Sequence[Family]
    errors: Sequence[SuiteError]


def write(
    path: Path,
    report: Report,
    sentences: Sentences,
    titles: Mapping[str, str],
    again: Callable[[str], str],
) -> None:
    """``titles`` are of families, by code. Evidence is looked for beside ``path``, and linked."""
    from jinja2 import Environment, FileSystemLoader

    loader = FileSystemLoader(TEMPLATE.parent)
    environment = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    page = page_of(report, path.parent, sentences, titles, again)
    text = environment.get_template(TEMPLATE.name).render(page=page)
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def page_of(
    report: Report,
    folder: Path,
    sentences: Sentences,
    titles: Mapping[str, str],
    again: Callable[[str], str],
) -> Page:
    single = by_requirement(report.results)
    counts = {verdict: [its for _, its in single.values()].count(verdict) for verdict in WORST_FIRST}
    findings = any(count for verdict, count in counts.items() if verdict not in (Verdict.PASS, Verdict.SKIP))
    status = report.footer.exit_status
    return Page(
        title=printable(", ".join(report.header.systems.values()) or "no system"),
        header=report.header,
        effort=effort(report.footer).rpartition(" · ")[0],
        exit_status=status,
        meaning=MEANINGS[ExitStatus(status)] if status in tuple(ExitStatus) else "unknown",
        mood={0: "good", 3: "odd"}.get(status, "bad"),
        cards=list(_cards(single, counts, extent(report.results))),
        verdicts=[
            Shown(verdict.value, count, not findings or verdict not in (Verdict.PASS, Verdict.SKIP))
            for verdict, count in counts.items()
            if count
        ],
        families=_families(report, folder, sentences, titles, again),
        errors=[SuiteError(printable(one.scenario), printable(one.reason)) for one in report.errors],
    )


def _cards(single: Mapping[str, tuple[Level, Verdict]], counts: Mapping[Verdict, int], reach: Extent) -> Iterator[Card]:
    for level in Level:
        judged = [verdict for its, verdict in single.values() if its is level and verdict is not Verdict.SKIP]
        if judged:
            yield Card(tally(judged), f"{level} held")
    if reach.judged < reach.asked:
        yield Card(f"{reach.judged}/{reach.asked}", "judged")
    for verdict, count in counts.items():
        if count and verdict is not Verdict.PASS:
            yield Card(str(count), verdict.value)


def _families(
    report: Report,
    folder: Path,
    sentences: Sentences,
    titles: Mapping[str, str],
    again: Callable[[str], str],
) -> list[Family]:
    by_id: dict[str, list[Result]] = {}
    for line in sorted(report.results, key=lambda one: WORST_FIRST.index(one.verdict)):
        by_id.setdefault(line.requirement, []).append(line)
    drawn: set[str] = set()
    families: dict[str, list[Rule]] = {}
    for identity in sorted(by_id):
        lines = by_id[identity]
        sentence = sentences.get(identity)
        verdict = by_requirement(lines)[identity][1]
        rule = Rule(
            id=printable(identity),
            level=lines[0].level.value,
            verdict=verdict.value,
            mark=MARKS.get(verdict, ""),
            statement=sentence.statement if sentence else "not in the catalogue",
            harm=sentence.harm if sentence else "",
            again=again(identity) if verdict is not Verdict.SKIP else None,
            lines=[_line(line, report.header.strict, folder, drawn) for line in lines],
        )
        families.setdefault(family_of(identity), []).append(rule)
    return [Family(code, titles.get(code, ""), rules) for code, rules in sorted(families.items())]


def _line(line: Result, strict: bool, folder: Path, drawn: set[str]) -> Line:
    """``drawn`` are the scenarios whose hops stand on the page already: the same ones need no second picture."""
    har = None if line.evidence is None else str(PurePosixPath(line.evidence).with_suffix(".har"))
    columns: Sequence[hops.Column] = ()
    if line.evidence is not None and line.scenario not in drawn and len(drawn) < WITH_HOPS:
        drawn.add(line.scenario)
        columns = hops.of(folder, line.evidence)
    return Line(
        scenario=printable(line.scenario),
        verdict=line.verdict.value,
        idle=line.verdict is Verdict.FAIL and not gating_failure(line, strict),
        told=list(_told(line)),
        disputed=line.disputed,
        evidence=line.evidence,
        har=har if har is not None and (folder / har).exists() else None,
        hops=columns,
    )


def _told(line: Result) -> Iterator[tuple[str, str]]:
    if line.verdict is not Verdict.PASS and (line.expected is not None or line.seen is not None):
        yield from zip(("expected", "seen"), contrast(line.expected, line.seen, 2000), strict=True)
    for label, text in (("where", line.where), ("reason", line.reason)):
        if text and line.verdict is not Verdict.PASS:
            yield label, printable(text)
