"""The process guard, with real processes: whatever happens to whom, nothing stays behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from conformance.systems import guard

STUBS = Path(__file__).with_name("stubs")
SLEEP = ("sleep", "1000")
IGNORES_TERM = (
    sys.executable,
    "-S",
    "-c",
    "import signal, sys; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); signal.pause()",
)

Start = Callable[..., guard.Started]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    running: list[guard.Started] = []

    def begin(*command: str, grace: float = 5.0, role: guard.Role = "server") -> guard.Started:
        log = tmp_path / f"{len(running)}.log"
        running.append(
            guard.start(command, log=log, env=guard.environment(tmp_path), cwd=tmp_path, grace=grace, role=role)
        )
        return running[-1]

    yield begin
    for started in running:
        started.stop()


def until_written(started: guard.Started, text: str) -> None:
    while text not in started.output():
        assert started.wait(0.01) is None or text in started.output(), started.output()


def are_gone(pids: list[int], seconds: float = 10.0) -> bool:
    """Within that time; a zombie, which some other reaper has yet to collect, counts as gone."""
    deadline = time.monotonic() + seconds
    while any(runs(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def pids_in(text: str) -> list[int]:
    return [int(word) for word in text.split() if word.isdigit()]


def test_stop_ends_the_command_and_tells_how(start: Start) -> None:
    started = start(*SLEEP)
    assert started.is_alive()
    assert psutil.Process(started.pid).name() == "sleep"
    assert started.stop() == -signal.SIGTERM
    assert not started.is_alive()
    assert not psutil.pid_exists(started.pid)


def test_stop_may_be_called_again(start: Start) -> None:
    started = start(*SLEEP)
    assert started.stop() == started.stop() == started.kill()


def test_a_command_that_ignores_term_is_killed_after_its_grace(start: Start) -> None:
    started = start(*IGNORES_TERM, grace=0.2)
    until_written(started, "deaf")
    assert started.stop() == -signal.SIGKILL


def test_a_stopped_command_is_woken_to_take_its_term(start: Start) -> None:
    started = start(*SLEEP)
    started.send_signal(signal.SIGSTOP)
    assert started.stop() == -signal.SIGTERM


def test_kill_does_not_ask(start: Start) -> None:
    started = start(*IGNORES_TERM)
    until_written(started, "deaf")
    assert started.kill() == -signal.SIGKILL


def test_a_signal_goes_to_the_command(start: Start) -> None:
    started = start(*SLEEP)
    started.send_signal(signal.SIGUSR1)
    assert started.wait(5) == -signal.SIGUSR1


def test_the_exit_code_of_a_command_that_ends_by_itself_is_kept(start: Start) -> None:
    started = start("sh", "-c", "echo last words; exit 7")
    assert started.wait(5) == 7
    assert started.tail() == "last words"
    assert started.stop() == 7


@pytest.mark.parametrize("manner", ["obedient", "stubborn"])
def test_children_end_too_even_those_that_left_the_session(start: Start, manner: str) -> None:
    started = start(sys.executable, "-S", str(STUBS / "family.py"), manner, grace=0.2)
    until_written(started, "pids")
    family = pids_in(started.output())
    assert len(family) == 3
    started.stop()
    assert not [pid for pid in family if psutil.pid_exists(pid)]


def test_the_children_of_a_crashed_command_are_ended_without_being_asked(start: Start) -> None:
    started = start(sys.executable, "-S", str(STUBS / "family.py"), "crash")
    assert started.wait(5) == 3
    assert are_gone(pids_in(started.output()))


def test_a_killed_supervisor_takes_the_command_with_it(start: Start) -> None:
    started = start(*SLEEP)
    os.kill(started._supervisor.pid, signal.SIGKILL)
    assert started.wait(5) == -signal.SIGKILL
    assert are_gone([started.pid])


def starter(place: Path, *words: str) -> tuple[subprocess.Popen[str], list[int]]:
    """A process of its own that starts the family, and the pids of family and supervisor."""
    worker = subprocess.Popen(
        [sys.executable, str(STUBS / "starter.py"), str(place), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert worker.stdout is not None
    with worker.stdout:
        pids = pids_in(worker.stdout.readline())
    assert len(pids) == 4
    return worker, pids


@pytest.mark.parametrize("manner", ["obedient", "stubborn"])
def test_a_starter_killed_by_sigkill_leaves_nothing_behind(tmp_path: Path, manner: str) -> None:
    worker, pids = starter(tmp_path, manner)
    worker.kill()
    worker.wait()
    assert are_gone(pids)


def test_control_c_reaches_the_starter_alone_and_leaves_nothing_behind(tmp_path: Path) -> None:
    worker, pids = starter(tmp_path)
    os.killpg(worker.pid, signal.SIGINT)
    worker.wait(10)
    assert are_gone(pids)
    assert "KeyboardInterrupt" not in (tmp_path / "family.log").read_text()


def test_twenty_commands_start_at_once(start: Start) -> None:
    before = guard.counts.server
    with ThreadPoolExecutor(20) as pool:
        running = list(pool.map(lambda _: start(*SLEEP), range(20)))
    assert len({started.pid for started in running}) == 20
    assert guard.counts.server == before + 20
    with ThreadPoolExecutor(20) as pool:
        assert set(pool.map(guard.Started.stop, running)) == {-signal.SIGTERM}


def test_starts_are_counted_by_what_they_are_for(start: Start) -> None:
    before = (guard.counts.server, guard.counts.refused, guard.counts.command)
    start(*SLEEP)
    start("false", role="refused")
    start("true", role="command")
    start("true", role="command")
    after = (guard.counts.server, guard.counts.refused, guard.counts.command)
    assert [now - then for now, then in zip(after, before, strict=True)] == [1, 1, 2]


def test_a_command_that_is_not_there_is_one_line(start: Start) -> None:
    with pytest.raises(guard.CannotRun, match=r"^cannot run no-such-command: not found or not executable$"):
        start("no-such-command")


def test_a_file_that_is_no_program_is_one_line(start: Start, tmp_path: Path) -> None:
    (tmp_path / "noise").write_bytes(b"\0\1\2\3")
    (tmp_path / "noise").chmod(0o700)
    with pytest.raises(guard.CannotRun, match=r"^cannot run \S+: Exec format error$"):
        start(str(tmp_path / "noise"))


def test_a_directory_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(guard.CannotRun, match=r"^cannot run sleep: No such file or directory: \S+away"):
        guard.start(SLEEP, log=tmp_path / "log", env=guard.environment(tmp_path), cwd=tmp_path / "away")


def test_a_command_gets_no_variable_that_it_was_not_given(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOMEBODYS_KEY", "secret")
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.invalid")
    started = start("env")
    started.wait(5)
    seen = dict(line.split("=", 1) for line in started.output().splitlines())
    assert seen == guard.environment(tmp_path)
    assert seen["HOME"] == str(tmp_path)
    assert set(seen) <= {*guard.INHERITED_VARIABLES, "HOME", "PYTHONUNBUFFERED"}


def test_output_is_its_own_where_several_share_a_log(tmp_path: Path) -> None:
    """An address announced by an earlier process must never be taken for this one's."""
    for word in ("first", "second"):
        started = guard.start(
            ["echo", word], log=tmp_path / "log", env=guard.environment(tmp_path), cwd=tmp_path, role="command"
        )
        started.wait(5)
        assert (started.output(), started.tail()) == (f"{word}\n", word)
        started.stop()


def test_pipes_belong_to_the_command_alone(tmp_path: Path) -> None:
    env = guard.environment(tmp_path)
    started = guard.start(["cat"], log=tmp_path / "log", env=env, cwd=tmp_path, role="command", piped=True)
    assert started.stdin is not None
    assert started.stdout is not None
    started.stdin.write(b"a line\n")
    started.stdin.close()
    assert started.stdout.read() == b"a line\n"
    assert started.wait(5) == 0
    started.stop()


def test_a_closed_end_of_a_pipe_is_seen_at_once(tmp_path: Path) -> None:
    env = guard.environment(tmp_path)
    closes = "exec 0<&- 1>&-; sleep 1000"
    started = guard.start(["sh", "-c", closes], log=tmp_path / "log", env=env, cwd=tmp_path, role="command", piped=True)
    assert started.stdin is not None
    assert started.stdout is not None
    assert started.stdout.read() == b""
    with pytest.raises(BrokenPipeError):
        os.write(started.stdin.fileno(), b"anybody?")
    assert started.is_alive()
    started.stop()


def test_command_supervisor_and_starter_are_of_three_sessions(start: Start) -> None:
    """So that neither a terminal's Ctrl-C nor a command that signals its own group reaches another."""
    started = start(*SLEEP)
    assert os.getsid(started.pid) == started.pid
    assert os.getsid(started._supervisor.pid) == started._supervisor.pid


def test_no_descriptor_is_left_open(start: Start) -> None:
    start("true").stop()
    before = psutil.Process().num_fds()
    for _ in range(5):
        start(*SLEEP).stop()
    assert psutil.Process().num_fds() == before
