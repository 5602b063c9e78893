"""What a fake agent's tools are and answer: a pure function of the tool's name and the arguments, touching nothing."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

Arguments = dict[str, Any]
ToolResult = Callable[[Arguments], str]


@dataclass(frozen=True)
class Tool:
    """A tool as the harness offers it: ``required`` and ``optional`` arguments in the schema.

    ``enforced`` are those whose absence the harness really refuses; the others it fills in by itself.
    """

    name: str
    description: str
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    enforced: tuple[str, ...] = ()

    def offered(self) -> dict[str, Any]:
        """The chat-form definition."""
        properties = {name: {"type": "string"} for name in (*self.required, *self.optional)}
        parameters = {"type": "object", "properties": properties, "required": list(self.required)}
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": parameters},
        }


class BadCallError(Exception):
    """Raised when a call cannot be run: arguments that do not parse, an unknown tool, a missing argument."""

    def __init__(self, why: str, *, malformed: bool) -> None:
        super().__init__(why)
        self.malformed = malformed


@dataclass(frozen=True)
class ToolBox:
    """The tools of one agent. ``results`` replaces what a named tool answers: a text, or a function."""

    tools: Sequence[Tool]
    results: Mapping[str, str | ToolResult] = field(default_factory=dict)

    def offered(self) -> list[dict[str, Any]]:
        return [tool.offered() for tool in self.tools]

    def arguments(self, name: str, raw: str) -> Arguments:
        """The parsed arguments of a call. Raises ``BadCallError``."""
        tool = next((tool for tool in self.tools if tool.name == name), None)
        if tool is None:
            raise BadCallError(f"There is no tool named {name}.", malformed=False)
        try:
            arguments = orjson.loads(raw or "{}")
        except ValueError as error:
            raise BadCallError(f"The arguments of {name} are not JSON: {error}", malformed=True) from error
        if not isinstance(arguments, dict):
            raise BadCallError(f"The arguments of {name} are not an object.", malformed=True)
        if missing := [argument for argument in tool.enforced if argument not in arguments]:
            raise BadCallError(f"{name} was called without {', '.join(missing)}.", malformed=False)
        return arguments

    def run(self, name: str, arguments: Arguments) -> str:
        result = self.results.get(name)
        if isinstance(result, str):
            return result
        return (result or _RESULTS.get(name, _done))(arguments)


def _shell(arguments: Arguments) -> str:
    """Plays ``echo`` and prints nothing else; a trailing comment, where tags ride, is not part of the output."""
    try:
        words = shlex.split(str(arguments.get("command", "")), comments=True)
    except ValueError:
        return "syntax error\n[exit code 2]"
    said = " ".join(words[1:]) if words[:1] == ["echo"] else ""
    return f"{said}\n[exit code 0]" if said else "[exit code 0]"


def _edit(arguments: Arguments) -> str:
    return f"{arguments.get('command', 'edit')} {arguments.get('path', 'a file')}: done."


def _think(_: Arguments) -> str:
    return "Your thought has been noted."


def _done(arguments: Arguments) -> str:
    return f"Done, with {len(arguments)} arguments."


_RESULTS: dict[str, ToolResult] = {
    "execute_bash": _shell,
    "terminal": _shell,
    "str_replace_editor": _edit,
    "file_editor": _edit,
    "think": _think,
}
