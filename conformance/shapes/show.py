"""The table of shapes, on a terminal or as Markdown, and what is not as it should be."""

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console, Group
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from conformance.shapes.judging import Told, play, shapes
from conformance.shapes.shape import Shape
from conformance.shapes.stage import stage
from conformance.systems.profile import Profile

COLUMNS = ("shape", "calls", "outcome", "sampled", "trained", "withheld", "excluded")
WIDE = 240
"""Columns of what is no terminal: a line of a file is as long as it is, and nothing is cut."""
INTRODUCTION = """\
# What becomes of a conversation, by its shape

Each row is played for real: a fake engine, a capture proxy, a rebuild. Tokens are counted in the engine's own ledger;
what is expected of each shape is stated from the contract, call by call, and held against what happened. Printed by
`trackgauge shapes --markdown`.
"""


def show(names: Sequence[str], *, markdown: bool, proxy: Profile | None = None, rebuild: Profile | None = None) -> int:
    """0 if all is as expected, 1 if a shape is not, 2 if none has such a name."""
    progress = Console(stderr=True)
    chosen = shapes(names)
    if not chosen:
        progress.print(f"no shape is named like {', '.join(names)}; trackgauge shapes plays all", markup=False)
        return 2
    told = played(chosen, progress, proxy, rebuild)
    if markdown:
        Console(soft_wrap=True, highlight=False).print(as_markdown(told), markup=False, end="")
    else:
        console = Console(highlight=False)
        console.print(drawn(told, console.width if console.is_terminal else WIDE))
    for one in told:
        for fault in one.faults:
            progress.print(
                f"{one.shape.name}: {fault}; {one.shape.rule}", markup=False, highlight=False, soft_wrap=True
            )
    wrong = sum(bool(one.faults) for one in told)
    progress.print(f"{len(told)} shapes, {wrong} not as expected", highlight=False)
    return 1 if wrong else 0


def played(chosen: Iterable[Shape], progress: Console, proxy: Profile | None, rebuild: Profile | None) -> list[Told]:
    with (
        tempfile.TemporaryDirectory(prefix="shapes-") as folder,
        progress.status("starting the systems") as status,
        stage(Path(folder), proxy=proxy, rebuild=rebuild) as made,
    ):
        told = []
        for one in chosen:
            status.update(one.name)
            told.append(play(made, one))
        return told


def cells(one: Told) -> tuple[str, ...]:
    """A row: counts with their share of what was sampled."""
    fate = one.fate
    counts = (fate.trained, fate.withheld, fate.excluded)
    shares = (f"{count} ({100 * count / fate.sampled:.0f} %)" if count else "·" for count in counts)
    return (one.shape.name, str(fate.calls), fate.standing, str(fate.sampled), *shares)


def drawn(told: Sequence[Told], width: int) -> Group | Table:
    """A table, or where that is too wide two lines a shape: no number is ever cut."""
    table = _table(told)
    if Measurement.get(Console(width=WIDE), Console(width=WIDE).options, table).maximum <= width:
        return table
    return Group(*(Text("\n".join(_stacked(one)), style="red" if one.faults else "") for one in told))


def _stacked(one: Told) -> tuple[str, str]:
    name, calls, outcome, *counts = cells(one)
    told = (f"{column} {count}" for column, count in zip(COLUMNS[3:], counts, strict=True))
    return f"{name}: {outcome}", f"    calls {calls}   {'   '.join(told)}"


def _table(told: Iterable[Told]) -> Table:
    table = Table(*COLUMNS, box=None, pad_edge=False)
    for column in (table.columns[1], *table.columns[3:]):
        column.justify = "right"
    for column in table.columns:
        column.no_wrap = True
    for one in told:
        table.add_row(*cells(one), style="red" if one.faults else None)
    return table


def as_markdown(told: Iterable[Told]) -> str:
    head = [f"| {' | '.join((*COLUMNS, 'because'))} |", "| --- | ---: | --- | ---: | ---: | ---: | ---: | --- |"]
    rows = [f"| {' | '.join((*cells(one), one.shape.rule))} |" for one in told]
    return "\n".join([INTRODUCTION, *head, *rows]) + "\n"
