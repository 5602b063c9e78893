"""Every command teaches at 80 columns, and says of a wrong command line in one line what is wrong."""

import importlib
import sys

import pytest
import typer

from conformance.cli import SERVERS
from conformance.commands import app
from conformance.commands.one_line import started

pytestmark = pytest.mark.unit

COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]  # of a group, which it is


def ran(arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit status, and all that was said."""
    monkeypatch.setattr(sys, "argv", ["trackgauge", *arguments])
    monkeypatch.setenv("COLUMNS", "80")
    if arguments[:1] and arguments[0] in SERVERS:
        with pytest.raises(SystemExit) as ended:
            sys.exit(importlib.import_module(SERVERS[arguments[0]]).main(arguments[1:]))
        status = int(ended.value.code or 0)
    else:
        status = started(app, "trackgauge")
    said = capsys.readouterr()
    return status, said.out + said.err


@pytest.mark.parametrize("name", ["", *(each for each in COMMANDS if each not in SERVERS)])
def test_help_fits_eighty_columns_and_is_not_cut(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said = ran([*filter(None, [name]), "--help"], monkeypatch, capsys)
    assert status == 0
    _, *lines = said.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line.endswith("...")] == []


@pytest.mark.parametrize("name", [each for each in COMMANDS if each not in ("run", "repro", "scoreboard")])
def test_an_option_that_a_command_does_not_have_is_one_line_and_status_2(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said = ran([name, "--no-such-option"], monkeypatch, capsys)
    assert (status, said.count("\n")) == (2, 1)


def test_a_command_that_is_not_there_is_answered_with_the_nearest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said = ran(["requirments"], monkeypatch, capsys)
    assert (status, said.count("\n")) == (2, 1)
    assert "'requirements'" in said


def test_the_command_alone_tells_what_there_is_and_has_done_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said = ran([], monkeypatch, capsys)
    assert status == 2
    assert [name for name in COMMANDS if f"\n  {name} " not in said] == []
