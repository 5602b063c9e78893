"""The tools Codex offers for a model it does not know, and what its own ones answer; nothing is touched."""

import hashlib
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fakes.harnesses.tools import ToolResult

Arguments = dict[str, Any]

AGENTS = "multi_agent_v1"
"""The namespace of the tools that handle sub-agents; sub-agents are not offered it."""

_OF_EXEC = (
    "justification",
    "login",
    "max_output_tokens",
    "prefix_rule",
    "sandbox_permissions",
    "shell",
    "tty",
    "workdir",
    "yield_time_ms",
)
_FUNCTIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "exec_command": (("cmd",), _OF_EXEC),
    "write_stdin": (("session_id",), ("chars", "max_output_tokens", "yield_time_ms")),
    "request_user_input": (("questions",), ()),
    "view_image": (("path",), ()),
    "get_goal": ((), ()),
    "create_goal": (("objective",), ("token_budget",)),
    "update_goal": (("status",), ()),
}
_WHOLE_NUMBERS = ("max_output_tokens", "yield_time_ms")
_AGENT_TOOLS = {
    "close_agent": (("target",), ()),
    "resume_agent": (("id",), ()),
    "send_input": (("target",), ("interrupt", "items", "message")),
    "spawn_agent": ((), ("agent_type", "fork_context", "items", "message", "model")),
    "wait_agent": (("targets",), ("timeout_ms",)),
}
_FIXED = {
    "get_goal": '{"goal":null,"remainingTokens":null,"completionBudgetReport":null}',
    "request_user_input": "request_user_input is unavailable in Default mode",
}


class BadArguments(Exception):
    """Raised when the arguments of a call cannot be read; the sentence is what the model is told."""


def offered(*, with_agents: bool) -> list[dict[str, Any]]:
    """The ``tools`` of a body: functions, the namespace of the agent tools among them, and the hosted search."""
    functions = [_function(name, *arguments) for name, arguments in _FUNCTIONS.items()]
    namespace = {
        "type": "namespace",
        "name": AGENTS,
        "description": "Handle sub-agents.",
        "tools": [_function(name, *arguments) for name, arguments in _AGENT_TOOLS.items()],
    }
    search = {"type": "web_search", "external_web_access": True}
    return [*functions[:4], *([namespace] if with_agents else []), *functions[4:], search]


def arguments_of(raw: str, *, required: tuple[str, ...] = ()) -> Arguments:
    """The arguments of a call. Raises ``BadArguments`` as the real one words it, places aside."""
    try:
        found = json.loads(raw)
    except ValueError as error:
        column = getattr(error, "colno", 0)
        raise BadArguments(f"failed to parse function arguments: expected value at line 1 column {column}") from error
    if not isinstance(found, dict):
        raise BadArguments("failed to parse function arguments: invalid type, expected a map")
    for name in required:
        if name not in found:
            raise BadArguments(
                f"failed to parse function arguments: missing field `{name}` at line 1 column {len(raw)}"
            )
    for name in _WHOLE_NUMBERS:
        if isinstance(found.get(name), float):
            kind = f"floating point `{found[name]}`"
            raise BadArguments(f"failed to parse function arguments: invalid type: {kind}, expected u64")
    return found


@dataclass(frozen=True)
class OwnTools:
    """What the tools that need no other agent answer. ``results`` replaces a named one: a text, or a function."""

    results: Mapping[str, str | ToolResult] = field(default_factory=dict)

    def run(self, name: str, raw: str, call: str) -> str:
        """The output for the model; an unknown tool or bad arguments are told in it."""
        if name not in _FUNCTIONS:
            return f"unsupported call: {name}"
        try:
            arguments = arguments_of(raw, required=_FUNCTIONS[name][0])
        except BadArguments as bad:
            return str(bad)
        result = self.results.get(name)
        if result is not None:
            return result if isinstance(result, str) else result(arguments)
        if name == "exec_command":
            return _executed(str(arguments["cmd"]), call)
        if name == "write_stdin":
            return f"write_stdin failed: Unknown process id {arguments['session_id']}"
        if name == "view_image":
            return f"unable to locate image at `{arguments['path']}`: No such file or directory (os error 2)"
        return _FIXED.get(name, "Done.")


def _executed(command: str, call: str) -> str:
    """Plays ``echo`` and prints nothing else; a trailing comment, where tags ride, is not part of the output."""
    try:
        words, code = shlex.split(command, comments=True), 0
    except ValueError:
        words, code = [], 2
    said = " ".join(words[1:]) + "\n" if words[:1] == ["echo"] else ""
    return (
        f"Chunk ID: {hashlib.sha256(call.encode()).hexdigest()[:6]}\nWall time: 0.0000 seconds\n"
        f"Process exited with code {code}\nOriginal token count: {-(-len(said) // 4)}\nOutput:\n{said}"
    )


def _function(name: str, required: tuple[str, ...], optional: tuple[str, ...]) -> dict[str, Any]:
    return {
        "type": "function",
        "name": name,
        "description": f"The tool {name}.",
        "strict": False,
        "parameters": {
            "type": "object",
            "properties": {argument: {"type": "string"} for argument in sorted((*required, *optional))},
            "required": list(required),
            "additionalProperties": False,
        },
    }
