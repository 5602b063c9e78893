"""The named shapes: each is played, and the printed table is the one that was written down."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from conformance.oracle.fate import Fate
from conformance.oracle.law import HELD
from conformance.shapes.judging import Told, shapes
from conformance.shapes.show import WIDE, as_markdown, drawn, played, show
from conformance.systems.profiles import find
from tests.law.faults import faulty

WRITTEN = Path(__file__).parents[2] / "docs" / "shapes.md"


@pytest.mark.timeout(180)
def test_every_shape_is_as_the_contract_has_it_and_as_it_was_written_down() -> None:
    told = played(shapes(), Console(quiet=True), None, None)
    assert {one.shape.name: one.faults for one in told if one.faults} == {}
    assert as_markdown(told) == WRITTEN.read_text(encoding="utf-8"), "trackgauge shapes --markdown > docs/shapes.md"


def test_a_rebuild_with_a_fault_is_told_by_the_shape_it_gets_wrong(tmp_path: Path) -> None:
    rebuild = faulty("both-ends-share-the-reward", tmp_path / "ran")
    (fork,) = played(shapes(["fork at the first call"])[:1], Console(quiet=True), None, find("reference-rebuild"))
    assert fork.faults == ()
    told = {one.shape.name: one.faults for one in played(shapes(["fork"]), Console(quiet=True), None, rebuild)}
    assert any(fault.startswith("withheld: expected calls 1 2 3 b c, seen") for fault in told["fork"])


def test_a_name_that_no_shape_has_is_a_usage_error() -> None:
    assert show(["no such shape"], markdown=False) == 2


@pytest.mark.parametrize("width", [80, 120, WIDE])
def test_no_number_is_cut_whatever_the_width(width: int) -> None:
    fate = Fate(12, "partial", "unresolved_siblings", 30_000, 10_000, 10_000, HELD)
    every = [Told(one, fate, ("a fault",)) for one in shapes()]
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(drawn(every, width))
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for share in ("30000 (60 %)", "10000 (20 %)", "(unresolved_siblings)"):
        assert text.count(share) >= len(every)
