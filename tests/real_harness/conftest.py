"""Real agents: installed by ``ci/real-harness``, asked for with ``-m real_harness``, else not collected."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.on_request import keep_what_was_asked_for
from tests.real_harness.stage import Stage

if TYPE_CHECKING:
    from conformance.gauge.world import World

MARKER = "real_harness"
CACHE = Path(__file__).parents[2] / ".cache" / "real-harness"
MANIFEST_VARIABLE = "TRACKGAUGE_REAL_HARNESS"
SECONDS = 240
COMPARED = "requests_compared"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "real_harness: a real agent, as ci/real-harness installs it, plays")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    keep_what_was_asked_for(config, items, MARKER, SECONDS)


@pytest.fixture(scope="session")
def installed() -> dict[str, dict[str, str]]:
    """What ``ci/real-harness`` found: by harness, its ``program`` and ``version``, or ``skipped`` with the reason."""
    manifest = Path(os.environ.get(MANIFEST_VARIABLE, CACHE / "installed.json"))
    if not manifest.exists():
        return {}
    found: dict[str, dict[str, str]] = json.loads(manifest.read_text(encoding="utf-8"))
    return found


@pytest.fixture
def stage(
    request: pytest.FixtureRequest, world: "World", installed: dict[str, dict[str, str]], tmp_path: Path
) -> Iterator[Stage]:
    """Where the harness plays that the module names as ``HARNESS``, against the worker's engine and proxy."""
    harness: str = request.module.HARNESS
    entry = installed.get(harness, {"skipped": "it is not installed; run ci/real-harness"})
    if "skipped" in entry:
        pytest.skip(f"{harness}: {entry['skipped']}")
    with Stage(world, Path(entry["program"]), entry["version"], tmp_path) as stage:
        yield stage
    request.node.user_properties.append((COMPARED, (f"{harness} {entry['version']}", stage.compared, stage.strays)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    told = [
        (report.nodeid.rpartition("::")[2], *value)
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "teardown"
        for name, value in report.user_properties
        if name == COMPARED
    ]
    if not told:
        return
    terminalreporter.section("requests of real agents compared with the fakes' own")
    for name, agent, count, strays in sorted(told, key=lambda one: (one[1], one[0])):
        away = f"; turned away elsewhere: {len(strays)} ({strays[0]}, …)" if strays else ""
        terminalreporter.write_line(f"{agent:>22} {count:>3} requests  {name}{away}")
    terminalreporter.write_line(f"{sum(count for _, _, count, _ in told)} requests compared")
