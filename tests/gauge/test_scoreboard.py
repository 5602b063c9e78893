"""``trackgauge scoreboard``: each system in a run of its own, one table of all."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gauge.suite import HEAD

SCENARIO = """
@covers("CAP-001", "REB-001")
def test_it(check):
    check("CAP-001", False, expected=1, seen=2)
    check("REB-001", True)
"""
PROFILE = """
name = "acme"
kind = "proxy"
version = "7"
capabilities = ["chat", "records-disk"]
[start]
command = ["true"]
[routing]
[retrieval]
records_on_disk = "*.json"
"""


def scoreboard(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_here.py").write_text(HEAD + SCENARIO, encoding="utf-8")
    (folder / "acme.toml").write_text(PROFILE, encoding="utf-8")
    command = [sys.executable, "-m", "conformance.cli", "scoreboard", "--report", "board", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, timeout=120)


def lines_of(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_each_system_is_run_alone_and_stands_in_a_column_of_its_own(tmp_path: Path) -> None:
    systems = ("--system", "acme.toml", "--system", "reference-rebuild")
    done = scoreboard(tmp_path, *systems, "--publish", "docs", "./test_here.py")
    assert done.returncode == 0, done.stderr
    lines = lines_of(tmp_path / "docs" / "scoreboard.ndjson")
    assert next((one["name"], one["version"]) for one in lines if one["kind"] == "system") == ("acme", "7")
    cells = {(one["system"], one["requirement"]): one["verdict"] for one in lines if one["kind"] == "cell"}
    assert cells == {("acme", "CAP-001"): "fail", ("reference-rebuild", "REB-001"): "pass"}
    text = (tmp_path / "docs" / "scoreboard.md").read_text(encoding="utf-8")
    assert text == (tmp_path / "board" / "scoreboard.md").read_text(encoding="utf-8")
    assert "acme" in done.stderr
    again = scoreboard(tmp_path, *systems, "--draw")
    assert again.returncode == 0
    assert text == (tmp_path / "board" / "scoreboard.md").read_text(encoding="utf-8")


def test_a_folder_without_a_run_is_no_board_and_stays_as_it_is(tmp_path: Path) -> None:
    done = scoreboard(tmp_path, "--system", "acme.toml", "--draw")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "no NAME/results.ndjson to draw, of acme; leave out --draw to run them" in done.stderr
    assert not (tmp_path / "board").exists()


def test_a_run_that_a_wrong_option_ends_is_listed_with_what_it_said(tmp_path: Path) -> None:
    done = scoreboard(tmp_path, "--system", "acme.toml", "--covering", "XYZ")
    assert done.returncode == 1
    [system] = [one for one in lines_of(tmp_path / "board" / "scoreboard.ndjson") if one["kind"] == "system"]
    assert "--covering XYZ: no such requirement or family" in str(system["not_judged"])


def test_two_columns_of_one_name_and_unknown_systems_end_with_one_line_and_status_2(tmp_path: Path) -> None:
    for arguments, told in (
        (("--system", "reference", "--system", "reference"), "two columns of that name"),
        (("--system", "nobody"), "no such system"),
    ):
        done = scoreboard(tmp_path, *arguments)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert told in done.stderr


WAITS = """
import os, signal
@covers("CAP-001")
def test_it(check):
    with open(os.environ["READY"], "w") as ready:
        ready.write("here")
    signal.pause()
"""


def test_one_that_is_ended_by_ctrl_c_draws_what_is_whole_and_leaves_nothing_running(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    (tmp_path / "acme.toml").write_text(PROFILE, encoding="utf-8")
    (tmp_path / "test_here.py").write_text(HEAD + WAITS, encoding="utf-8")
    command = [sys.executable, "-m", "conformance.cli", "scoreboard", "--report", "board", "./test_here.py"]
    running = subprocess.Popen(
        [*command, "--system", "acme.toml", "--system", "reference-rebuild"],
        cwd=tmp_path,
        env={**os.environ, "READY": str(ready)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert ready.read_text(encoding="utf-8") == "here"
    os.killpg(running.pid, signal.SIGINT)
    assert running.wait(30) == 1
    systems = {one["name"]: one["not_judged"] for one in lines_of(tmp_path / "board" / "scoreboard.ndjson")[1:]}
    assert systems == {
        "acme": "its run was ended before all was played",
        "reference-rebuild": "the scoreboard was ended before its run",
    }
    with pytest.raises(ProcessLookupError):
        os.killpg(running.pid, 0)
