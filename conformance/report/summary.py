"""What a run comes to: its exit status, and ``summary.json``."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import IntEnum
from pathlib import Path

from conformance.contract.vocabulary import Level, Verdict
from conformance.report.plain import JSON, encode
from conformance.report.results import NOT_IN_PLAY, Report, Result, SuiteError, family_of, may_gate

SUMMARY_VERSION = 1


class ExitStatus(IntEnum):
    """How ``trackgauge`` and ``./ci/gate`` end."""

    AS_EXPECTED = 0
    NOT_CONFORMING = 1
    USAGE = 2
    STALE = 3
    NO_SYSTEM = 4
    NOTHING_RAN = 5


def exit_status(
    results: Sequence[Result], errors: Sequence[SuiteError], strict: bool, nothing_ran: bool = False
) -> ExitStatus:
    """The status of a run whose system started. The most serious finding decides: 1 before 5 before 3.

    A run in which every verdict is ``skip`` has run nothing.
    """
    if errors or any(result.verdict is Verdict.ERROR for result in results):
        return ExitStatus.NOT_CONFORMING
    if any(gating_failure(result, strict) for result in results) or unexplained(results):
        return ExitStatus.NOT_CONFORMING
    if nothing_ran or all(result.verdict is Verdict.SKIP for result in results):
        return ExitStatus.NOTHING_RAN
    if any(result.verdict is Verdict.STALE and result.gates for result in results):
        return ExitStatus.STALE
    return ExitStatus.AS_EXPECTED


def gating_failure(result: Result, strict: bool) -> bool:
    return result.verdict is Verdict.FAIL and result.gates and may_gate(result.level, strict)


def unexplained(results: Iterable[Result]) -> list[Result]:
    """The inconclusive results of scenarios in which nothing failed that could explain them."""
    results = list(results)
    failed: dict[str, list[Result]] = {}
    for each in results:
        if each.verdict in (Verdict.FAIL, Verdict.KNOWN):
            failed.setdefault(each.scenario, []).append(each)
    return [
        each
        for each in results
        if each.verdict is Verdict.INCONCLUSIVE
        and not any(explains(failure, each) for failure in failed.get(each.scenario, ()))
    ]


def explains(failure: Result, left_open: Result) -> bool:
    """Whether a failure of the same scenario accounts for what it left open.

    One that fails no run does so only for what would fail none either: a MUST is not lost from sight behind a SHOULD.
    A known failure was looked at by somebody, and accounts for all.
    """
    return failure.verdict is Verdict.KNOWN or failure.gates or not left_open.gates


WORST_FIRST = (
    Verdict.FAIL,
    Verdict.ERROR,
    Verdict.INCONCLUSIVE,
    Verdict.STALE,
    Verdict.KNOWN,
    Verdict.PASS,
    Verdict.SKIP,
)


def by_requirement(results: Iterable[Result]) -> dict[str, tuple[Level, Verdict]]:
    """One verdict a requirement, over all its scenarios: the worst. A pass outweighs a skip elsewhere."""
    worst: dict[str, tuple[Level, Verdict]] = {}
    for result in results:
        before = worst.get(result.requirement)
        verdicts = [result.verdict] if before is None else [result.verdict, before[1]]
        worst[result.requirement] = (result.level, min(verdicts, key=WORST_FIRST.index))
    return worst


HELD = (Verdict.PASS, Verdict.STALE)
"""A requirement that is listed as a known failure and is not violated any more holds like any other."""


def tally(verdicts: Iterable[Verdict]) -> str:
    """``41/43``: how many hold of those that were judged."""
    judged = [verdict for verdict in verdicts if verdict is not Verdict.SKIP]
    return f"{sum(verdict in HELD for verdict in judged)}/{len(judged)}"


@dataclass(frozen=True, slots=True)
class Extent:
    """Of how many requirements that speak of the systems of a run a verdict was given; the others were skipped."""

    judged: int
    asked: int

    @property
    def little(self) -> bool:
        """Less than half. That nothing was seen to break says little then, and must not look like a clean bill."""
        return 2 * self.judged < self.asked

    def __str__(self) -> str:
        return f"judged {self.judged} of {self.asked}"


def extent(results: Iterable[Result]) -> Extent:
    single = by_requirement(result for result in results if result.system != NOT_IN_PLAY).values()
    return Extent(sum(verdict is not Verdict.SKIP for _, verdict in single), len(single))


def counts(verdicts: Iterable[Verdict]) -> dict[str, JSON]:
    """Each member of the closed set with its count, zero included, so that no kind of verdict is out of sight."""
    counted = Counter(verdicts)
    return {verdict.value: counted[verdict] for verdict in Verdict}


def summarise(report: Report) -> dict[str, JSON]:
    """``summary.json``. ``verdicts`` and ``by_family`` count lines, ``requirements`` counts each requirement once,
    and ``judged`` those of them that speak of the systems of the run."""
    families: dict[str, dict[Level, list[Verdict]]] = {}
    for result in report.results:
        families.setdefault(family_of(result.requirement), {}).setdefault(result.level, []).append(result.verdict)
    single = by_requirement(report.results)
    footer = report.footer
    return {
        "v": SUMMARY_VERSION,
        "verdicts": counts(result.verdict for result in report.results),
        "errors": len(report.errors),
        "requirements": {
            level.value: counts(verdict for its, verdict in single.values() if its is level) for level in Level
        },
        "by_family": {
            family: {level.value: counts(levels[level]) for level in Level if level in levels}
            for family, levels in sorted(families.items())
        },
        "judged": asdict(extent(report.results)),
        "scenarios": footer.scenarios,
        "seconds": footer.seconds,
        "servers_started": footer.servers_started,
        "starts_refused": footer.starts_refused,
        "exit_status": footer.exit_status,
    }


def write(path: Path, report: Report) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode(summarise(report), indent=2) + b"\n")
