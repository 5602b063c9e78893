"""Runs the scenarios under pytest and turns what they found into the exit status of the command."""

from pathlib import Path

import pytest

from conformance.gauge.collect import Collected
from conformance.report.summary import ExitStatus

SCENARIOS = Path(__file__).parent.parent / "scenarios"

COLLECTED = pytest.StashKey[Collected]()
"""Where the plugin leaves what the run found, on the controller's configuration."""


class _Keep:
    """Holds on to the configuration, which pytest drops at its end."""

    def __init__(self) -> None:
        self.collected: Collected | None = None

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        self.collected = config.stash.get(COLLECTED, None)


def launch(arguments: list[str]) -> int:
    """``arguments`` are pytest's, the plugin's options among them. Prints as pytest does."""
    paths = [] if any(_is_path(word) for word in arguments) else [str(SCENARIOS)]
    keep = _Keep()
    status = pytest.main(["-m", "e2e", "--import-mode=importlib", *arguments, *paths], plugins=[keep])
    if status == pytest.ExitCode.USAGE_ERROR or keep.collected is None:
        return ExitStatus.USAGE
    if status in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR) and keep.collected.not_started is None:
        return ExitStatus.NOT_CONFORMING
    return keep.collected.status


def _is_path(word: str) -> bool:
    return not word.startswith("-") and ("/" in word or ".py" in word) and Path(word.partition("::")[0]).exists()
