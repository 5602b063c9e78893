"""One scenario under way: what it covers, what it checked, how it ended."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pytest

from conformance.contract.vocabulary import Verdict
from conformance.gauge.check import Check, Inconclusive, Unmet
from conformance.gauge.limit import NeverEnded
from conformance.gauge.settle import Judge
from conformance.gauge.verdicts import Checked, Ending, Ruling, rule
from conformance.report import evidence
from conformance.report.results import Result, SuiteError
from conformance.systems.calls import SystemFailed
from conformance.systems.engine import EngineCannot
from conformance.systems.proxy import SILENT, NotOurs
from conformance.systems.rebuild import RebuildUnderTest
from conformance.systems.retrieval import RetrievalFailed
from conformance.systems.runner import RunnerUnderTest

KEEPS_SERVING = "ERR-019"
"""The requirement that a system violates which dies of a request, whatever the scenario was about."""


RETRIEVABLE = "RET-001"
"""The requirement that a system violates which declares a retrieval and then does not hand out records."""


class NotConforming(Exception):
    """Raised at the end of a scenario that found violations or could not judge; its text is what pytest shows."""


@dataclass
class Case:
    """``scene`` and ``dead`` are set by the fixtures that a scenario asks for.

    ``only_known`` tells of a scenario that ended that nothing failed in it but what is listed as known.
    """

    scenario: str
    covered: tuple[str, ...]
    skipped: dict[str, str]
    judge: Judge
    evidence_folder: Path
    check: Check = field(init=False)
    began: float = field(default_factory=time.monotonic)
    dead: Callable[[], str | None] = lambda: None
    own_death: Callable[[], str | None] = lambda: None
    broken_engine: Callable[[], str | None] = lambda: None
    left_out: Callable[[], str | None] = lambda: None
    note_silence: Callable[[bool], None] = lambda silent: None
    whereabouts: Callable[[], list[tuple[str, str]]] = list
    evidence_of: list["HasEvidence"] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    errors: list[SuiteError] = field(default_factory=list)
    only_known: bool = False
    _unreadable: str | None = None

    def __post_init__(self) -> None:
        self.check = Check(self.scenario, self.covered, self.skipped)

    @property
    def all_skipped(self) -> str | None:
        """Why nothing of this scenario applies, or None when something does."""
        if self.covered and all(identity in self.skipped for identity in self.covered):
            return "; ".join(sorted(set(self.skipped.values())))
        return None

    def skip(self) -> None:
        self._settle([Ruling(identity, Verdict.SKIP, reason=why) for identity, why in self.skipped.items()])

    def break_down(self, reason: str, *, judged: bool) -> None:
        """A fixture broke. Unless the scenario was ``judged`` already, nothing it covers can be."""
        self.errors.append(SuiteError(self.scenario, reason, self._seconds()))
        if judged:
            return
        live = [identity for identity in self.covered if identity not in self.skipped]
        self._settle([Ruling(identity, Verdict.ERROR, reason=reason) for identity in live])

    def give_up(self, reason: str) -> None:
        """The system kept a fixture from what the scenario stands on: nothing it covers can be judged."""
        live = [identity for identity in self.covered if identity not in self.skipped]
        self._settle([Ruling(identity, Verdict.INCONCLUSIVE, reason=reason) for identity in live])

    def end(self, raised: BaseException | None) -> str | None:
        """Rule on everything covered. Returns the text of what keeps the scenario from passing, or None."""
        died = self.dead()
        late = isinstance(raised, NeverEnded)
        self.note_silence(late or (died is not None and SILENT in died))
        ending = self._ending(raised, died)
        rulings = rule(self.covered, self.skipped, self.check.noted, ending, self.check.unseen)
        if died is not None and ending.died is not None:
            rulings.append(self._violated(KEEPS_SERVING, "a proxy that keeps serving", died))
        if self._unreadable is not None:
            rulings.append(self._violated(RETRIEVABLE, "records that can be fetched", self._unreadable))
        bad = [one for one in rulings if one.verdict in (Verdict.FAIL, Verdict.ERROR, Verdict.INCONCLUSIVE)]
        self._settle(rulings, self._evidence() if bad else None)
        return "\n".join(_line(one) for one in bad) if bad else None

    def _ending(self, raised: BaseException | None, died: str | None) -> Ending:
        engine = self.broken_engine()
        if engine is not None:
            return Ending(broken=engine)
        if isinstance(raised, NotOurs | EngineCannot):
            return Ending(out_of_reach=str(raised))
        died = died or self.own_death()
        if died is None and isinstance(raised, RetrievalFailed):
            self._unreadable = str(raised)
            return Ending(stopped=f"{RETRIEVABLE} does not hold: {raised}")
        if isinstance(raised, Unmet | Inconclusive):
            return Ending(died=died, unmet=str(raised))
        if isinstance(raised, SystemFailed):
            return Ending(died=died, stopped=f"it could not go on: {raised}".partition("\n")[0])
        if raised is None:
            return Ending(out_of_reach=self.left_out(), died=died)
        return Ending(died=died, broken=_named(raised))

    def _violated(self, requirement: str, expected: str, seen: str) -> Ruling:
        """A requirement that speaks of every scenario, and is violated in this one."""
        return Ruling(requirement, Verdict.FAIL, Checked(requirement, False, expected, seen, self.scenario))

    def _evidence(self) -> str | None:
        if not self.evidence_of:
            return None
        parts: dict[str, object] = {}
        for one in self.evidence_of:
            parts.update(asyncio.run(one.evidence()))
        try:
            return evidence.write(self.evidence_folder, self.scenario, parts)
        except OSError:  # a verdict is worth more than what it rests on; the report will say that there is no room
            return None

    def _settle(self, rulings: list[Ruling], evidence_file: str | None = None) -> None:
        unique = {one.requirement: one for one in rulings}
        lines = self.judge.settle(self.scenario, unique.values(), self._seconds(), evidence_file)
        verdicts = {line.verdict for line in lines}
        self.only_known = Verdict.KNOWN in verdicts and not verdicts & {Verdict.FAIL, Verdict.ERROR}
        self.results += lines

    def _seconds(self) -> float:
        return time.monotonic() - self.began


class HasEvidence(Protocol):
    """What can show what happened."""

    async def evidence(self) -> dict[str, Any]: ...


class AskedOfRebuild:
    """The questions a scenario put to the rebuild, the last ones at least, each with its answer."""

    def __init__(self, rebuild: RebuildUnderTest) -> None:
        self._rebuild = rebuild

    async def evidence(self) -> dict[str, Any]:
        return {
            "rebuilds": [
                {"question": line.decode(errors="replace"), "answer": answer} for line, answer in self._rebuild.asked
            ]
        }


class AskedOfRunner:
    """The rollouts that a scenario asked a runner for, each with its answer, null where none came."""

    def __init__(self, runner: RunnerUnderTest) -> None:
        self._runner = runner

    async def evidence(self) -> dict[str, Any]:
        told = [
            (request, going.tasks, going.last_line if going.answered else None) for request, going in self._runner.asked
        ]
        return {
            "rollouts": [
                {"request": request, "tasks": tasks, "answer": None if line is None else _result_or_why(line)}
                for request, tasks, line in told
            ]
        }


def _result_or_why(line: Future[dict[str, Any]]) -> object:
    error = line.exception()
    return line.result() if error is None else str(error)


CASE = pytest.StashKey[Case]()


def _named(raised: BaseException) -> str:
    text = str(raised).strip().splitlines()
    last = raised.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    place = f" at {Path(last.tb_frame.f_code.co_filename).name}:{last.tb_lineno}" if last is not None else ""
    return f"{type(raised).__name__}: {text[0] if text else ''}{place}"


def _line(one: Ruling) -> str:
    if one.checked is not None and one.verdict is Verdict.FAIL:
        seen = one.checked
        where = f" · {seen.where}" if seen.where else ""
        return f"{one.requirement} {one.verdict}: expected {seen.expected!r:.300}, seen {seen.seen!r:.300}{where}"
    return f"{one.requirement} {one.verdict}: {one.reason}"
