"""What a harness, an evaluation or a proxy may do that nobody asked of them; each costs itself and is told."""

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest

from conformance.contract.rollouts import Collected, Failure, RolloutRequest, Stage
from conformance.reference.rollout import asking, collecting, lifecycle, tasks

pytestmark = pytest.mark.unit

JSON = Any
SAYS_NOTHING = {"command": "exit 1"}
HARNESS = {"name": "odd", "command": "true"}


def played(folder: Path, command: str, *, evaluation: JSON = None, **harness: JSON) -> Collected:
    """In a process of its own, as the runner does it."""
    told = {"name": "odd", "command": command, "grace_seconds": 0.2, "timeout_seconds": 20, **harness}
    asked = {"id": "r", "folder": str(folder), "model": "m", "harness": told, "evaluation": evaluation}
    task = tasks.fork(RolloutRequest.model_validate(asked), None)
    while task.hear():
        pass
    os.close(task.ear)
    task.last_line()
    return Collected.model_validate(json.loads(task.answer))


def test_a_keeper_that_is_killed_by_its_command_leaves_nothing_running(tmp_path: Path) -> None:
    script = (
        f"sleep 1000 & echo $! > {tmp_path}/a; setsid sleep 1000 & echo $! > {tmp_path}/b; kill -9 $PPID; sleep 1000"
    )
    answer = played(tmp_path / "r", script)
    assert answer.harness is not None
    assert answer.harness.exit_code == -signal.SIGKILL
    assert not [name for name in "ab" if psutil.pid_exists(int((tmp_path / name).read_text()))]


def test_a_grace_without_end_is_no_fault_of_the_keeper(tmp_path: Path) -> None:
    answer = played(tmp_path, "sleep 1000", timeout_seconds=0.2, grace_seconds=1e300)
    assert answer.harness is not None
    assert answer.harness.timed_out


@pytest.mark.parametrize(
    ("script", "patch"),
    [
        ("mkfifo p", "p"),
        ("ln -s /dev/zero p", "p"),
        ("ln -s p p", "p"),
        ("mkdir p", "p"),
        ("truncate -s 1G p", "p"),
        ("true", "a\0b"),
        ("true", "\ud800"),
    ],
)
def test_a_patch_that_is_no_file_costs_only_the_patch(tmp_path: Path, script: str, patch: str) -> None:
    evaluation = {"command": ["echo", json.dumps({"reward": 1})]}
    answer = played(tmp_path, script, patch=patch, metrics=patch, evaluation=evaluation)
    assert (answer.patch, answer.metrics, answer.reward) == (None, {}, 1.0)
    assert len(answer.warnings) == 2


def test_a_patch_is_no_way_out_of_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text('{"the runner": "may read this, and the agent may not"}')
    for script, name in ((f"ln -s {tmp_path}/secret p", "p"), ("true", "../../../secret")):
        answer = played(tmp_path / "r", script, patch=name, metrics=name)
        assert (answer.patch, answer.metrics, len(answer.warnings)) == (None, {}, 2)
        assert "below the workspace" in answer.warnings[0]


@pytest.mark.parametrize("folder", ["a\0b", "\ud800", "/proc/none/r"], ids=["nul", "surrogate", "read-only"])
def test_a_folder_that_cannot_be_is_told_as_the_request_s_own_fault(folder: str, tmp_path: Path) -> None:
    answer = played(tmp_path / folder if folder[0] != "/" else Path(folder), "true")
    assert answer.error is not None
    assert (answer.error.stage, answer.outcome, answer.withheld) == (Stage.REQUEST, "failed", True)


@pytest.mark.parametrize("change", [{"host": "a\0b"}, {"host": "999.1.1.1"}, {"command": ["a\0b"]}])
def test_a_proxy_that_nothing_can_be_called_fails_where_it_is_spawned(change: JSON, tmp_path: Path) -> None:
    (tmp_path / "routes.yaml").write_text("routes: {}\n")
    spawn = {"command": [sys.executable], "profile": str(tmp_path / "routes.yaml"), **change}
    asked = {"id": "r", "folder": str(tmp_path), "model": "m", "proxy": {"spawn": spawn}, "harness": HARNESS}
    answer = lifecycle.run(RolloutRequest.model_validate(asked), None)
    assert answer.error is not None
    assert (answer.error.stage, answer.withheld) == (Stage.SPAWN, True)


def test_a_command_without_a_name_is_a_harness_that_never_ran(tmp_path: Path) -> None:
    asked = {"id": "r", "folder": str(tmp_path), "model": "m", "harness": {"name": "none", "command": [""]}}
    answer = lifecycle.run(RolloutRequest.model_validate(asked), None)
    assert answer.error is not None
    assert (answer.error.stage, answer.harness, answer.outcome) == (Stage.HARNESS, None, "failed")


def test_a_pipe_where_a_file_of_the_evaluation_belongs_is_replaced(tmp_path: Path) -> None:
    evaluation = {"command": "cat verdict", "files": {"verdict": {"text": '{"reward": 0.5}'}}}
    assert played(tmp_path, "mkfifo verdict", evaluation=evaluation).reward == 0.5


def test_metrics_that_no_json_has_a_word_for_are_null(tmp_path: Path) -> None:
    answer = played(tmp_path, 'echo \'{"a": NaN, "b": 2}\' > m', metrics="m")
    assert answer.metrics == {"a": None, "b": 2}


def test_a_verdict_that_the_harness_wrote_is_none(tmp_path: Path) -> None:
    answer = played(tmp_path, "echo '{\"reward\": 1}' > ../evaluation.log", evaluation=SAYS_NOTHING)
    assert answer.reward is None


def test_of_an_output_without_end_only_the_end_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as file:
        file.truncate(1 << 34)
        file.seek(0, os.SEEK_END)
        file.write(b'\n{"reward": 0.5}\n')
    assert collecting.verdict_of(collecting.end_of(log))[0] == 0.5


@contextmanager
def proxy(answer: bytes) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def test_a_proxy_that_answers_with_another_session_is_not_believed() -> None:
    with proxy(json.dumps({"schema_version": 1, "session_id": "another", "completions": []}).encode()) as url:
        found = collecting.from_proxy(url, "mine")
    assert isinstance(found, Failure)
    assert found.stage is Stage.COLLECT
    assert "another" in found.message


def test_a_proxy_that_sends_a_byte_now_and_then_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "LIMITS_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def dribble() -> None:
            caller, _ = server.accept()
            over = threading.Event()
            with caller, suppress(OSError):
                while not over.wait(0.05):
                    caller.sendall(b"H")

        threading.Thread(target=dribble, daemon=True).start()
        with pytest.raises(asking.NoAnswer, match="no whole answer"):
            asking.context_length(f"http://127.0.0.1:{server.getsockname()[1]}", "m")
