"""The demo as a command: starts the systems, plays every cast through every conversation, prints one table."""

import asyncio
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from conformance.demo.casts import CASTS, Kind
from conformance.demo.playing import TENANT, Stage
from conformance.oracle.fate import Fate
from conformance.systems import routing
from conformance.systems.engine import start_engine
from conformance.systems.profiles import find
from conformance.systems.proxy_start import start_proxy
from conformance.systems.rebuild import RebuildUnderTest

WIDTH = 124
COLUMNS = ("agent", "conversation", "calls", "outcome", "sampled", "trained", "withheld", "excluded")


def demo() -> int:
    """0 if every token is where the law has it, else 1. Says on stderr what it is doing, for it takes some seconds."""
    progress = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="demo-") as folder, progress.status("starting the systems"):
        place = Path(folder)
        engine = start_engine(place)
        proxy = start_proxy(find("reference"), engine.url, place / "records")
        rebuild = RebuildUnderTest(find("reference-rebuild"), place)
        try:
            rows = asyncio.run(_play_all(Stage(engine, proxy, rebuild), progress))
        finally:
            rebuild.close()
            proxy.close()
            engine.close()
    console = Console()
    if not console.is_terminal:  # a line of a file is as long as it is
        console.width = WIDTH
    console.print(_table(rows))
    astray = [(name, kind, fate.law) for name, kind, fate in rows if not isinstance(fate, str) and not fate.law]
    for name, kind, law in astray:
        line = f"{name}, {kind}: expected {law.expected}, seen {law.seen!r}, {law.where}"
        progress.print(line, markup=False, highlight=False, soft_wrap=True)
    return 1 if astray else 0


async def _play_all(stage: Stage, progress: Console) -> list[tuple[str, Kind, Fate | str]]:
    # A model that does not reason: what it says comes back as it was, so that only the conversation decides.
    await stage.engine.tenant(TENANT, {**routing.tenants()[TENANT], "reasoning_parser": None})
    rows: list[tuple[str, Kind, Fate | str]] = []
    for cast in CASTS:
        for kind in Kind:
            if kind in cast.unrecorded:
                rows.append((cast.name, kind, cast.unrecorded[kind]))
                continue
            progress.print(f"{cast.name}: {kind}", highlight=False)
            rows.append((cast.name, kind, await stage.play(cast, kind, run=len(rows) + 1)))
    return rows


def _table(rows: list[tuple[str, Kind, Fate | str]]) -> Table:
    table = Table(*COLUMNS, box=None, pad_edge=False)
    for column in table.columns[:4]:
        column.overflow = "fold"
    for column in table.columns[4:]:
        column.justify, column.no_wrap = "right", True  # on a narrow terminal words are broken, numbers never
    before = ""
    for name, kind, played in rows:
        shown = "" if name == before else name
        before = name
        if isinstance(played, str):
            table.add_row(shown, kind, "", f"n/a: {played}")
            continue
        counts = (played.sampled, played.trained, played.withheld, played.excluded)
        table.add_row(shown, kind, str(played.calls), played.standing, *map(str, counts))
    return table
