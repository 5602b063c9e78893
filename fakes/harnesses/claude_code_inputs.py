"""What Claude Code makes of a tool call's input before it runs it and sends it back: checked, coerced, rewritten."""

import re
from collections.abc import Callable, Collection
from typing import Any

from fakes.harnesses.claude_code_json import js_parse
from fakes.harnesses.claude_code_tools import TOOLS

Input = dict[str, Any]

_TRAILING_BLANKS = re.compile(r"[ \t]+(?=\r?\n|$)")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_BASH_ORDER = ("command", "description", "timeout", "run_in_background", "dangerouslyDisableSandbox")


class InvalidInput(Exception):
    """Raised when a call is not run; its text is the content of the result."""

    def __init__(self, why: str) -> None:
        super().__init__(f"<tool_use_error>{why}</tool_use_error>")


def input_of(raw: str) -> Input:
    """The input that the streamed pieces spell, as it will stand in the history. No pieces at all are an empty one."""
    try:
        parsed = js_parse(raw or "{}")
    except ValueError:
        parsed = None
    return parsed if isinstance(parsed, dict) else {"__unparsedToolInput": {"raw": raw, "len": _js_length(raw)}}


def _js_length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def settled(name: str, given: Input, offered: Collection[str], cwd: str) -> Input:
    """The input as it is run and sent back. Raises ``InvalidInput``; what was given then stays as it is."""
    if name not in offered:
        raise InvalidInput(f"Error: No such tool available: {name}")
    tool = TOOLS[name]
    if missing := [key for key in tool.required if key not in given]:
        raise InvalidInput(f"InputValidationError: {name} lacks {', '.join(missing)}")
    if unknown := [key for key in given if key not in tool.properties]:
        raise InvalidInput(f"InputValidationError: {name} does not know {', '.join(unknown)}")
    if wrong := [key for key, value in given.items() if not _fits(value, tool.properties[key])]:
        raise InvalidInput(f"InputValidationError: {name} has {', '.join(wrong)} of another type")
    rewrite = _REWRITTEN.get(name)
    return rewrite(given, cwd) if rewrite else given


def _fits(value: Any, kind: str) -> bool:
    if kind == "boolean":
        return isinstance(value, bool) or value in ("true", "false")
    if kind == "number":
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number or (isinstance(value, str) and _NUMBER.fullmatch(value) is not None)
    expected = {"string": str, "array": list, "object": dict}[kind]
    return isinstance(value, expected)


def _bash(given: Input, cwd: str) -> Input:
    command = given["command"].removeprefix(f"cd {cwd} && ").replace("\\\\;", "\\;")
    return _in_order(given | {"command": command}, _BASH_ORDER, TOOLS["Bash"].properties)


def _write(given: Input, _: str) -> Input:
    content = _TRAILING_BLANKS.sub("", given["content"])
    return {"file_path": given["file_path"], "content": content}


def _edit(given: Input, _: str) -> Input:
    whole = {"replace_all": False} | given | {"new_string": _TRAILING_BLANKS.sub("", given["new_string"])}
    return _in_order(whole, ("replace_all", "file_path", "old_string", "new_string"), TOOLS["Edit"].properties)


def _in_order(given: Input, order: tuple[str, ...], kinds: dict[str, str]) -> Input:
    return {key: _coerced(given[key], kinds[key]) for key in order if key in given}


def _coerced(value: Any, kind: str) -> Any:
    if not isinstance(value, str) or kind == "string":
        return value
    return value == "true" if kind == "boolean" else js_parse(value)


_REWRITTEN: dict[str, Callable[[Input, str], Input]] = {"Bash": _bash, "Write": _write, "Edit": _edit}
"""Read, TaskCreate, Agent and all others keep the model's own order and types."""
