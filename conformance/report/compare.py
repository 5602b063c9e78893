"""Two runs side by side: which verdicts changed, and whether anything got worse."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from conformance.contract.vocabulary import Level, Verdict
from conformance.report import ndjson
from conformance.report.folder import RESULTS, SCOREBOARD
from conformance.report.lines import printable
from conformance.report.plain import JSON, encode, plain
from conformance.report.results import Report, Result, SuiteError
from conformance.report.summary import HELD, by_requirement

ABSENT = "absent"
"""In the place of a verdict: the other run has no line of that requirement in that scenario."""

OPEN = (Verdict.FAIL, Verdict.ERROR, Verdict.INCONCLUSIVE)
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


def compare_places(before: Path, after: Path) -> dict[str, Comparison]:
    """Two files or report folders, under the name ""; or two folders of a scoreboard, system by system.

    A system that stands in one of the two only is compared with a run without lines. Raises
    :class:`conformance.report.ndjson.ReportError`.
    """
    old, new = _reports(before), _reports(after)
    if old.keys() != new.keys() and "" in old.keys() | new.keys():
        raise ndjson.ReportError(after, 0, f"is not of a kind with {before}: one is a run, the other a scoreboard")
    names = list(dict.fromkeys([*old, *new]))
    return {name: compare(old.get(name) or _nothing(new[name]), new.get(name) or _nothing(old[name])) for name in names}


def _reports(place: Path) -> dict[str, Report]:
    if not place.is_dir() or (place / RESULTS).exists():
        return {"": ndjson.read(place / RESULTS if place.is_dir() else place)}
    inside = {path.parent.name: path for path in place.glob(f"*/{RESULTS}")} if (place / SCOREBOARD).exists() else {}
    if not inside:
        expected = f"expected {RESULTS} of a run, or {SCOREBOARD} with its runs beside it"
        raise ndjson.ReportError(place, 0, f"a folder without results: {expected}; give the folder of a run that ended")
    return {name: ndjson.read(path) for name, path in sorted(inside.items())}


def _nothing(other: Report) -> Report:
    return replace(other, results=(), errors=())


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


def text(found: Mapping[str, Comparison], before: str, after: str) -> str:
    """For people: what got worse first. Values are in one line each."""
    blocks = [f"from {before} to {after}"]
    for name, comparison in found.items():
        blocks += ["", f"== {name}"] if name else []
        blocks += _text(comparison)
    return "\n".join(blocks)


def _text(found: Comparison) -> Iterator[str]:
    yield from (f"note: {note}" for note in found.notes)
    for error in found.errors:
        yield from ("", f"ERROR of the suite, new · {printable(error.scenario)}", f"  {printable(error.reason)}")
    for change in Change:
        mine = [one for one in found.changes if one.change is change]
        if mine:
            yield from ("", f"{change} ({len(mine)})")
            yield from (line for one in mine for line in _told(one))
    counts = " · ".join(f"{change} {sum(one.change is change for one in found.changes)}" for change in Change)
    yield from ("", f"same {found.same} · {counts}")


def as_json(found: Mapping[str, Comparison]) -> str:
    """By name of the system ("" for two single runs): ``{equal, regressed, same, notes, changes, errors}``."""
    return encode({name: _json(comparison) for name, comparison in found.items()}, indent=2).decode()


def _json(found: Comparison) -> JSON:
    changes = [plain(one) for one in found.changes]
    errors: list[JSON] = [{"scenario": error.scenario, "reason": error.reason} for error in found.errors]
    whole: dict[str, JSON] = {"equal": found.equal, "regressed": found.regressed, "same": found.same}
    return {**whole, "notes": list(found.notes), "changes": changes, "errors": errors}


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
    for which, report in (("first", before), ("second", after)):
        if report.footer.cut:
            yield f"the {which} run ended before all was played"
    if by_requirement(before.results).keys() != by_requirement(after.results).keys():
        only = len(by_requirement(before.results).keys() ^ by_requirement(after.results).keys())
        yield f"{only} requirements stand in one of the two only"


def _shown(value: object) -> str:
    return ", ".join(map(str, value.values())) if isinstance(value, dict) else str(value)


def _told(one: Changed) -> Iterable[str]:
    yield f"  {one.requirement} ({one.level}) {one.before} → {one.after} · {printable(one.scenario)}"
    if one.reason is not None and one.change is not Change.BETTER:
        yield f"    {printable(one.reason)}"
