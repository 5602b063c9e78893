"""Two runs side by side: which verdicts changed, and whether anything got worse."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from conformance.contract.vocabulary import Level, Verdict
from conformance.report import ndjson
from conformance.report.folder import RESULTS
from conformance.report.lines import printable
from conformance.report.plain import JSON, encode
from conformance.report.results import Report, Result, SuiteError
from conformance.report.summary import by_requirement

ABSENT = "absent"
"""In the place of a verdict: the other run has no line of that requirement in that scenario."""

OPEN = (Verdict.FAIL, Verdict.ERROR, Verdict.INCONCLUSIVE)
HELD = (Verdict.PASS, Verdict.STALE)
UNJUDGED = (None, Verdict.SKIP)


class Change(StrEnum):
    """What became of one line. Only ``worse`` is a regression."""

    WORSE = "worse"
    BETTER = "better"
    LOST = "no longer judged"
    NEW = "newly judged"
    OTHER = "otherwise changed"


@dataclass(frozen=True, slots=True)
class Changed:
    """One line of one run or the other. ``before`` and ``after`` are verdicts, or ``absent``."""

    requirement: str
    level: Level
    scenario: str
    before: str
    after: str
    change: Change
    reason: str | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """``errors`` are the suite errors that only the second run has. ``notes`` say what else differs between the two."""

    changes: tuple[Changed, ...]
    errors: tuple[SuiteError, ...]
    notes: tuple[str, ...]
    same: int

    @property
    def equal(self) -> bool:
        return not self.changes and not self.errors

    @property
    def regressed(self) -> bool:
        return bool(self.errors) or any(one.change is Change.WORSE for one in self.changes)


def read(place: Path) -> Report:
    """The report in a file, or in a folder that a run wrote. Raises :class:`conformance.report.ndjson.ReportError`."""
    return ndjson.read(place / RESULTS if place.is_dir() else place)


def compare(before: Report, after: Report) -> Comparison:
    """Line by line, in the order of requirements and scenarios. What was expected and seen may differ between runs."""
    old, new = _lines(before.results), _lines(after.results)
    changes = []
    for pair in sorted(old.keys() | new.keys()):
        was, now = old.get(pair), new.get(pair)
        if was is None or now is None or was.verdict is not now.verdict:
            changes.append(_changed(was, now))
    known = {(error.scenario, error.reason) for error in before.errors}
    errors = tuple(error for error in after.errors if (error.scenario, error.reason) not in known)
    both = len(old.keys() & new.keys())
    same = both - sum(ABSENT not in (one.before, one.after) for one in changes)
    return Comparison(tuple(changes), errors, tuple(_notes(before, after)), same)


def text(found: Comparison, before: str, after: str) -> str:
    """For people: what got worse first. Values are in one line each."""
    lines = [f"from {before} to {after}", *(f"note: {note}" for note in found.notes)]
    for error in found.errors:
        lines += ["", f"ERROR of the suite, new · {printable(error.scenario)}", f"  {printable(error.reason)}"]
    for change in Change:
        mine = [one for one in found.changes if one.change is change]
        if mine:
            lines += ["", f"{change} ({len(mine)})", *(line for one in mine for line in _told(one))]
    counts = " · ".join(f"{change} {sum(one.change is change for one in found.changes)}" for change in Change)
    return "\n".join([*lines, "", f"same {found.same} · {counts}"])


def as_json(found: Comparison) -> bytes:
    """``{equal, regressed, same, notes, changes, errors}``; the last two are lists of objects."""
    changes: list[JSON] = [
        {
            "requirement": one.requirement,
            "level": one.level.value,
            "scenario": one.scenario,
            "before": one.before,
            "after": one.after,
            "change": one.change.value,
            "reason": one.reason,
        }
        for one in found.changes
    ]
    errors: list[JSON] = [{"scenario": error.scenario, "reason": error.reason} for error in found.errors]
    whole: dict[str, JSON] = {"equal": found.equal, "regressed": found.regressed, "same": found.same}
    return encode({**whole, "notes": list(found.notes), "changes": changes, "errors": errors}, indent=2) + b"\n"


def _lines(results: Iterable[Result]) -> dict[tuple[str, str], Result]:
    return {(line.requirement, line.scenario): line for line in results}


def _changed(was: Result | None, now: Result | None) -> Changed:
    line = now or was
    assert line is not None
    before, after = (None if one is None else one.verdict for one in (was, now))
    return Changed(
        line.requirement,
        line.level,
        line.scenario,
        before or ABSENT,
        after or ABSENT,
        _change(before, after),
        None if now is None else now.reason or (None if now.where is None else f"at {now.where}"),
    )


def _change(before: Verdict | None, after: Verdict | None) -> Change:
    """A line that is open now and was not, or was not there, is worse: whoever reads both has to look at it.

    So is a failure that is only known because somebody listed it between the two runs.
    """
    if after in OPEN:
        return Change.OTHER if before in OPEN else Change.WORSE
    if before in UNJUDGED or after in UNJUDGED:
        if before in UNJUDGED and after in UNJUDGED:
            return Change.OTHER
        return Change.LOST if after in UNJUDGED else Change.NEW
    if after is Verdict.KNOWN:
        return Change.WORSE if before in HELD else Change.OTHER
    return Change.OTHER if before in HELD else Change.BETTER


def _notes(before: Report, after: Report) -> Iterable[str]:
    for name in ("systems", "suite_version", "contract_version", "requirement_set", "fakes", "strict"):
        was, now = getattr(before.header, name), getattr(after.header, name)
        if was != now:
            yield f"{name.replace('_', ' ')}: {_shown(was)}, then {_shown(now)}"
    if by_requirement(before.results).keys() != by_requirement(after.results).keys():
        only = len(by_requirement(before.results).keys() ^ by_requirement(after.results).keys())
        yield f"{only} requirements stand in one of the two only"


def _shown(value: object) -> str:
    return ", ".join(map(str, value.values())) if isinstance(value, dict) else str(value)


def _told(one: Changed) -> Iterable[str]:
    yield f"  {one.requirement} ({one.level}) {one.before} → {one.after} · {printable(one.scenario)}"
    if one.reason is not None and one.change is not Change.BETTER:
        yield f"    {printable(one.reason)}"
