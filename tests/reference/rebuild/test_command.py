"""The JSON lines command as a process."""

import json
import subprocess
import sys

import pytest

from conformance.reference.rebuild.command import main
from tests.reference.rebuild.making import envelope, two_turns

COMMAND = [sys.executable, "-m", "conformance.reference.rebuild"]


def test_a_bad_line_is_answered_with_an_error_and_the_next_line_is_read() -> None:
    good = {"v": 1, "id": "good", "op": "rebuild", "source": {"envelope": envelope(*two_turns())}}
    lines = [
        "nonsense",
        "[" * 100_000,
        "7",
        '{"id": "half"}',
        '{"id": "other", "op": "sing", "source": {}}',
        '{"id": "later", "v": 2, "source": {}}',
        "",
        json.dumps(good | {"allow_partial": True}),
    ]
    done = subprocess.run(
        [*COMMAND, "--jsonl"], input="\n".join(lines).encode(), capture_output=True, timeout=120, check=True
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.stderr == b""
    assert [(one["id"], one["outcome"]) for one in answers] == [
        ("", "failed"),
        ("", "failed"),
        ("", "failed"),
        ("half", "failed"),
        ("other", "failed"),
        ("later", "failed"),
        ("good", "clean"),
    ]
    assert [one["error"]["rule"] for one in answers[:-1]] == ["request"] * 6
    assert "v must be 1" in answers[5]["error"]["message"]


def test_a_reader_that_goes_away_ends_the_command_without_a_word() -> None:
    with subprocess.Popen([*COMMAND, "--jsonl"], stdin=-1, stdout=-1, stderr=-1) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.write(b"nonsense\n")
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=120) == 1


def test_help_shows_the_line_to_send(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    assert '"op": "rebuild"' in capsys.readouterr().out


def test_a_wrong_flag_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([])
    assert end.value.code == 2
    assert "--jsonl" in capsys.readouterr().err
