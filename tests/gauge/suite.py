"""``trackgauge run`` in a process of its own, on scenarios written for one test."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HEAD = """
import pytest
from conformance.gauge.check import Inconclusive
from conformance.gauge.covers import covers
pytestmark = pytest.mark.e2e
"""


@dataclass(frozen=True)
class Ran:
    status: int
    output: str
    lines: list[dict[str, Any]]

    @property
    def verdicts(self) -> dict[str, str]:
        return {line["requirement"]: line["verdict"] for line in self.lines if line["kind"] == "result"}

    def result(self, requirement: str) -> dict[str, Any]:
        (found,) = [line for line in self.lines if line.get("requirement") == requirement]
        return found


@dataclass(frozen=True)
class Suite:
    folder: Path

    def run(self, scenarios: str, *arguments: str, all_of_it: bool = False) -> Ran:
        """``all_of_it`` names no file to pytest, so that nothing narrows the run."""
        file = self.folder / "scenarios" / "test_here.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(HEAD + scenarios, encoding="utf-8")
        report = self.folder / "report"
        command = [sys.executable, "-m", "conformance.cli", "run", "--report", str(report), "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*command, *arguments, str(file.parent if all_of_it else file)],
            capture_output=True,
            text=True,
            cwd=self.folder,
            check=False,
        )
        results = report / "results.ndjson"
        lines = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
        return Ran(done.returncode, done.stdout + done.stderr, lines)
