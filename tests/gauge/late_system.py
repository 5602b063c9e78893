"""The whole suite against a proxy that does all it should, at times of its own: no verdict depends on who was first.

Too long for the unit tests; the tier ``late-system`` runs it.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from conformance.contract.vocabulary import Verdict
from conformance.report import ndjson
from conformance.systems.profiles import PROFILES

STUB = Path(__file__).with_name("stubs") / "late.py"
REFERENCE = '"-m", "conformance.reference.capture"'


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_system_that_is_late_at_every_step_is_told_nothing(seed: int, tmp_path: Path) -> None:
    profile = tmp_path / "late.toml"
    text = (PROFILES / "reference.toml").read_text(encoding="utf-8")
    assert text.count(REFERENCE) == 1
    text = text.replace(REFERENCE, f'"{STUB}", "{seed}"').replace('name = "reference"', 'name = "late"')
    profile.write_text(text, encoding="utf-8")
    systems = [word for name in (profile, "reference-rebuild", "reference-rollout") for word in ("--system", str(name))]

    ended = subprocess.run(
        [sys.executable, "-m", "conformance.cli", "run", *systems, "--report", str(tmp_path / "report"), "-n", "auto"],
        capture_output=True,
        text=True,
        check=False,
    )

    report = ndjson.read(tmp_path / "report" / "results.ndjson")
    fine = (Verdict.PASS, Verdict.SKIP)
    odd = [
        (line.requirement, line.verdict, line.scenario, line.reason)
        for line in report.results
        if line.verdict not in fine
    ]
    assert (odd, [line.reason for line in report.errors]) == ([], [])
    assert ended.returncode == 0
