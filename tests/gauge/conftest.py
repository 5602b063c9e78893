"""A suite of one's own to run."""

from pathlib import Path

import pytest

from tests.gauge.suite import Suite


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path)
