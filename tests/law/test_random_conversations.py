"""The law, for whatever a client, a model and an engine may do."""

import os

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from conformance.shapes.stage import Stage
from conformance.shapes.tongues import TONGUES
from tests.law.machine import on

EXAMPLES = int(os.environ.get("TRACKGAUGE_LAW_EXAMPLES", "300"))
"""Over all dialects; ``ci/law`` sets both."""
SEED = os.environ.get("TRACKGAUGE_LAW_SEED")

SETTINGS = settings(
    max_examples=-(-EXAMPLES // len(TONGUES)),
    stateful_step_count=14,
    deadline=None,
    derandomize=SEED is None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("dialect", TONGUES)
def test_whatever_happens_nothing_wrong_is_trained_and_nothing_is_lost(dialect: str, played_on: Stage) -> None:
    machine = on(played_on, dialect)
    run_state_machine_as_test(machine if SEED is None else seed(int(SEED))(machine), settings=SETTINGS)
