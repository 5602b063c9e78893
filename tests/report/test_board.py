"""The scoreboard: what is counted, what is drawn."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from conformance.contract.vocabulary import Level, SystemKind, Verdict
from conformance.report.board import Run, board_of, ndjson
from conformance.report.board_markdown import markdown
from conformance.report.results import Report, Result
from conformance.report.schema import exported_board

pytestmark = pytest.mark.unit


@dataclass(frozen=True)
class Rule:
    statement: str
    level: Level = Level.MUST
    applies_to: SystemKind = SystemKind.PROXY
    gates_others: bool = True


@dataclass(frozen=True)
class Family:
    title: str


RULES = {
    "CAP-001": Rule("It holds | always <b>."),
    "CAP-002": Rule("It should hold.", Level.SHOULD),
    "STR-001": Rule("Streams end.", gates_others=False),
    "REB-001": Rule("It is rebuilt.", applies_to=SystemKind.REBUILD),
}
FAMILIES = {"CAP": Family("records"), "STR": Family("streams"), "REB": Family("rebuild")}


def line(requirement: str, verdict: str, scenario: str = "a", **more: object) -> Result:
    level = RULES[requirement].level
    return Result(requirement, level, scenario, "acme", Verdict(verdict), True, **more)  # type: ignore[arg-type]


def run(report: Report, name: str, *results: Result, kind: SystemKind = SystemKind.PROXY) -> Run:
    header = replace(report.header, systems={kind.value: f"{name} 1.2 beta"}, started_at="2026-12-01T08:00:00+00:00")
    return Run(name, kind, replace(report, header=header, results=results, errors=()))


def tables(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in text.splitlines() if row.startswith("|")]


def test_a_requirement_has_the_worst_verdict_of_its_scenarios_and_is_counted_once(report: Report) -> None:
    results = [line("CAP-001", "pass"), line("CAP-001", "fail", "b", reason="x"), line("CAP-001", "skip", "c")]
    board = board_of([run(report, "acme", *results, line("STR-001", "skip"))], RULES)
    [system] = board.systems
    assert {name: count for name, count in system.requirements.items() if count} == {"fail": 1, "skip": 1}
    cell = board.cells["acme", "CAP-001"]
    assert (cell.verdict, cell.scenarios, cell.reason) == (Verdict.FAIL, 2, "x")
    assert (system.version, system.seconds) == ("1.2 beta", report.footer.seconds)


def test_lines_about_another_kind_of_system_stand_in_no_cell(report: Report) -> None:
    board = board_of([run(report, "acme", line("CAP-001", "pass"), line("REB-001", "skip"))], RULES)
    assert set(board.cells) == {("acme", "CAP-001")}


def test_the_table_shows_summaries_first_then_each_requirement_with_a_mark_for_each_system(report: Report) -> None:
    one = run(
        report, "acme", line("CAP-001", "pass"), line("CAP-002", "known", disputed="https://x"), line("STR-001", "skip")
    )
    other = run(report, "zeta", line("CAP-001", "fail"), line("CAP-002", "stale"), line("STR-001", "inconclusive"))
    third = run(report, "redo", line("REB-001", "error"), kind=SystemKind.REBUILD)
    text = markdown(
        board_of([one, other, third, Run("gone", SystemKind.PROXY, None, "it is not installed")], RULES),
        RULES,
        FAMILIES,
    )
    rows = tables(text)
    assert ["MUST held", "1/1", "0/2"] in rows
    assert ["SHOULD held", "0/1", "1/1"] in rows
    assert ["CAP", "records", "1/2", "1/2"] in rows
    assert ["STR", "streams", "·", "0/1"] in rows
    assert ["CAP-001", "MUST", "It holds \\| always &lt;b>.", "✓", "✗"] in rows
    assert ["CAP-002", "SHOULD", "It should hold.", "k*", "s"] in rows
    assert ["STR-001", "MUST°", "Streams end.", "–", "?"] in rows
    assert ["REB-001", "MUST", "It is rebuilt.", "!"] in rows
    assert "- gone: it is not installed" in text
    assert text.index("| family |") < text.index("| requirement |")


def test_the_lines_are_a_header_a_line_a_system_and_a_line_a_cell(report: Report) -> None:
    board = board_of([run(report, "acme", line("CAP-001", "fail")), Run("gone", SystemKind.PROXY, None, "why")], RULES)
    lines = [json.loads(text) for text in ndjson(board).splitlines()]
    for one in lines:
        Draft202012Validator(exported_board()).validate(one)
        assert not Draft202012Validator(exported_board()).is_valid({**one, "kind": "odd"})
    assert [one["kind"] for one in lines] == ["board", "system", "system", "cell"]
    assert (lines[2]["name"], lines[2]["not_judged"]) == ("gone", "why")
    assert (lines[3]["requirement"], lines[3]["verdict"], lines[3]["system"]) == ("CAP-001", "fail", "acme")


def test_a_board_without_any_run_can_be_drawn(tmp_path: Path) -> None:
    text = markdown(board_of([Run("gone", SystemKind.PROXY, None, "why")], RULES), RULES, FAMILIES)
    assert "- gone: why" in text
