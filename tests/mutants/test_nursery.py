"""Runs forked from a process that has imported everything."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.mutants.nursery import Nursery
from conformance.systems import guard

NO_END = "import threading\ndef test_it():\n    threading.Event().wait()\n"


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[Nursery]:
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    one = Nursery(tmp_path / "nursery.log", scenarios=nothing)
    yield one
    one.close()


def played(nursery: Nursery, folder: Path, source: str, seconds: float = 50) -> int | None:
    file = folder / "test_it.py"
    file.write_text(source, encoding="utf-8")
    return nursery.run([str(file), f"--rootdir={folder}"], cwd=folder, log=folder / "run.log", seconds=seconds)


def test_a_run_gives_the_status_of_pytest_and_writes_into_its_log(nursery: Nursery, tmp_path: Path) -> None:
    assert played(nursery, tmp_path, "def test_it():\n    pass\n") == pytest.ExitCode.OK
    assert "1 passed" in (tmp_path / "run.log").read_text()


def test_what_a_run_leaves_in_memory_does_not_reach_the_next(nursery: Nursery, tmp_path: Path) -> None:
    leaves = "import json\ndef test_it():\n    assert not hasattr(json, 'left')\n    json.left = True\n"
    assert [played(nursery, tmp_path, leaves) for _ in range(2)] == [pytest.ExitCode.OK] * 2


def test_a_run_that_does_not_end_is_ended_and_the_next_is_played(nursery: Nursery, tmp_path: Path) -> None:
    assert played(nursery, tmp_path, "def test_it():\n    pass\n") == pytest.ExitCode.OK
    assert played(nursery, tmp_path, NO_END, seconds=1) is None
    assert played(nursery, tmp_path, "def test_it():\n    assert False\n") == pytest.ExitCode.TESTS_FAILED


def test_one_that_dies_says_why_instead_of_an_answer(nursery: Nursery, tmp_path: Path) -> None:
    kills = "import os, signal\ndef test_it():\n    os.kill(os.getppid(), signal.SIGKILL)\n"
    with pytest.raises(guard.CannotRun, match="forked from ended"):
        played(nursery, tmp_path, kills)
