"""A real vLLM: installed by ``ci/real-vllm``, asked for with ``-m real_vllm``, else not collected.

It stands under ``tests`` and not among the scenarios, since what it judges is the suite's own engine and reference. The
scenarios take a real engine by ``--real-engine``, which the last of these tests gives them.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.on_request import keep_what_was_asked_for
from tests.real_vllm import engine

MARKER = "real_vllm"
SECONDS = 720
PLACE_VARIABLE = "TRACKGAUGE_REAL_VLLM"
URL_VARIABLE = "TRACKGAUGE_REAL_VLLM_URL"
"""Names one that runs already, so that work on these tests need not wait for its start."""
SKIP_VARIABLE = "TRACKGAUGE_REAL_VLLM_SKIPPED"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "real_vllm: needs a real vLLM, as ci/real-vllm installs it")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    keep_what_was_asked_for(config, items, MARKER, SECONDS)


@pytest.fixture(scope="session")
def real_place() -> Path:
    """The environment that has vLLM; a skip says why there is none."""
    place = Path(os.environ.get(PLACE_VARIABLE, ""))
    if not (place / "bin" / "python").exists():
        pytest.skip(os.environ.get(SKIP_VARIABLE, "vLLM is not installed; run ci/real-vllm"))
    return place


@pytest.fixture(scope="session")
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of a vLLM with the tiny model."""
    running = os.environ.get(URL_VARIABLE)
    if running:
        yield running
        return
    place: Path = request.getfixturevalue("real_place")
    files = tmp_path_factory.mktemp("vllm")
    try:
        model = engine.make_model(place, files)
    except subprocess.CalledProcessError as error:
        pytest.fail(f"no model was made: {error.stderr.decode(errors='replace')[-400:]}")
    server = engine.start(place, model, files)
    yield server.url
    server.close()
