"""Two runs side by side."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.contract.vocabulary import Level, Verdict
from conformance.report import ndjson
from conformance.report.compare import ABSENT, Change, compare, text
from conformance.report.results import Footer, Report, Result, SuiteError

pytestmark = pytest.mark.unit


def run_of(report: Report, *verdicts: str, errors: tuple[SuiteError, ...] = ()) -> Report:
    """A run with a line for each verdict, ``absent`` for none; requirement CAP-001, CAP-002, …"""
    results = tuple(
        Result(f"CAP-{n:03}", Level.MUST, "a.py::test_a", "acme", Verdict(verdict), True, reason="why")
        for n, verdict in enumerate(verdicts, 1)
        if verdict != ABSENT
    )
    counted = {each.value: sum(line.verdict is each for line in results) for each in Verdict}
    return Report(report.header, results, errors, Footer(1.0, 1, 0, 1, 0, counted))


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ("pass", "fail", Change.WORSE),
        ("known", "fail", Change.WORSE),
        ("skip", "fail", Change.WORSE),
        (ABSENT, "error", Change.WORSE),
        ("pass", "inconclusive", Change.WORSE),
        ("pass", "known", Change.WORSE),
        ("fail", "pass", Change.BETTER),
        ("known", "stale", Change.BETTER),
        ("inconclusive", "pass", Change.BETTER),
        ("pass", "skip", Change.LOST),
        ("fail", ABSENT, Change.LOST),
        ("skip", "pass", Change.NEW),
        (ABSENT, "known", Change.NEW),
        ("fail", "known", Change.OTHER),
        ("fail", "inconclusive", Change.OTHER),
        ("skip", ABSENT, Change.OTHER),
        ("pass", "stale", Change.OTHER),
    ],
)
def test_each_change_of_a_verdict_has_a_name(report: Report, before: str, after: str, change: Change) -> None:
    found = compare(run_of(report, before, "pass"), run_of(report, after, "pass"))
    [one] = found.changes
    assert (one.requirement, one.before, one.after, one.change) == ("CAP-001", before, after, change)
    assert (found.equal, found.regressed, found.same) == (False, change is Change.WORSE, 1)


def test_a_run_equals_itself_whatever_was_expected_and_seen(report: Report) -> None:
    other = replace(report, results=tuple(replace(line, seen="else", seconds=9.0) for line in report.results))
    found = compare(report, other)
    assert (found.equal, found.regressed, found.same, found.notes) == (True, False, len(report.results), ())


def test_a_new_suite_error_is_a_regression_and_an_old_one_is_not(report: Report) -> None:
    broken = run_of(report, "pass", errors=(SuiteError("a.py::test_a", "it broke"),))
    assert compare(run_of(report, "pass"), broken).regressed
    assert compare(broken, broken).equal


def test_what_else_differs_is_noted_but_is_no_change(report: Report) -> None:
    later = replace(
        report, header=replace(report.header, systems={"proxy": "acme 0.4"}, started_at="2026-12-02T00:00:00Z")
    )
    found = compare(report, later)
    assert (found.equal, found.notes) == (True, ("systems: acme 0.3, then acme 0.4",))


def test_for_people_what_got_worse_stands_first_with_its_reason(report: Report) -> None:
    found = compare(run_of(report, "fail", "pass"), run_of(report, "pass", "fail"))
    assert text({"": found}, "a", "b").splitlines() == [
        "from a to b",
        "",
        "worse (1)",
        "  CAP-002 (MUST) pass → fail · a.py::test_a",
        "    why",
        "",
        "better (1)",
        "  CAP-001 (MUST) fail → pass · a.py::test_a",
        "",
        "same 0 · worse 1 · better 1 · no longer judged 0 · newly judged 0 · otherwise changed 0",
    ]


def written(folder: Path, report: Report) -> str:
    ndjson.write(folder / "results.ndjson", report.header, report.results, report.errors, report.footer)
    return str(folder)


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    whole = [sys.executable, "-m", "conformance.cli", "compare", *arguments]
    return subprocess.run(whole, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize(
    ("after", "options", "status"),
    [("fail", (), 1), ("pass", ("--equal",), 0), ("skip", (), 0), ("skip", ("--equal",), 1)],
)
def test_the_status_tells_a_script_what_changed(
    report: Report, tmp_path: Path, after: str, options: tuple[str, ...], status: int
) -> None:
    one, other = written(tmp_path / "a", run_of(report, "pass")), written(tmp_path / "b", run_of(report, after))
    done = command(one, f"{other}/results.ndjson", "--json", *options)
    assert (done.returncode, json.loads(done.stdout)[""]["equal"]) == (status, after == "pass")


def test_a_report_that_was_cut_or_is_not_there_ends_with_one_line_and_status_2(report: Report, tmp_path: Path) -> None:
    whole = written(tmp_path / "a", run_of(report, "pass"))
    cut = tmp_path / "cut.ndjson"
    cut.write_bytes((tmp_path / "a" / "results.ndjson").read_bytes().rpartition(b"\n{")[0] + b"\n")
    for wrong, told in ((str(cut), "no footer"), (str(tmp_path / "gone"), "No such file")):
        done = command(whole, wrong)
        assert (done.returncode, done.stdout) == (2, "")
        assert told in done.stderr
        assert done.stderr.count("\n") == 1


def test_the_folders_of_two_scoreboards_are_compared_system_by_system(report: Report, tmp_path: Path) -> None:
    for board, verdict in (("a", "pass"), ("b", "fail")):
        written(tmp_path / board / "acme", run_of(report, verdict))
        written(tmp_path / board / "zeta", run_of(report, "pass"))
        (tmp_path / board / "scoreboard.ndjson").touch()
    written(tmp_path / "b" / "late", run_of(report, "pass"))
    done = command(str(tmp_path / "a"), str(tmp_path / "b"), "--json")
    told = {name: (one["equal"], one["regressed"]) for name, one in json.loads(done.stdout).items()}
    assert (done.returncode, told) == (1, {"acme": (False, True), "zeta": (True, False), "late": (False, False)})
    wrong = command(str(tmp_path / "a"), str(tmp_path / "b" / "acme"))
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "one is a run, the other a scoreboard" in wrong.stderr


def test_a_folder_without_results_is_no_scoreboard_for_what_repro_left_in_it(report: Report, tmp_path: Path) -> None:
    whole = written(tmp_path / "a", run_of(report, "pass"))
    written(tmp_path / "b" / "repro", run_of(report, "fail"))
    done = command(whole, str(tmp_path / "b"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{tmp_path / 'b'}: a folder without results: expected results.ndjson of a run, or ")


def test_ten_thousand_lines_are_compared(report: Report) -> None:
    verdicts = ["pass"] * 10_000
    found = compare(run_of(report, *verdicts), run_of(report, *verdicts[:-1], "fail"))
    assert (found.same, len(found.changes)) == (9999, 1)
