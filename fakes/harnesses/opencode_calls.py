"""Tool calls as opencode understands them and sends them again: parsed, repaired, or rewritten to ``invalid``."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fakes.harnesses.chat_answers import Message
from fakes.harnesses.claude_code_json import js_dump, js_parse
from fakes.harnesses.opencode_texts import ABORTED, INVALID, INVALID_RESULT
from fakes.harnesses.tools import Tool


@dataclass(frozen=True)
class Call:
    """A call as it stands in the history. ``answer`` is the result of a call that is not run; None means run it."""

    id: str
    name: str
    value: Any
    answer: str | None = None

    def sent(self) -> dict[str, Any]:
        """Arguments go as ``JSON.stringify`` writes what ``JSON.parse`` read, whatever the model had written."""
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": js_dump(self.value)}}


def understood(call: dict[str, Any], tools: Sequence[Tool]) -> Call:
    """A generated call in chat form as opencode takes it.

    An unknown tool and arguments that do not parse make it a call of ``invalid``, which names the tool and the error;
    a name in the wrong case is repaired; arguments that miss something are kept and answered with the error.
    """
    name, raw = call["function"]["name"], call["function"]["arguments"]
    known = {tool.name: tool for tool in tools}
    tool = known.get(name) or known.get(name.lower())
    if tool is None:
        names = ", ".join(sorted([*known, INVALID]))
        return _invalid(call["id"], name, f"Model tried to call unavailable tool '{name}'. Available tools: {names}.")
    try:
        value = js_parse(raw) if raw.strip() else {}
        js_dump(value)  # Nested too deep to be written again counts as unreadable.
    except (ValueError, RecursionError) as error:
        why = f"JSON parsing failed: Text: {raw}.\nError message: JSON Parse error: {error}"
        return _invalid(call["id"], name, f"Invalid input for tool {tool.name}: {why}")
    missing = [key for key in tool.enforced if key not in value] if isinstance(value, dict) else list(tool.enforced)
    answer = f"The {tool.name} tool was called without {', '.join(missing)}. Call it again with all it needs."
    return Call(call["id"], tool.name, value, answer if missing else None)


def left_behind(partial: Message) -> list[Message]:
    """What a stream that broke off with an error event leaves in the history, once a later attempt succeeded.

    Recorded for text and for a call cut in its arguments: the text is lost, the message stays; the call stays without
    its arguments, answered as aborted. A call whose arguments were whole keeps them: a guess.
    """
    calls = [call for call in partial.get("tool_calls", []) if call["id"] is not None]
    if not calls:
        return [{"role": "assistant", "content": ""}] if partial.get("content") else []
    kept = [Call(call["id"], call["function"]["name"], _as_far_as_it_came(call)).sent() for call in calls]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": ABORTED} for call in calls]
    return [{"role": "assistant", "content": "", "tool_calls": kept}, *results]


def _as_far_as_it_came(call: dict[str, Any]) -> Any:
    try:
        return js_parse(call["function"]["arguments"])
    except (ValueError, RecursionError):
        return {}


def _invalid(id_: str, name: str, error: str) -> Call:
    return Call(id_, INVALID, {"tool": name, "error": error}, INVALID_RESULT + error)
