"""The scoreboard: requirements × systems, each cell the verdict of a whole run. Its lines, and where they come from."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal, Protocol

from conformance.contract.vocabulary import Level, SystemKind, Verdict
from conformance.report.plain import JSON, encode, plain
from conformance.report.results import Header, Report, Result
from conformance.report.summary import WORST_FIRST, by_requirement

BOARD_VERSION = 1


@dataclass(frozen=True, slots=True)
class BoardHeader:
    """By what the systems were judged. ``drawn_at`` is when the last of the runs began."""

    suite_version: str
    contract_version: str
    requirement_set: str
    drawn_at: str
    kind: Literal["board"] = "board"
    v: int = BOARD_VERSION


@dataclass(frozen=True, slots=True)
class System:
    """One column. ``not_judged`` says why a system has no verdicts; then the counts are empty.

    ``requirements`` counts requirements by verdict, each once, with the worst of its scenarios.
    """

    name: str
    applies_to: SystemKind
    version: str
    started_at: str
    seconds: float
    exit_status: int
    requirements: Mapping[str, int]
    not_judged: str | None = None
    kind: Literal["system"] = "system"


@dataclass(frozen=True, slots=True)
class Cell:
    """The verdict of one system on one requirement: the worst over ``scenarios``; ``reason`` belongs to that one."""

    system: str
    requirement: str
    level: Level
    verdict: Verdict
    scenarios: int
    reason: str | None = None
    disputed: str | None = None
    kind: Literal["cell"] = "cell"


Line = BoardHeader | System | Cell


@dataclass(frozen=True, slots=True)
class Board:
    """Systems in the order in which they were given; cells by system and requirement."""

    header: BoardHeader
    systems: tuple[System, ...]
    cells: Mapping[tuple[str, str], Cell]

    def judged(self, kind: SystemKind) -> list[System]:
        return [one for one in self.systems if one.applies_to is kind and one.not_judged is None]


class Ruled(Protocol):
    """What a scoreboard says of a requirement beside its verdicts."""

    @property
    def statement(self) -> str: ...
    @property
    def level(self) -> Level: ...
    @property
    def applies_to(self) -> SystemKind: ...
    @property
    def gates_others(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Run:
    """The run of one system. ``why`` says why it has no column; ``report`` is None where none can be read."""

    name: str
    applies_to: SystemKind
    report: Report | None
    why: str | None = None


def board_of(runs: Sequence[Run], requirements: Mapping[str, Ruled]) -> Board:
    """``requirements`` tell of which kind of system each speaks: a run's lines of other kinds stand in no cell."""
    cells: dict[tuple[str, str], Cell] = {}
    systems = []
    for run in runs:
        judged = run.report is not None and run.why is None
        mine = _of_kind(run.report.results, run.applies_to, requirements) if judged and run.report else []
        cells.update({(run.name, cell.requirement): cell for cell in _cells(run.name, mine)})
        systems.append(_system(run, mine))
    headers = [run.report.header for run in runs if run.report is not None]
    return Board(_header(headers), tuple(systems), cells)


def lines(board: Board) -> Iterator[Line]:
    yield board.header
    yield from board.systems
    yield from board.cells.values()


def ndjson(board: Board) -> bytes:
    """A header, a line a system, a line a cell."""
    return b"".join(encode(_plain(line)) + b"\n" for line in lines(board))


def _plain(line: Line) -> dict[str, JSON]:
    return {"kind": line.kind, **{each.name: plain(getattr(line, each.name)) for each in fields(line)}}


def _header(headers: Sequence[Header]) -> BoardHeader:
    def all_of(values: Iterable[str]) -> str:
        return ", ".join(dict.fromkeys(values))

    return BoardHeader(
        suite_version=all_of(one.suite_version for one in headers),
        contract_version=all_of(one.contract_version for one in headers),
        requirement_set=all_of(one.requirement_set for one in headers),
        drawn_at=max((one.started_at for one in headers), default=""),
    )


def _of_kind(results: Iterable[Result], kind: SystemKind, requirements: Mapping[str, Ruled]) -> list[Result]:
    return [
        line
        for line in results
        if line.requirement in requirements and requirements[line.requirement].applies_to is kind
    ]


def _system(run: Run, results: Sequence[Result]) -> System:
    if run.report is None:
        return System(run.name, run.applies_to, "", "", 0.0, 0, {}, run.why or "it was not run")
    single = [verdict for _, verdict in by_requirement(results).values()]
    header, footer = run.report.header, run.report.footer
    named = header.systems.get(run.applies_to.value, "")
    return System(
        name=run.name,
        applies_to=run.applies_to,
        version=named.partition(" ")[2] or named,
        started_at=header.started_at,
        seconds=footer.seconds,
        exit_status=footer.exit_status,
        requirements={verdict.value: single.count(verdict) for verdict in Verdict},
        not_judged=run.why,
    )


def _cells(system: str, results: Iterable[Result]) -> Iterator[Cell]:
    by_id: dict[str, list[Result]] = {}
    for line in results:
        by_id.setdefault(line.requirement, []).append(line)
    for identity, its in sorted(by_id.items()):
        worst = min(its, key=lambda line: WORST_FIRST.index(line.verdict))
        judged = sum(line.verdict is not Verdict.SKIP for line in its)
        yield Cell(system, identity, worst.level, worst.verdict, judged, worst.reason, worst.disputed)
