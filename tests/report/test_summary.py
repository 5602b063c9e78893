"""``summary.json`` and the folder it stands in."""

import json
from pathlib import Path

import pytest

from conformance.report import folder, ndjson
from conformance.report.results import Report

pytestmark = pytest.mark.unit


def test_the_summary_counts_lines_families_and_requirements(report: Report, tmp_path: Path) -> None:
    folder.write(tmp_path, report.header, report.results, report.errors, report.footer)
    summary = json.loads((tmp_path / "summary.json").read_text("utf-8"))
    assert summary["verdicts"] == {
        "pass": 2, "fail": 2, "skip": 1, "error": 1, "inconclusive": 2, "known": 1, "stale": 1,
    }  # fmt: skip
    assert summary["errors"] == 1
    assert list(summary["by_family"]) == ["CAP", "RET", "STR", "VAL"]
    assert summary["by_family"]["CAP"]["MUST"]["pass"] == 2
    assert summary["by_family"]["CAP"]["SHOULD"]["fail"] == 1
    assert "MAY" not in summary["by_family"]["CAP"]
    assert summary["requirements"]["MUST"]["pass"] == 1
    assert summary["judged"] == {"judged": 8, "asked": 9}
    assert [summary[key] for key in ("scenarios", "seconds", "exit_status")] == [40, 12.34, 1]
    assert [summary[key] for key in ("servers_started", "starts_refused")] == [21, 3]


def test_the_folder_holds_all_three_and_reads_back_equal(report: Report, tmp_path: Path) -> None:
    written = folder.write(tmp_path / "report", report.header, report.results, report.errors, report.footer)
    assert sorted(path.name for path in (tmp_path / "report").iterdir()) == [
        "junit.xml",
        "results.ndjson",
        "summary.json",
    ]
    assert ndjson.read(tmp_path / "report" / "results.ndjson") == written == report


def test_a_run_without_results_still_leaves_a_whole_report(report: Report, tmp_path: Path) -> None:
    folder.write(tmp_path, report.header, [], [], report.footer)
    assert ndjson.read(tmp_path / "results.ndjson").results == ()
