"""The suite's own scenarios, with a real vLLM as the engine: what needs no fault and no chosen ids holds there too."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.contract.vocabulary import Verdict
from conformance.report import ndjson
from conformance.report.folder import RESULTS
from conformance.systems import routing
from tests.real_vllm import engine

ROOT = Path(__file__).parents[2]
SECONDS = 2400
AT_LEAST = 280
"""Requirements that have to be judged: less means that scenarios were lost and not that they cannot be played."""

pytestmark = [pytest.mark.real_vllm, pytest.mark.timeout(SECONDS)]


@pytest.fixture
def long(real_place: Path, tmp_path: Path) -> Iterator[str]:
    """The base URL of a vLLM that is what the suite's main tenant is: its name, and its length."""
    server = engine.start(
        real_place, engine.make_model(real_place, tmp_path), tmp_path, [routing.SERVED], routing.LONG_LENGTH
    )
    yield server.url
    server.close()


def test_the_suite_judges_the_reference_alike_with_a_real_engine(long: str) -> None:
    report = ROOT / "report" / "real-vllm"
    command = [sys.executable, "-m", "conformance.cli", "run", "--real-engine", long, "--report", str(report)]
    run = subprocess.run([*command, "-q", "-p", "no:randomly"], cwd=ROOT, check=False, timeout=SECONDS)
    results = ndjson.read(report / RESULTS).results
    wrong = [line for line in results if line.verdict not in (Verdict.PASS, Verdict.SKIP)]
    assert not wrong, [(line.requirement, line.scenario, line.verdict) for line in wrong]
    assert run.returncode == 0
    judged = {line.requirement for line in results if line.verdict is Verdict.PASS}
    assert len(judged) >= AT_LEAST
