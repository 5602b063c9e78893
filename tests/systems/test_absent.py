"""What is not there is told with its place and what to do, before anything is started."""

import sys
from pathlib import Path

import pytest

from conformance.systems import profiles
from conformance.systems.absent import absent

pytestmark = pytest.mark.unit


def told(folder: Path, command: str, more: str = "") -> str | None:
    text = f'name = "mine"\nkind = "rebuild"\ncapabilities = []\n[start]\ncommand = [{command}]\n{more}'
    (folder / "mine.toml").write_text(text, encoding="utf-8")
    return absent(profiles.find(str(folder / "mine.toml")))


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (
            '"no-such-program"',
            "no-such-program is not on PATH; install it, or give its absolute path, or {here}/no-such",
        ),
        ('"/no/such"', "there is no program /no/such; install it, or mend its path"),
        ('"./mine"', "./mine is relative, and it runs in a folder of its own; write {here}/"),
        ('"{here}/mine"', "mine; install it, or mend its path"),
        ('"{python}", "{here}/mine.py"', "mine.py; put it beside the profile, or mend its name"),
    ],
)
def test_a_program_that_is_not_there_is_one_line(tmp_path: Path, command: str, why: str) -> None:
    line = told(tmp_path, command)
    assert line is not None
    assert line.startswith(f"mine did not start: {tmp_path / 'mine.toml'}: start.command: ")
    assert why in line
    assert "\n" not in line


def test_what_is_there_is_not_told(tmp_path: Path) -> None:
    for name in ("mine", "mine.py"):
        (tmp_path / name).touch(mode=0o755)
    folder = Path(sys.executable).parent
    commands = ('"{here}/mine"', '"{python}", "{here}/mine.py"', '"{python}", "-m", "mine"', f'"{sys.executable}"')
    assert [told(tmp_path, each) for each in commands] == [None] * 4
    assert told(tmp_path, f'"{Path(sys.executable).name}"', f'env = {{PATH = "{folder}"}}\n') is None
    assert [absent(profiles.find(name)) for name in profiles.DEFAULT_NAMES] == [None] * 3
