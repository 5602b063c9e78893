"""When two messages are the same message: what real harnesses do to history that is not an edit.

Two levels. ``normal_form`` is what is left of a message once everything is gone that no harness keeps faithfully
(null against "", string against parts, key order and spelling of arguments, ``name``, ``index``,
``cache_control``, reasoning). ``is_rewrite`` then explains what only a pair of messages shows: the coercions
and defaults that opencode, OpenHands and Claude Code declare.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from conformance.reference.rebuild.nesting import too_deep

Message = Mapping[str, Any]

_UNPARSED = object()
_LINE_END_BLANKS = re.compile(r"[ \t]+$", re.MULTILINE)
_LEADING_CD = re.compile(r"^cd \S+ && ")
_ADDED_DEFAULTS = {"replace_all": "false"}
_MALFORMED_MARKS = ("_openhands_malformed_tool_call", "__unparsedToolInput")
_TRUTH = {"true": True, "false": False}


def same_arguments(emitted: str, echoed: str) -> bool:
    """Whether two argument strings are equal as JSON, numbers by value as ECMAScript has them."""
    return canonical_arguments(emitted) == canonical_arguments(echoed)


def canonical_arguments(arguments: str) -> str:
    """One spelling for all argument strings that mean the same; text that is no JSON stays as it is."""
    value = _parsed(arguments)
    if value is _UNPARSED:
        return arguments
    return json.dumps(value, sort_keys=True)


def _parsed(arguments: str) -> Any:
    if arguments.strip() == "":
        return {}
    try:
        value = json.loads(arguments, parse_int=_number, parse_float=_number)
    except (ValueError, RecursionError):
        return _UNPARSED
    return _UNPARSED if too_deep(value) else value


def _number(text: str) -> float:
    return float(text) + 0.0  # adding zero makes -0.0 the 0 that ECMAScript prints


def plain_text(content: Any) -> str | None:
    """The text of a content, or null where it holds anything but text."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if all(part.get("type") == "text" for part in content):
        return "".join(part["text"] for part in content)
    return None


def normal_content(content: Any) -> Any:
    """Absent, null, empty and blank content are one; a string is its text parts; images stay as they are."""
    text = plain_text(content)
    if text is None:
        return [{k: v for k, v in part.items() if k != "cache_control"} for part in content]
    return "" if text.strip() == "" else text


def normal_form(message: Message) -> dict[str, Any]:
    """What must be equal between a message as it was emitted and as history echoes it."""
    form: dict[str, Any] = {"role": message["role"], "content": normal_content(message.get("content"))}
    if message["role"] == "assistant" and message.get("tool_calls"):
        form["tool_calls"] = [_normal_call(call) for call in message["tool_calls"]]
    if message["role"] == "tool":
        form["tool_call_id"] = message["tool_call_id"]
    return form


def _normal_call(call: Message) -> dict[str, Any]:
    function = call["function"]
    return {
        "id": call["id"],
        "name": function["name"],
        "arguments": canonical_arguments(function["arguments"]),
    }


def is_rewrite(emitted: Message, echoed: Message) -> bool:
    """Whether a declared coercion of a known harness explains how ``emitted`` became ``echoed``."""
    if emitted["role"] != echoed["role"]:
        return False
    if not _same_text(emitted.get("content"), echoed.get("content")):
        return False
    if emitted["role"] == "tool":
        return bool(emitted["tool_call_id"] == echoed["tool_call_id"])
    return _same_calls(emitted.get("tool_calls") or [], echoed.get("tool_calls") or [])


def _same_text(emitted: Any, echoed: Any) -> bool:
    if normal_content(emitted) == normal_content(echoed):
        return True
    ways = _joinings(emitted) & _joinings(echoed)
    return bool(ways)


def _joinings(content: Any) -> set[str]:
    """The strings that harnesses make of a list of text parts: joined, joined by line, blank blocks dropped."""
    if not isinstance(content, list) or plain_text(content) is None:
        text = plain_text(content)
        return set() if text is None else {text}
    texts = [part["text"] for part in content]
    return {"".join(texts), "\n".join(texts), "".join(text for text in texts if text.strip())}


def _same_calls(emitted: list[Message], echoed: list[Message]) -> bool:
    if len(emitted) != len(echoed):
        return False
    left = list(echoed)
    for call in emitted:
        found = next((i for i, other in enumerate(left) if _call_became(call, other)), None)
        if found is None:
            return False
        del left[found]
    return True


def _call_became(emitted: Message, echoed: Message) -> bool:
    if emitted["id"] != echoed["id"]:
        return False
    before, after = emitted["function"], echoed["function"]
    if after["name"] == "invalid":  # opencode: unknown tool or arguments that do not parse
        return _names_the_tool(after["arguments"], before["name"])
    if before["name"].lower() != after["name"].lower():
        return False
    if before["name"] != after["name"] and after["name"] != before["name"].lower():
        return False
    return _arguments_became(before["arguments"], after["arguments"])


def _names_the_tool(arguments: str, name: str) -> bool:
    value = _parsed(arguments)
    return isinstance(value, dict) and value.get("tool") == name and "error" in value


def _arguments_became(emitted: str, echoed: str) -> bool:
    if same_arguments(emitted, echoed):
        return True
    before, after = _parsed(emitted), _parsed(echoed)
    if isinstance(after, dict) and any(mark in after for mark in _MALFORMED_MARKS):
        return not isinstance(before, dict) or "_openhands_malformed_tool_call" in after
    if not isinstance(before, dict) or not isinstance(after, dict):
        return False
    if any(key not in after for key in before):
        return False
    added = [key for key in after if key not in before]
    if any(_ADDED_DEFAULTS.get(key) != json.dumps(after[key]) for key in added):
        return False
    return all(_value_became(key, value, after[key]) for key, value in before.items())


def _value_became(key: str, before: Any, after: Any) -> bool:
    if json.dumps(before, sort_keys=True) == json.dumps(after, sort_keys=True):
        return True
    if not isinstance(before, str):
        return False
    if isinstance(after, bool):
        return _TRUTH.get(before) is after
    return isinstance(after, str) and after in _claude_forms(key, before)


def _claude_forms(key: str, text: str) -> set[str]:
    """What Claude Code makes of an argument: commands lose a leading ``cd`` and a backslash, lines their end blanks."""
    if key == "command":
        here = _LEADING_CD.sub("", text)
        return {here, text.replace("\\\\;", "\\;"), here.replace("\\\\;", "\\;")}
    if key in ("content", "new_string"):
        return {_LINE_END_BLANKS.sub("", text)}
    return set()
