"""A proxy that keeps no record at all: what speaks of records cannot be shown to hold, and must not pass."""

import subprocess
import sys
from pathlib import Path

from conformance.contract.vocabulary import Verdict
from conformance.mutants.hunt import HOUSE, profile_of
from conformance.mutants.nursery import QUIET
from conformance.mutants.patch import load
from conformance.report import ndjson

OF_OTHER_THINGS = {"CAP-023", "CAP-030", "CAP-031", "VAL-026"}
"""What such a proxy does keep to: it writes no part of a record, fails calls it cannot file, and answers the others."""

OF_RECORDS = ("validity", "records")


def test_where_nothing_is_recorded_no_requirement_on_records_passes(tmp_path: Path) -> None:
    profile = tmp_path / "nothing.toml"
    profile.write_text(profile_of(load()["keeps-nothing"], tmp_path / "ran"))
    scenarios = [str(HOUSE / "scenarios" / folder) for folder in OF_RECORDS]
    command = [sys.executable, "-m", "pytest", "-m", "e2e", "--system", str(profile), "--report", str(tmp_path)]
    command += [f"--basetemp={tmp_path / 'files'}", *QUIET]
    subprocess.run([*command, *scenarios], cwd=tmp_path, check=False, capture_output=True)
    report = ndjson.read(tmp_path / "results.ndjson")
    assert not report.errors
    passed = {line.requirement for line in report.results if line.verdict is Verdict.PASS}
    assert passed <= OF_OTHER_THINGS
    failed = {line.requirement for line in report.results if line.verdict is Verdict.FAIL}
    assert {"CAP-001", "VAL-001", "VAL-025"} <= failed
    blind = {line.requirement for line in report.results if line.verdict is Verdict.INCONCLUSIVE}
    assert {*(f"VAL-{number:03}" for number in range(2, 19)), "CAP-015", "CAP-016", "CAP-018", "CAP-035"} <= blind
