"""What the fake tools answer."""

import pytest

from fakes.harnesses.tools import BadCallError, Tool, ToolBox

BOX = ToolBox([Tool("terminal", "Run.", ("command", "why"), enforced=("command",))])


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("echo hi  # ⟦000001:00:0002⟧", "hi\n[exit code 0]"),
        ("ls -l  # ⟦000001:00:0002⟧", "[exit code 0]"),
        ("echo 'open", "syntax error\n[exit code 2]"),
    ],
    ids=["echo", "other", "unclosed"],
)
def test_a_command_prints_what_it_should_and_never_its_comment(command: str, printed: str) -> None:
    assert BOX.run("terminal", BOX.arguments("terminal", f'{{"command": "{command}"}}')) == printed


@pytest.mark.parametrize(
    ("name", "raw", "malformed"),
    [
        ("terminal", "{", True),
        ("terminal", "[]", True),
        ("nosuch", "{}", False),
        ("terminal", "{}", False),
        ("terminal", "", False),
    ],
)
def test_a_bad_call_says_whether_its_arguments_are_malformed(name: str, raw: str, malformed: bool) -> None:
    with pytest.raises(BadCallError) as bad:
        BOX.arguments(name, raw)
    assert bad.value.malformed is malformed
