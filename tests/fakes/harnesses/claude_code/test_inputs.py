"""What becomes of a call's input, as the facts say."""

from typing import Any

import pytest

from fakes.harnesses.claude_code_inputs import InvalidInput, input_of, settled
from fakes.harnesses.claude_code_json import js_dump
from fakes.harnesses.claude_code_tools import ROOT

CWD = "/project"


@pytest.mark.parametrize(
    ("name", "raw", "sent"),
    [
        pytest.param(
            "Write",
            '{"content": "a  \\n\\tb\\t\\n  c", "file_path": "x"}',
            '{"file_path":"x","content":"a\\n\\tb\\n  c"}',
            id="Write is put in order, and trailing blanks go",
        ),
        pytest.param(
            "Edit",
            '{"new_string": "b \\n", "old_string": "a ", "file_path": "x"}',
            '{"replace_all":false,"file_path":"x","old_string":"a ","new_string":"b\\n"}',
            id="Edit gets replace_all, in front",
        ),
        pytest.param(
            "Edit",
            '{"file_path": "x", "old_string": "a", "new_string": "b", "replace_all": "true"}',
            '{"replace_all":true,"file_path":"x","old_string":"a","new_string":"b"}',
            id="Edit keeps a replace_all of its own, coerced",
        ),
        pytest.param(
            "Bash",
            f'{{"description": "d", "command": "cd {CWD} && find . -exec ls {{}} \\\\\\\\;"}}',
            '{"command":"find . -exec ls {} \\\\;","description":"d"}',
            id="Bash loses the way to where it is, and one backslash",
        ),
        pytest.param(
            "Bash",
            '{"run_in_background": "false", "timeout": 1000.0, "command": "ls"}',
            '{"command":"ls","timeout":1000,"run_in_background":false}',
            id="Bash coerces",
        ),
        pytest.param("Read", '{"limit": "5", "file_path": "x"}', '{"limit":"5","file_path":"x"}', id="Read does not"),
        pytest.param(
            "TaskCreate",
            '{"description": "d", "subject": "s", "metadata": {"b": 1e3, "10": 1, "2": 1}}',
            '{"description":"d","subject":"s","metadata":{"2":1,"10":1,"b":1000}}',
            id="others keep their order, as far as JavaScript lets them",
        ),
        pytest.param(
            "Bash", '{"command": "ls  # ⟦000001:00:0001⟧"}', '{"command":"ls  # ⟦000001:00:0001⟧"}', id="a tag stays"
        ),
    ],
)
def test_an_input_is_rewritten_before_it_is_sent_again(name: str, raw: str, sent: str) -> None:
    assert js_dump(settled(name, input_of(raw), ROOT, CWD)) == sent


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("Nothing", {}),
        ("Bash", {"cmd": "ls"}),
        ("Bash", {"command": "ls", "more": 1}),
        ("Bash", {"command": 5}),
        ("Bash", {"command": "ls", "timeout": "soon"}),
        ("Bash", {"command": "ls", "run_in_background": "maybe"}),
    ],
)
def test_an_input_that_does_not_fit_is_refused(name: str, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="<tool_use_error>"):
        settled(name, given, ROOT, CWD)


def test_a_tool_that_is_not_offered_is_refused() -> None:
    with pytest.raises(InvalidInput, match="No such tool available: Write"):
        settled("Write", {"file_path": "x", "content": ""}, ("Read",), CWD)


@pytest.mark.parametrize(("raw", "length"), [('{"a', 3), ("[1]", 3), ('{"😀', 4)])
def test_an_input_that_is_no_object_is_kept_raw_with_its_length_in_utf_16(raw: str, length: int) -> None:
    assert input_of(raw) == {"__unparsedToolInput": {"raw": raw, "len": length}}


def test_an_input_without_pieces_is_empty() -> None:
    assert input_of("") == {}
