"""The command: it says where it listens, and ends when it should."""

import http.client
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from fakes.vllm.command import main
from fakes.vllm.server import LIFELINE

PLAYBOOK = 'about: One turn.\nscopes: {main: {turns: [{text: "{tag} Hello."}]}}\n'


def _start(*arguments: str, pass_fds: tuple[int, ...] = (), **environment: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "fakes.vllm", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
        pass_fds=pass_fds,
    )


def _address(process: "subprocess.Popen[str]") -> tuple[str, int]:
    assert process.stdout
    line = process.stdout.readline()
    assert line.startswith("listening on http://127.0.0.1:"), line
    parts = urlsplit(line.split()[-1])
    return parts.hostname or "", parts.port or 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_announces_itself_serves_and_ends_with_0(tmp_path: Path, number: signal.Signals) -> None:
    playbook = tmp_path / "hello.yaml"
    playbook.write_text(PLAYBOOK)
    with _start("--playbook", str(playbook), "--run", "5", "--profile", "0.22") as process:
        connection = http.client.HTTPConnection(*_address(process), timeout=20)
        body = '{"messages": [{"role": "user", "content": "⟦000005:00:0000⟧ hi"}]}'.encode()
        connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
        assert b"Hello." in connection.getresponse().read()
        connection.close()
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")


def test_it_ends_when_its_lifeline_does() -> None:
    reading, writing = os.pipe()
    with _start(pass_fds=(reading,), **{LIFELINE: str(reading)}) as process:
        os.close(reading)
        _address(process)
        os.close(writing)
        assert process.wait(20) == 0


def test_a_wrong_playbook_is_one_line_and_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    playbook = tmp_path / "bad.yaml"
    playbook.write_text("about: x\nscopes: {main: {turns: [{txet: x}]}}\n")
    assert main(["--playbook", str(playbook)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "bad.yaml: scopes.main.turns[0].txet: unknown key" in error


def test_a_wrong_flag_or_profile_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--prot", "1"]) == 2
    assert main(["--profile", "1.0"]) == 2
    assert "0.33" in capsys.readouterr().err


def test_a_taken_port_is_one_line_and_4(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["--port", str(port)]) == 4
    assert capsys.readouterr().err == (
        f"fake-vllm: cannot listen on 127.0.0.1:{port}: Address already in use; try --port 0\n"
    )


def test_the_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "⟦000001:00:0000⟧" in capsys.readouterr().out
