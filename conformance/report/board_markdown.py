"""The scoreboard as Markdown: what each system comes to, then by family, then every requirement."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from conformance.contract.vocabulary import Level, SystemKind, Verdict
from conformance.report.board import Board, Cell, Ruled, System
from conformance.report.lines import printable
from conformance.report.results import family_of
from conformance.report.summary import tally

MARKS = {
    Verdict.PASS: "✓",
    Verdict.FAIL: "✗",
    Verdict.KNOWN: "k",
    Verdict.STALE: "s",
    Verdict.INCONCLUSIVE: "?",
    Verdict.ERROR: "!",
    Verdict.SKIP: "–",
}
LEGEND = (
    "✓ holds · ✗ violated · k violated, and listed as known (k* where the requirement itself is disputed) · "
    "s listed as known, but holds now · ? could not be judged · ! an error of the suite · – not claimed, so not judged"
)
OURS = "° a decision of this project, where its sources disagree or are silent; others are held to it only if they ask."
KINDS = {
    SystemKind.PROXY: "capture proxies",
    SystemKind.REBUILD: "rollout rebuilds",
    SystemKind.ROLLOUT: "rollout runners",
    SystemKind.SERVER: "model servers",
}


class Titled(Protocol):
    """What a family is about."""

    @property
    def title(self) -> str: ...


def markdown(board: Board, requirements: Mapping[str, Ruled], families: Mapping[str, Titled]) -> str:
    """The whole page. Requirements of a kind of system that is not on the board are left out."""
    head = board.header
    by_what = (
        f"Judged by Trackgauge {head.suite_version}, contract {head.contract_version}, requirements "
        f"{head.requirement_set}; each system alone, against the fake vLLM, by `trackgauge scoreboard`. "
        "What a system does not claim is not held against it."
    )
    blocks = ["# Scoreboard", by_what]
    kinds = [kind for kind in SystemKind if board.judged(kind)]
    for kind in kinds:
        blocks += [f"## {KINDS[kind].capitalize()}", *_summary(board, kind, requirements, families)]
    absent = [one for one in board.systems if one.not_judged is not None]
    if absent:
        blocks += ["## Not judged", "\n".join(f"- {one.name}: {_safe(one.not_judged or '')}" for one in absent)]
    blocks += ["## Every requirement", LEGEND, OURS]
    for kind in kinds:
        blocks += _details(board, kind, requirements, families)
    return "\n\n".join(blocks) + "\n"


def _summary(
    board: Board, kind: SystemKind, requirements: Mapping[str, Ruled], families: Mapping[str, Titled]
) -> Iterator[str]:
    systems = board.judged(kind)
    rows: list[Sequence[str]] = [
        ("version", *(one.version for one in systems)),
        ("judged on", *(one.started_at[:10] for one in systems)),
    ]
    rows += [(f"{level} held", *(_held(_cells(board, one, level=level)) for one in systems)) for level in Level]
    rows += [
        (told, *(str(one.requirements.get(verdict.value, 0)) for one in systems))
        for verdict, told in TOLD.items()
        if any(one.requirements.get(verdict.value) for one in systems)
    ]
    rows.append(("the run took", *(f"{one.seconds:.0f} s" for one in systems)))
    yield _table(("", *(one.name for one in systems)), rows, left=1)
    codes = dict.fromkeys(family_of(name) for name, its in requirements.items() if its.applies_to is kind)
    by_family = [
        (code, families[code].title if code in families else "", *(_held(_cells(board, one, code)) for one in systems))
        for code in codes
        if any(_cells(board, one, code) for one in systems)
    ]
    yield _table(("family", "about", *(one.name for one in systems)), by_family, left=2)


TOLD = {
    Verdict.FAIL: "violated",
    Verdict.KNOWN: "violated, known",
    Verdict.STALE: "known, but holds",
    Verdict.INCONCLUSIVE: "not to be judged",
    Verdict.ERROR: "errors of the suite",
    Verdict.SKIP: "not claimed",
}


def _details(
    board: Board, kind: SystemKind, requirements: Mapping[str, Ruled], families: Mapping[str, Titled]
) -> Iterator[str]:
    systems = board.judged(kind)
    by_family: dict[str, list[Sequence[str]]] = {}
    for identity, rule in requirements.items():
        cells = [board.cells.get((one.name, identity)) for one in systems]
        if rule.applies_to is kind and any(cells):
            level = rule.level.value + ("" if rule.gates_others else "°")
            row = (identity, level, _safe(rule.statement), *(_mark(cell) for cell in cells))
            by_family.setdefault(family_of(identity), []).append(row)
    for code, rows in by_family.items():
        yield f"### {code} {families[code].title if code in families else ''}".rstrip()
        yield _table(("requirement", "level", "statement", *(one.name for one in systems)), rows, left=3)


def _cells(board: Board, system: System, family: str | None = None, level: Level | None = None) -> list[Cell]:
    return [
        cell
        for (name, identity), cell in board.cells.items()
        if name == system.name
        and (family is None or family_of(identity) == family)
        and (level is None or cell.level is level)
    ]


def _held(cells: Iterable[Cell]) -> str:
    """``41/43``: held of those judged; a dot where nothing was."""
    verdicts = [cell.verdict for cell in cells if cell.verdict is not Verdict.SKIP]
    return tally(verdicts) if verdicts else "·"


def _mark(cell: Cell | None) -> str:
    if cell is None:
        return ""
    return MARKS[cell.verdict] + ("*" if cell.disputed is not None else "")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int) -> str:
    """``left`` columns are text; the others are centred."""
    ruler = ["---"] * left + [":---:"] * (len(head) - left)
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ruler, *rows))


def _safe(text: str) -> str:
    """Text that neither ends a cell nor becomes markup."""
    return printable(text).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
