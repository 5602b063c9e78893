"""The process of a runner that whoever asks is heard by."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

pytestmark = pytest.mark.unit

JSON = Any
RUNNER = (sys.executable, "-m", "conformance.reference.rollout", "--jsonl")
NO_OP = {"id": "no-op", "op": "group", "task": "t", "size": 1, "members": []}


@contextmanager
def runner() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(RUNNER, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def ask(process: "subprocess.Popen[bytes]", request: JSON) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(request).encode() + b"\n")
    process.stdin.flush()


def told(process: "subprocess.Popen[bytes]") -> JSON:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def rollout(folder: Path, command: str = "true", **keys: JSON) -> JSON:
    return {"id": "r", "folder": str(folder), "model": "m", "harness": {"name": "shell", "command": command}, **keys}


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


def test_a_question_that_is_wrong_makes_the_runner_end_with_2(tmp_path: Path) -> None:
    wrong = {**NO_OP, "size": "many"}
    done = subprocess.run(RUNNER, input=json.dumps(wrong).encode(), capture_output=True, check=False)
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["id"], "size" in answer["reason"]) == (2, "no-op", True)


def test_a_runner_whose_front_is_killed_ends_and_leaves_nothing(tmp_path: Path) -> None:
    with runner() as process:
        ask(process, rollout(tmp_path, f"touch {tmp_path}/there; sleep 1000"))
        assert told(process)["event"] == "task"
        while not (tmp_path / "there").exists():
            assert process.poll() is None
        front, *_ = sorted(psutil.Process(process.pid).children(), key=lambda child: child.pid)
        below = psutil.Process(process.pid).children(recursive=True)
        front.kill()
        process.terminate()
        assert process.wait(30) == 1
        _, alive = psutil.wait_procs(below, timeout=25)
        assert alive == []


def test_whoever_stops_reading_ends_the_runner(tmp_path: Path) -> None:
    with runner() as process:
        assert process.stdout is not None
        process.stdout.close()
        ask(process, rollout(tmp_path))
        assert process.wait(30) == 1


@pytest.mark.parametrize("command", ["rollout", "rebuild"])
def test_a_closed_stdin_is_a_usage_error(command: str) -> None:
    program = (sys.executable, "-m", "conformance.cli", command, "--jsonl")
    done = subprocess.run(["sh", "-c", '"$@" <&-', "sh", *program], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"stdin is closed" in done.stderr.splitlines()[-1]
