"""What opencode offers and says by itself: its tools by agent, its system prompts and its fixed messages.

The wording is this project's own, but for what others recognise it by: the title call's system prompt names itself a
title generator, and the compacted history opens with the recorded question.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fakes.harnesses.tools import Arguments, Tool, ToolResult

VERSION = "1.18.33"
SCHEMA = "https://json-schema.org/draft/2020-12/schema"


def _tool(name: str, description: str, required: tuple[str, ...], *optional: str) -> Tool:
    return Tool(name, description, required, optional, enforced=required)


BASH = _tool("bash", "Run a command.", ("command",), "timeout", "workdir")
EDIT = _tool("edit", "Replace a text in a file.", ("filePath", "oldString", "newString"), "replaceAll")
GLOB = _tool("glob", "Find files by name.", ("pattern",), "path")
GREP = _tool("grep", "Find text in files.", ("pattern",), "path", "include")
QUESTION = _tool("question", "Ask the user.", ("questions",))
READ = _tool("read", "Read a file.", ("filePath",), "offset", "limit")
SKILL = _tool("skill", "Load a skill.", ("name",))
TASK = _tool("task", "Give a task to a subagent.", ("description", "prompt", "subagent_type"), "task_id", "command")
TODOWRITE = _tool("todowrite", "Keep the list of things to do.", ("todos",))
WEBFETCH = _tool("webfetch", "Fetch a page.", ("url",), "format", "timeout")
WRITE = _tool("write", "Write a file.", ("content", "filePath"))

TOOLS = (BASH, EDIT, GLOB, GREP, QUESTION, READ, SKILL, TASK, TODOWRITE, WEBFETCH, WRITE)
"""In the order of the wire: by name."""


@dataclass(frozen=True)
class Kind:
    """One of opencode's agents: its system prompt, and the tools it goes without."""

    system: str
    without: frozenset[str] = frozenset()

    def tools(self, *, question: bool) -> tuple[Tool, ...]:
        """``question`` is offered by the server and in a forked session, never by the plain command."""
        hidden = self.without if question else self.without | {QUESTION.name}
        return tuple(tool for tool in TOOLS if tool.name not in hidden)


_SYSTEM = "You are a coding agent that works with the tools it is given."
_EXPLORER = "You look through a code base and report what you find."

BUILD = Kind(_SYSTEM)
SUBAGENTS: Mapping[str, Kind] = {
    "general": Kind(_SYSTEM, frozenset({TASK.name})),
    "explore": Kind(_EXPLORER, frozenset({TASK.name, TODOWRITE.name})),
}

TITLE_SYSTEM = "You are a title generator. Answer with one short line that names the conversation."
TITLE_REQUEST = "Generate a title for this conversation:\n"
SUMMARY_SYSTEM = "You shorten the record of a coding session so that the work can go on from your summary alone."
SUMMARY_REQUEST = "Write down what was asked, what was done, and what comes next."
COMPACTED = "What did we do so far?"
CONTINUE = "Go on if there are further steps to take; if you are unsure how, stop and ask."
OVERFLOWED = "The last request was too large, probably by its attachments; they were taken out. "

ABORTED = "Tool execution aborted"
INVALID = "invalid"
INVALID_RESULT = "The arguments provided to the tool are invalid: "


def offered(tool: Tool) -> dict[str, Any]:
    """The chat-form definition, its parameters opened by ``$schema``."""
    function = tool.offered()["function"]
    return {"type": "function", "function": function | {"parameters": {"$schema": SCHEMA, **function["parameters"]}}}


def _bash(arguments: Arguments) -> str:
    """Plays ``echo`` and prints nothing else; a trailing comment, where tags ride, is not part of the output."""
    try:
        words = shlex.split(str(arguments["command"]), comments=True)
    except ValueError:
        return "syntax error"
    return f"{' '.join(words[1:])}\n" if words[:1] == ["echo"] else "(no output)"


def _read(arguments: Arguments) -> str:
    return f"<path>{arguments['filePath']}</path>\n<content>\n1: one line\n</content>"


RESULTS: Mapping[str, str | ToolResult] = {
    "bash": _bash,
    "read": _read,
    "edit": "Edit applied successfully.",
    "write": "Wrote file successfully.",
}
