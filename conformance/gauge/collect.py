"""Gathers the lines of all scenarios, from all workers, and writes the report once at the end."""

import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from conformance.contract import CONTRACT_VERSION
from conformance.gauge.known import entries_of, with_stale
from conformance.gauge.options import Chosen
from conformance.report.results import Footer, Header, Report, Result, SuiteError, suite_version
from conformance.report.summary import ExitStatus, exit_status
from conformance.systems.versions import version_of

COLLECTED: "pytest.StashKey[Collected]" = pytest.StashKey()
"""Where the plugin keeps what the run found so far, on the controller's configuration."""

UNASKED = Path(".pytest_cache", "trackgauge")
"""Below the root folder: where a report goes that nobody asked for by ``--report``."""


@dataclass
class Collected:
    """One run as it comes in.

    ``not_started`` is the one line of a system that did not start; ``cut`` tells that not all was played.
    """

    chosen: Chosen
    results: list[Result] = field(default_factory=list)
    errors: list[SuiteError] = field(default_factory=list)
    scenarios: int = 0
    servers: Counter[str] = field(default_factory=Counter)
    not_started: str | None = None
    cut: bool = False
    _pairs: set[tuple[str, str]] = field(default_factory=set)
    began: float = field(default_factory=time.monotonic)
    began_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    def add(self, results: list[Result], errors: list[SuiteError]) -> None:
        self.scenarios += 1
        for line in results:
            pair = (line.requirement, line.scenario)
            if pair in self._pairs:
                errors = [
                    *errors,
                    SuiteError(
                        line.scenario, f"a second verdict on {line.requirement}; scenarios need names of their own"
                    ),
                ]
            else:
                self._pairs.add(pair)
                self.results.append(line)
        self.errors += errors

    @property
    def status(self) -> ExitStatus:
        if self.not_started is not None:
            return ExitStatus.NO_SYSTEM
        asked = [line for line in self._judged() if not self.chosen.asked or line.requirement in self.chosen.asked]
        return exit_status(asked, self.errors, self.chosen.strict, nothing_ran=not asked)

    def _judged(self) -> list[Result]:
        """The lines, with what only the whole run can tell: which of the listed failures are stale."""
        whole = self.chosen.whole_run and not self.cut and self.not_started is None
        return with_stale(self.results, entries_of(self.chosen.known), whole)

    def close(self) -> Report:
        """The whole run as a report, lines in an order that does not depend on which worker was faster."""
        results = sorted(self._judged(), key=lambda line: (line.requirement, line.scenario))
        errors = sorted(self.errors, key=lambda line: (line.scenario, line.reason))
        footer = Footer(
            seconds=round(time.monotonic() - self.began, 2),
            servers_started=self.servers["server"],
            starts_refused=self.servers["refused"],
            scenarios=self.scenarios,
            exit_status=self.status,
            cut=self.cut,
            verdicts={each.value: count for each, count in Counter(line.verdict for line in results).items()},
        )
        return Report(self._header(), tuple(results), tuple(errors), footer)

    def _header(self) -> Header:
        return Header(
            suite_version=suite_version(),
            contract_version=CONTRACT_VERSION,
            requirement_set=self.chosen.catalogue.set_name or "current",
            systems=self._systems(),
            fakes={"vllm": suite_version() if self.chosen.real_engine is None else "a real one"},
            started_at=self.began_at,
            strict=self.chosen.strict,
        )

    def _systems(self) -> dict[str, str]:
        """Name and version of each system. Asks the systems, which may take as long as starting one."""
        with tempfile.TemporaryDirectory(prefix="versions-") as folder:
            return {
                kind.value: f"{profile.name} {version_of(profile, Path(folder))}"
                for kind, profile in self.chosen.profiles.items()
            }
