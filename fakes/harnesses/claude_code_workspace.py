"""A workspace that exists in memory only, and what Claude Code's tools answer there."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from fakes.harnesses.claude_code_inputs import Input
from fakes.harnesses.tools import ToolResult

_SLEEP = re.compile(r"\s*sleep\s+(\d+(?:\.\d+)?)\s*(?:&&|;|$)")
_SILENT = "(Bash completed with no output)"


class ToolFailed(Exception):
    """Raised when a tool ran and failed; its text is the content of an error result."""


@dataclass
class Workspace:
    """The files written so far. ``results`` replaces what a named tool answers: a text, or a function of its input."""

    results: Mapping[str, str | ToolResult] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)

    def run(self, name: str, given: Input) -> str:
        """The content of a success. Raises ``ToolFailed``."""
        result = self.results.get(name)
        if result is not None:
            return result if isinstance(result, str) else result(given)
        if name in ("Write", "Read", "Edit"):
            return self._file(name, given)
        if name == "Bash":
            return _bash(given["command"])
        return "No tasks found" if name == "TaskList" else f"{name}: done."

    def _file(self, name: str, given: Input) -> str:
        path = given["file_path"]
        if name == "Write":
            self.files[path] = given["content"]
            return f"The file {path} has been written."
        if path not in self.files:
            raise ToolFailed(f"The file {path} does not exist.")
        if name == "Read":
            return "\n".join(f"{n}\t{line}" for n, line in enumerate(self.files[path].split("\n"), 1))
        if given["old_string"] not in self.files[path]:
            raise ToolFailed(f"The file {path} does not hold the text to replace.")
        count = -1 if given["replace_all"] else 1
        self.files[path] = self.files[path].replace(given["old_string"], given["new_string"], count)
        return f"The file {path} has been changed."


def duration(name: str, given: Input) -> float:
    """How long a call takes in unscaled seconds, as far as order goes: a refused file is quicker than a process."""
    return (0.01 if name == "Bash" else 0.0) + sleeps(name, given)


def sleeps(name: str, given: Input) -> float:
    """The unscaled seconds that a command sleeps first."""
    slept = _SLEEP.match(str(given.get("command", ""))) if name == "Bash" else None
    return float(slept[1]) if slept else 0.0


def _bash(command: str) -> str:
    """Plays ``sleep N && …``, ``echo``, ``false`` and ``exit N``; a trailing comment is not part of the output."""
    try:
        words = shlex.split(_SLEEP.sub("", command), comments=True)
    except ValueError:
        raise ToolFailed("Exit code 2\nsyntax error") from None
    if words[:1] == ["false"]:
        raise ToolFailed("Exit code 1")
    if words[:1] == ["exit"] and words[1:] != ["0"]:
        raise ToolFailed(f"Exit code {' '.join(words[1:])}")
    return (" ".join(words[1:]).rstrip() if words[:1] == ["echo"] else "") or _SILENT
