"""``trackgauge rollout`` as a command: a file or lines in, answers out, and nothing left when it is killed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

RUNNER = (sys.executable, "-m", "conformance.reference.rollout")
JSON = Any


def request(folder: Path, command: str, **changes: JSON) -> JSON:
    harness = {"name": "shell", "command": command}
    return {"id": "r", "folder": str(folder), "model": "m", "harness": harness, **changes}


PROXY = f"""#!{sys.executable}
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
import beside
told = dict(zip(sys.argv, sys.argv[1:]))
assert Path(told["--routing-profiles"]).read_text() == "routes: []"
Path(told["--rl-log-dir"]).mkdir()
HTTPServer((told["--host"], int(told["--port"])), BaseHTTPRequestHandler).serve_forever()
"""


def answers_in(output: bytes) -> list[JSON]:
    return [told for told in map(json.loads, output.splitlines()) if "event" not in told]


@pytest.mark.parametrize("indent", [None, 2], ids=["a line", "many lines"])
def test_a_file_with_a_request_is_answered_on_stdout(tmp_path: Path, indent: int | None) -> None:
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(request(tmp_path, "exit 3"), indent=indent))
    ran = subprocess.run([*RUNNER, str(spec)], capture_output=True, check=True)
    assert [(told["id"], told["harness"]["exit_code"]) for told in answers_in(ran.stdout)] == [("r", 3)]


def test_relative_paths_are_taken_from_where_the_rollout_was_asked_for(tmp_path: Path) -> None:
    for name, text in {"proxy": PROXY, "routes.yaml": "routes: []", "lib/beside.py": ""}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "proxy").chmod(0o755)
    spawned = {"command": ["./proxy"], "profile": "routes.yaml", "python_path": ["lib"]}
    spec = request(Path("out"), "touch here", proxy={"spawn": spawned}, backends="http://127.0.0.1:1")
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    ran = subprocess.run([*RUNNER, "spec.json"], capture_output=True, check=True, cwd=tmp_path)
    (answer,) = answers_in(ran.stdout)
    assert answer["harness"]["exit_code"] == 0, answer
    (attempt,) = (tmp_path / "out").iterdir()
    assert (attempt / "workspace" / "here").exists()
    assert (attempt / "records").is_dir()


def test_lines_of_a_file_on_stdin_are_answered_each(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("".join(json.dumps(request(tmp_path, "true", id=f"r{n}")) + "\n" for n in range(3)) + "no JSON\n")
    with lines.open("rb") as stdin:
        ran = subprocess.run([*RUNNER, "--jsonl"], stdin=stdin, capture_output=True, check=False)
    assert sorted(told["id"] for told in answers_in(ran.stdout)) == ["", "r0", "r1", "r2"]
    assert (ran.returncode, ran.stderr) == (2, b"")


def test_of_a_file_what_is_no_request_is_answered_and_named_and_the_others_are_run(tmp_path: Path) -> None:
    spec = tmp_path / "spec.jsonl"
    lines = [request(tmp_path, "true"), {"id": "odd", "folder": str(tmp_path)}]
    spec.write_text("\n".join(map(json.dumps, lines)))
    ran = subprocess.run([*RUNNER, str(spec)], capture_output=True, check=False)
    assert {told["id"]: told["harness"] is not None for told in answers_in(ran.stdout)} == {"r": True, "odd": False}
    assert (ran.returncode, ran.stderr.count(b"\n")) == (2, 1)
    assert b"spec.jsonl: odd: model: Field required; see trackgauge schema rollout-request" in ran.stderr


@pytest.mark.parametrize("text", ["{\n  'id': 'r'\n}\n", "", "[" * 100_000], ids=["quotes", "empty", "too deep"])
def test_a_file_that_holds_no_json_is_one_error_and_no_answer(tmp_path: Path, text: str) -> None:
    spec = tmp_path / "spec.json"
    spec.write_text(text)
    ran = subprocess.run([*RUNNER, str(spec)], capture_output=True, check=False)
    assert (ran.returncode, ran.stdout) == (2, b"")
    assert b"spec.json: is " in ran.stderr.splitlines()[-1]


@pytest.mark.parametrize("arguments", [(), ("--jsonl", "spec.json"), ("missing.json",), ("--jsonl", "--at-once", "0")])
def test_a_wrong_command_line_is_a_usage_error_without_a_traceback(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    ran = subprocess.run([*RUNNER, *arguments], capture_output=True, cwd=tmp_path, stdin=subprocess.DEVNULL)
    assert ran.returncode == 2
    assert b"Traceback" not in ran.stderr


def test_a_runner_that_is_killed_leaves_no_rollout_behind(tmp_path: Path) -> None:
    with subprocess.Popen([*RUNNER, "--jsonl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as runner:
        assert runner.stdin is not None
        assert runner.stdout is not None
        marked = f"touch {tmp_path}/there; setsid sleep 1000 & trap '' TERM; while :; do sleep 0.1; done"
        runner.stdin.write(json.dumps(request(tmp_path, marked)).encode() + b"\n")
        runner.stdin.flush()
        assert json.loads(runner.stdout.readline())["event"] == "task"
        while not (tmp_path / "there").exists():
            assert runner.poll() is None
        below = psutil.Process(runner.pid).children(recursive=True)
        os.kill(runner.pid, signal.SIGKILL)
    assert len(below) >= 3
    _, alive = psutil.wait_procs(below, timeout=25)
    assert [process.cmdline() for process in alive if process.is_running()] == []
