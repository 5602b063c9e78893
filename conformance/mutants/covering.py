"""Which scenarios judge which requirement, asked once of pytest, so that a mutant's run collects only these."""

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

SCENARIOS = Path(__file__).parent.parent / "scenarios"

_COLLECT = """
import json, sys, pytest
class Keep:
    def pytest_collection_finish(self, session):
        ids = lambda item: [identity for mark in item.iter_markers("covers") for identity in mark.args]
        self.found = [(item.nodeid, str(item.path), ids(item)) for item in session.items]
keep = Keep()
options = ["--collect-only", "-q", "--import-mode=importlib", "-p", "no:cacheprovider", "-p", "no:xdist"]
status = pytest.main([*options, sys.argv[1]], plugins=[keep])
open(sys.argv[2], "w").write(json.dumps(keep.found if status == 0 else []))
"""


@dataclass(frozen=True, slots=True)
class Scenario:
    """``name`` is pytest's node id; ``covers`` are requirement ids."""

    name: str
    file: Path
    covers: tuple[str, ...]


class NothingCollected(Exception):
    """Raised when pytest cannot collect the scenarios; the text is the end of what it said."""


def scenarios() -> list[Scenario]:
    """All of the suite, in pytest's order."""
    with tempfile.TemporaryDirectory(prefix="covering-") as folder:
        answer = Path(folder, "found.json")
        command = [sys.executable, "-c", _COLLECT, str(SCENARIOS), str(answer)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
        found = json.loads(answer.read_text(encoding="utf-8")) if answer.exists() else []
    if not found:
        raise NothingCollected((done.stdout + done.stderr)[-2000:])
    return [Scenario(name, Path(file), tuple(identities)) for name, file, identities in found]


def files_by_requirement() -> dict[str, list[Path]]:
    """Requirement → the files of the scenarios that cover it, in order."""
    files: dict[str, dict[Path, None]] = {}
    for scenario in scenarios():
        for identity in scenario.covers:
            files.setdefault(identity, {})[scenario.file] = None
    return {identity: list(paths) for identity, paths in files.items()}
