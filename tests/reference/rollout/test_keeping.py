"""The keeper, with real processes: nothing of a command outlives the task that started it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from conformance.reference.rollout import processes

TELLS_ITS_CHILD = "setsid sleep 1000 & echo $! > child; "
HOLDER = """
import sys, time
from pathlib import Path
from conformance.reference.rollout import processes
place = Path(sys.argv[1])
env = {"PATH": "/usr/bin:/bin"}
kept = processes.start(["bash", "-c", sys.argv[2]], env=env, cwd=place, log=place / "log", grace=0.1)
time.sleep(1000)
"""
SOON_SECONDS = 20.0


def start(place: Path, script: str, grace: float = 5.0) -> processes.Kept:
    env = {"PATH": "/usr/bin:/bin"}
    return processes.start(["bash", "-c", script], env=env, cwd=place, log=place / "log", grace=grace)


def number_in(file: Path) -> int:
    """Of a process, once it is written down."""
    kept = psutil.Process()
    while not (file.exists() and file.read_text().strip()):
        assert kept.is_running()
    return int(file.read_text())


def is_gone(pid: int) -> bool:
    try:
        psutil.Process(pid).wait(SOON_SECONDS)
    except psutil.NoSuchProcess:
        return True
    except psutil.TimeoutExpired:
        return False
    return True


def test_a_command_that_ends_takes_what_it_started_along(tmp_path: Path) -> None:
    kept = start(tmp_path, TELLS_ITS_CHILD + "echo told; exit 7")
    assert kept.ended(SOON_SECONDS) == 7
    assert kept.end() == 7
    assert is_gone(number_in(tmp_path / "child"))
    assert kept.tail() == "told\n"


def test_a_command_that_is_ended_gets_term_and_then_kill(tmp_path: Path) -> None:
    kind = start(tmp_path, "exec sleep 1000")
    assert kind.ended(0.05) is None
    assert kind.end() == -signal.SIGTERM
    deaf = start(tmp_path, "trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done", grace=0.1)
    number_in(tmp_path / "pid")
    assert deaf.end() == -signal.SIGKILL
    assert deaf.end() == -signal.SIGKILL


def test_it_is_told_whether_a_command_ended_by_itself_or_was_ended(tmp_path: Path) -> None:
    left, killed, ended = start(tmp_path, "exit 3"), start(tmp_path, "kill -9 $$"), start(tmp_path, "exec sleep 1000")
    assert [each.ended(SOON_SECONDS) for each in (left, killed)] == [3, -signal.SIGKILL]
    assert [each.end() for each in (left, killed, ended)] == [3, -signal.SIGKILL, -signal.SIGTERM]
    assert [each.by_itself for each in (left, killed, ended)] == [True, True, False]


def test_a_command_that_died_unheard_of_ended_by_itself(tmp_path: Path) -> None:
    kept = start(tmp_path, "echo $$ > pid; exec sleep 1000")
    os.kill(number_in(tmp_path / "pid"), signal.SIGKILL)
    assert (kept.end(), kept.by_itself) == (-signal.SIGKILL, True)
    kept = start(tmp_path, "echo $PPID > keeper; exec sleep 1000")
    os.kill(number_in(tmp_path / "keeper"), signal.SIGKILL)
    assert (kept.end(), kept.by_itself) == (-signal.SIGKILL, True)


@pytest.mark.parametrize("victim", ["keeper", "warden"])
def test_a_guard_that_is_killed_leaves_nothing_of_its_command(tmp_path: Path, victim: str) -> None:
    kept = start(tmp_path, f"{TELLS_ITS_CHILD} echo $PPID > keeper; echo $$ > pid; exec sleep 1000", grace=0.2)
    pids = [number_in(tmp_path / name) for name in ("child", "pid")]
    keeper = psutil.Process(number_in(tmp_path / "keeper"))
    guards = {"keeper": keeper.pid, "warden": keeper.ppid()}
    os.kill(guards[victim], signal.SIGKILL)
    code = kept.ended(SOON_SECONDS)
    assert (code in (-signal.SIGKILL, -signal.SIGTERM), kept.end(), kept.by_itself) == (True, code, True)
    assert [pid for pid in pids if psutil.pid_exists(pid) and not is_gone(pid)] == []


def test_guards_that_are_stopped_are_given_up_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "MARGIN_SECONDS", 0.2)
    kept = start(tmp_path, f"{TELLS_ITS_CHILD} echo $PPID > keeper; exec sleep 1000", grace=0.1)
    child = number_in(tmp_path / "child")
    keeper = psutil.Process(number_in(tmp_path / "keeper"))
    for guard in (keeper.pid, keeper.ppid()):
        os.kill(guard, signal.SIGSTOP)
    kept.end()
    assert [is_gone(pid) for pid in (keeper.pid, child)] == [True, True]


def test_what_cannot_be_run_is_said_with_the_reason(tmp_path: Path) -> None:
    kept = processes.start([str(tmp_path / "none")], env={}, cwd=tmp_path, log=tmp_path / "log", grace=1)
    with pytest.raises(processes.CannotRun, match="No such file or directory"):
        kept.ended(SOON_SECONDS)
    assert kept.end() is None


@pytest.mark.parametrize("script", ["sleep 1000", "trap '' TERM; while :; do sleep 0.1; done"], ids=["kind", "deaf"])
def test_a_task_that_is_killed_leaves_neither_command_nor_its_children(tmp_path: Path, script: str) -> None:
    words = [sys.executable, "-c", HOLDER, str(tmp_path), f"{TELLS_ITS_CHILD} echo $$ > pid; {script}"]
    with subprocess.Popen(words) as holder:
        pids = [number_in(tmp_path / "pid"), number_in(tmp_path / "child")]
        os.kill(holder.pid, signal.SIGKILL)
    assert [is_gone(pid) for pid in pids] == [True, True]
