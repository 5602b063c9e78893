"""The process of a runner that whoever asks is heard by."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from conformance.reference.rollout.front import Front
from conformance.reference.rollout.protocol import READ_BYTES
from conformance.reference.rollout.serving import Serving
from tests.reference.rollout.test_runner_command import request

pytestmark = pytest.mark.unit

JSON = Any
RUNNER = (sys.executable, "-m", "conformance.reference.rollout", "--jsonl")
SAYS_MUCH = """echo '{"reward": 1, "metrics": {"text": "'$(head -c 3000 /dev/zero | tr '\\0' x)'"}}'"""
NO_OP = {"id": "no-op", "op": "group", "task": "t", "size": 1, "members": []}


@contextmanager
def runner() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(RUNNER, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def ask(process: "subprocess.Popen[bytes]", asked: JSON) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(asked).encode() + b"\n")
    process.stdin.flush()


def told(process: "subprocess.Popen[bytes]") -> JSON:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def rollout(folder: Path, command: str = "true", **keys: JSON) -> JSON:
    return request(folder, command, **keys)


def test_a_question_is_answered_while_what_forks_rollouts_stands_still(tmp_path: Path) -> None:
    with runner() as process:
        ask(process, rollout(tmp_path))
        assert [told(process).get("event"), told(process)["id"]] == ["task", "r"]
        os.kill(process.pid, signal.SIGSTOP)
        ask(process, rollout(tmp_path, id="later"))
        ask(process, NO_OP)
        assert told(process)["id"] == "no-op"
        os.kill(process.pid, signal.SIGCONT)
        assert [told(process)["id"], told(process)["id"]] == ["later", "later"]


def test_requests_of_many_megabytes_pass_while_nobody_reads_them(tmp_path: Path) -> None:
    with runner() as process:
        ask(process, NO_OP)
        assert told(process)["id"] == "no-op"
        os.kill(process.pid, signal.SIGSTOP)
        padding = "x" * (1 << 20)
        for number in range(4):
            ask(process, rollout(tmp_path, f": {padding}", id=f"r{number}", unknown="no key of the protocol"))
        ask(process, NO_OP)
        assert told(process)["id"] == "no-op"
        os.kill(process.pid, signal.SIGCONT)
        assert [told(process)["id"] for _ in range(4)] == ["r0", "r1", "r2", "r3"]


def test_a_last_line_without_its_end_is_a_request_too(tmp_path: Path) -> None:
    lines = f"{json.dumps(rollout(tmp_path))}\n\n  \n{json.dumps(NO_OP)}"
    done = subprocess.run(RUNNER, input=lines.encode(), capture_output=True, check=True)
    assert sorted(json.loads(line)["id"] for line in done.stdout.splitlines()) == ["no-op", "r", "r"]


def test_the_rest_of_a_long_request_and_the_end_of_the_input_may_come_together(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    asked.write_bytes(b"x" * (READ_BYTES + 1000) + b"\n")
    behind, to_behind = os.pipe()
    fcntl.fcntl(to_behind, fcntl.F_SETPIPE_SZ, 4 * READ_BYTES)  # so that there is always room
    from_behind, done = os.pipe()
    seen: list[bytes] = []

    def read_all() -> None:
        with os.fdopen(behind, "rb") as lines:
            seen.append(lines.read())
        os.close(done)

    reader = threading.Thread(target=read_all)
    reader.start()
    with asked.open("rb") as requests, (tmp_path / "told").open("wb") as answers:
        Front(requests.fileno(), answers.fileno(), to_behind, from_behind).run()
    reader.join()
    os.close(from_behind)
    assert seen == [asked.read_bytes()]


def test_a_question_that_is_wrong_makes_the_runner_end_with_2(tmp_path: Path) -> None:
    wrong = {**NO_OP, "size": "many"}
    done = subprocess.run(RUNNER, input=json.dumps(wrong).encode(), capture_output=True, check=False)
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["id"], "size" in answer["reason"]) == (2, "no-op", True)


def front_of(process: "subprocess.Popen[bytes]", task: int) -> psutil.Process:
    (front,) = (child for child in psutil.Process(process.pid).children() if child.pid != task)
    return front


def begun(process: "subprocess.Popen[bytes]", folder: Path) -> int:
    """The pid of a task whose harness runs and does not end."""
    os.mkfifo(folder / "there")
    ask(process, rollout(folder, f"echo > {folder}/there; sleep 1000"))
    task = told(process)
    assert task["event"] == "task"
    (folder / "there").read_bytes()
    pid: int = task["pid"]
    return pid


def test_a_runner_whose_front_is_killed_ends_with_1_and_leaves_nothing(tmp_path: Path) -> None:
    with runner() as process:
        front = front_of(process, begun(process, tmp_path))
        below = psutil.Process(process.pid).children(recursive=True)
        front.kill()
        assert process.stdout is not None
        assert process.stdout.read() == b""
        assert process.wait(30) == 1  # at once, not when all rollouts have ended
        _, alive = psutil.wait_procs(below, timeout=25)
        assert alive == []


def test_whoever_tells_all_processes_of_a_runner_to_end_is_answered(tmp_path: Path) -> None:
    with runner() as process:
        front = front_of(process, begun(process, tmp_path))
        front.terminate()
        process.terminate()
        answer = told(process)
        assert (answer["id"], answer["error"]["stage"]) == ("r", "task")
        assert process.wait(30) == 0


@pytest.mark.parametrize("request_of", [lambda folder: NO_OP, rollout], ids=["question", "rollout"])
def test_whoever_stops_reading_ends_the_runner_with_1(tmp_path: Path, request_of: Callable[[Path], JSON]) -> None:
    with runner() as process:
        assert process.stdout is not None
        process.stdout.close()
        ask(process, request_of(tmp_path))
        assert process.wait(30) == 1


def test_whoever_stops_reading_while_a_rollout_runs_ends_it(tmp_path: Path) -> None:
    with runner() as process:
        begun(process, tmp_path)
        assert process.stdout is not None
        process.stdout.close()
        ask(process, NO_OP)
        assert process.wait(30) == 1


def test_what_was_asked_before_a_runner_was_told_to_end_is_answered_too(tmp_path: Path) -> None:
    with runner() as process:
        begun(process, tmp_path)
        os.kill(process.pid, signal.SIGSTOP)
        for number in range(100):
            ask(process, rollout(tmp_path, "sleep 1000", id=f"r{number}"))
        ask(process, NO_OP)
        assert told(process)["id"] == "no-op"  # so the front has taken all that was asked before
        process.terminate()
        os.kill(process.pid, signal.SIGCONT)
        assert process.stdout is not None
        lines = [json.loads(line) for line in process.stdout]
        answers = [each for each in lines if "event" not in each]  # the first may just have begun
        assert sorted(each["id"] for each in answers) == sorted(["r", *(f"r{number}" for number in range(100))])
        assert all(each["error"]["stage"] == "task" for each in answers)
        assert process.wait(30) == 0


def test_more_than_is_read_at_once_is_answered_by_one_that_was_told_to_end_already(tmp_path: Path) -> None:
    lines = b"".join(json.dumps(rollout(tmp_path, id=f"r{number}")).encode() + b"\n" for number in range(1000))
    assert len(lines) > READ_BYTES
    awake, wake = os.pipe()
    os.write(wake, b"\0")
    here, there = os.pipe()
    fcntl.fcntl(there, fcntl.F_SETPIPE_SZ, 16 * READ_BYTES)
    os.write(there, lines)
    with (tmp_path / "answers").open("w+b") as answers:
        Serving([], here, answers, 1000).run(awake)
        answers.seek(0)
        assert [json.loads(line)["id"] for line in answers] == [f"r{number}" for number in range(1000)]
    for each in (awake, wake, here, there):
        os.close(each)


@pytest.mark.parametrize("depth", range(960, 990, 2))
def test_a_question_as_deep_as_can_just_be_read_or_not_takes_nobody_along(depth: int) -> None:
    collected = {"id": "x", "captured": False, "outcome": "failed", "withheld": True, "reason": "r"}
    head = json.dumps({"id": "deep", "op": "verify", "collected": collected})[:-1]
    line = f'{head}, "instance_config": {{"a": {"[" * depth}1{"]" * depth}}}}}\n{json.dumps(NO_OP)}\n'
    done = subprocess.run(RUNNER, input=line.encode(), capture_output=True, check=False)
    assert [each.count(b'"id":"no-op"') for each in sorted(done.stdout.splitlines(), key=len)] in ([0, 1], [1, 0])
    assert b"Traceback" not in done.stderr


def test_answers_come_through_a_pipe_that_does_not_block(tmp_path: Path) -> None:
    count = 3000
    lines = tmp_path / "lines"
    lines.write_bytes(count * (json.dumps(NO_OP).encode() + b"\n"))
    here, there = os.pipe()
    os.set_blocking(there, False)
    with lines.open("rb") as stdin, subprocess.Popen(RUNNER, stdin=stdin, stdout=there) as process:
        os.close(there)
        with os.fdopen(here, "rb") as answers:
            assert sum(1 for _ in answers) == count
        assert process.wait(30) == 0


def test_long_answers_that_nobody_reads_keep_nothing_from_being_read_later(tmp_path: Path) -> None:
    count = 64
    with runner() as process:
        for number in range(count):
            ask(process, rollout(tmp_path, id=f"r{number}", evaluation={"command": SAYS_MUCH}))
        assert process.stdin is not None
        process.stdin.close()
        assert process.stdout is not None
        answers = [json.loads(line) for line in process.stdout]
        assert sorted(each["id"] for each in answers) == sorted(2 * [f"r{number}" for number in range(count)])
        assert process.wait(30) == 0


@pytest.mark.parametrize("command", ["rollout", "rebuild"])
@pytest.mark.parametrize(("closed", "name"), [("<&-", b"stdin is closed"), (">&-", b"stdout is closed")])
def test_a_closed_stream_is_a_usage_error(command: str, closed: str, name: bytes) -> None:
    program = (sys.executable, "-m", "conformance.cli", command, "--jsonl")
    shell = ["sh", "-c", f'"$@" {closed}', "sh", *program]
    done = subprocess.run(shell, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (2, b"")
    assert name in done.stderr.splitlines()[-1]
