"""The fake agents as a command: what is told, and with which exit status, where there is nobody to talk to."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fakes.harnesses.command import PLAYERS

NOBODY = "http://127.0.0.1:1"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "fakes.harnesses", *arguments], capture_output=True, text=True)


def test_an_agent_without_a_server_ends_with_1_and_tells_what_it_tried(tmp_path: Path) -> None:
    file = tmp_path / "exchanges.json"
    ran = run("openhands-nv", "--base-url", NOBODY, "--task", "Go.", "--session", "s", "--exchanges", str(file))
    told = json.loads(ran.stdout)
    assert (ran.returncode, told["ended"] in ("error", "gave_up")) == (1, True)
    exchanges = json.loads(file.read_text(encoding="utf-8"))
    assert exchanges["session"] == "s"
    assert len(exchanges["exchanges"]) == told["calls"] > 0


@pytest.mark.parametrize(
    "arguments", [(), ("nobody", "--base-url", NOBODY, "--task", "Go."), ("codex", "--task", "Go.")]
)
def test_a_wrong_command_line_is_a_usage_error(arguments: tuple[str, ...]) -> None:
    ran = run(*arguments)
    assert (ran.returncode, "Traceback" in ran.stderr) == (2, False)


def test_the_help_names_every_agent() -> None:
    assert all(name in run("--help").stdout for name in PLAYERS)
