"""The whole suite against systems that do nothing right: it accuses them, never itself, and comes to an end.

Too long for the unit tests; the tier ``bad-systems`` runs it.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.contract.vocabulary import Verdict
from conformance.report import ndjson
from conformance.systems.profiles import PROFILES

STUBS = Path(__file__).with_name("stubs")
HONEST = {
    "proxy": ("reference.toml", 60),
    "rebuild": ("reference-rebuild.toml", 40),
    "rollout": ("reference-rollout.toml", 30),
}
"""Per kind: the profile whose claims the stub makes, and how many requirements at least it must be found to lack."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("kind", "way"),
    [
        *(("proxy", way) for way in ("refusing", "empty", "null", "passing", "lying", "babbling", "silent")),
        *(("rebuild", way) for way in ("careless", "empty", "nulls", "mistyped", "shapeless", "dying", "silent")),
        ("rebuild", "endless"),
        ("rollout", "dying"),
        ("rollout", "shapeless"),
    ],
)
def test_a_system_that_does_nothing_right_is_told_so(kind: str, way: str, tmp_path: Path) -> None:
    profile = tmp_path / f"{way}.toml"
    honest, unmet = HONEST[kind]
    command = ", ".join(f'"{word}"' for word in ("{python}", str(STUBS / f"{kind}.py"), way))
    text = (PROFILES / honest).read_text(encoding="utf-8")
    text, replaced = re.subn(r'"\{python\}", "-m", "conformance\.reference\.\w+"(, "--jsonl")?', command, text)
    assert replaced == 1
    profile.write_text(re.sub('(?m)^name = ".*"$', f'name = "{way}"', text), encoding="utf-8")

    arguments = ["--system", str(profile), "--report", str(tmp_path / "report"), "-n", "auto"]
    ended = subprocess.run(
        [sys.executable, "-m", "conformance.cli", "run", *arguments], capture_output=True, text=True, check=False
    )

    report = ndjson.read(tmp_path / "report" / "results.ndjson")
    accused = [line for line in report.results if line.verdict in (Verdict.FAIL, Verdict.INCONCLUSIVE)]
    assert [line.reason for line in report.errors] == []
    assert [(line.scenario, line.reason) for line in report.results if line.verdict is Verdict.ERROR] == []
    assert len({line.requirement for line in accused}) >= unmet
    assert any(line.verdict is Verdict.FAIL and line.gates for line in report.results)
    assert ended.returncode == 1
