"""The random conversations find faults: the reference with one fault each has to be caught."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from conformance.mutants.patch import load
from conformance.shapes.stage import stage
from tests.law.faults import faulty
from tests.law.machine import on

FAULTS = (
    "side-calls-trained",
    "mask-by-search",
    "quotations-masked-in",
    "log-probs-rounded",
    "ids-of-the-visible-text",
)

SETTINGS = settings(
    max_examples=300,
    stateful_step_count=14,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_reference_is_caught(name: str, tmp_path: Path) -> None:
    profile = faulty(name, tmp_path / "ran")
    proxy, rebuild = (None, profile) if load()[name].kind == "rebuild" else (profile, None)
    with (
        stage(tmp_path, proxy=proxy, rebuild=rebuild) as made,
        pytest.raises(AssertionError, match="playbook:"),
    ):
        run_state_machine_as_test(on(made, "chat"), settings=SETTINGS)
