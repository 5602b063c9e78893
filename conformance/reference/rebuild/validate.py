"""Whether one record may be trusted: every promise of ``is_valid`` checked again, each failure naming its rule."""

import math
from typing import Any

from conformance.contract.records import SCHEMA_VERSION
from conformance.reference.rebuild.errors import Rule, TraceError
from conformance.reference.rebuild.rewrites import Message
from conformance.reference.rebuild.turns import Keys, Turn, token_bytes

KNOWN_ROLES = ("system", "developer", "user", "assistant", "tool")
HIGHEST_LOG_PROB = 1e-3
"""Rounding in an engine may lift a log prob a little above 0; more is no log prob."""
NO_ENTRY = -9999.0
"""vLLM's stand-in for a token without a log prob."""


def turn_of(record: Any, session_id: str, keys: Keys) -> Turn:
    """The record as a turn. Raises TraceError naming the rule and, where it has one, the record's uuid."""
    if not isinstance(record, dict):
        raise TraceError(Rule.RECORD_OBJECT, f"a record must be an object, seen {_kind(record)}")
    uuid = record.get("uuid")
    if not isinstance(uuid, str) or not uuid:
        raise TraceError(Rule.UUID, f"uuid must be a non-empty string, seen {_kind(uuid)}")
    try:
        return _turn(record, uuid, session_id, keys)
    except TraceError as error:
        raise TraceError(error.rule, error.message, uuid) from None


def _turn(record: dict[str, Any], uuid: str, session_id: str, keys: Keys) -> Turn:
    _check_head(record, session_id)
    prompt, generation, log_probs = _triple(record)
    _check_usage(record.get("token_count"), len(generation))
    messages, numbers = _messages(record.get("messages"), keys)
    tools = _tools(record)
    extras = _extras(record)
    prompt_bytes = _bytes(Rule.PROMPT_TOKEN_IDS, prompt)
    return Turn(
        uuid=uuid,
        captured_at=_text(record.get("captured_at")) or "",
        session_id=session_id,
        parent_session_id=_text(record.get("parent_session_id")),
        model=record["model"],
        messages=messages,
        exact=tuple(exact for exact, _ in numbers),
        normal=tuple(normal for _, normal in numbers),
        tools=tools,
        tools_key=keys.of_value(tools),
        choice_key=keys.of_value(record.get("tool_choice")),
        prompt=prompt,
        generation=generation,
        log_probs=log_probs,
        prompt_bytes=prompt_bytes,
        history_bytes=prompt_bytes + _bytes(Rule.GENERATION_TOKEN_IDS, generation),
        finish_reason=_text(record.get("finish_reason")),
        reasoning=_text(extras.get("reasoning")) or _spoken_reasoning(messages[-1]),
        agent_id=_text(extras.get("agent_id")),
        parent_agent_id=_text(extras.get("parent_agent_id")),
        native_session_id=_text(extras.get("native_session_id")),
        native_parent_id=_text(extras.get("native_parent_id")),
    )


def _check_head(record: dict[str, Any], session_id: str) -> None:
    version = record.get("schema_version")
    if type(version) is not int or version != SCHEMA_VERSION:
        raise TraceError(Rule.SCHEMA_VERSION, f"schema_version must be {SCHEMA_VERSION}, seen {_shown(version)}")
    if record.get("session_id") != session_id:
        seen = _shown(record.get("session_id"))
        raise TraceError(Rule.SESSION_ID, f"session_id must be {_shown(session_id)} as its envelope says, seen {seen}")
    if record.get("is_valid") is not True:
        raise TraceError(Rule.IS_VALID, f"is_valid must be true, seen {_shown(record.get('is_valid'))}")
    for rule, key in ((Rule.REQUEST_ID, "request_id"), (Rule.MODEL, "model")):
        value = record.get(key)
        if not isinstance(value, str) or not value:
            raise TraceError(rule, f"{key} must be a non-empty string, seen {_shown(value)}")


def _triple(record: dict[str, Any]) -> tuple[list[int], list[int], list[float]]:
    prompt = _ids(Rule.PROMPT_TOKEN_IDS, record.get("prompt_token_ids"))
    generation = _ids(Rule.GENERATION_TOKEN_IDS, record.get("generation_token_ids"))
    log_probs = _log_probs(record.get("generation_log_probs"))
    if len(log_probs) != len(generation):
        raise TraceError(
            Rule.GENERATION_LOG_PROBS,
            f"one log prob a generated id is needed, seen {len(log_probs)} for {len(generation)} ids "
            f"after a prompt of {len(prompt)}",
        )
    return prompt, generation, log_probs


def _ids(rule: Rule, value: Any) -> list[int]:
    if not isinstance(value, list) or not value:
        raise TraceError(rule, f"{rule} must be a non-empty list, seen {_kind(value)}")
    kinds = set(map(type, value))
    if kinds != {int}:
        raise TraceError(rule, f"{rule} must hold integers only, seen {sorted(kind.__name__ for kind in kinds)}")
    if min(value) < 0:
        raise TraceError(rule, f"{rule} must not be negative, seen {min(value)}")
    return value


def _bytes(rule: Rule, ids: list[int]) -> bytes:
    try:
        return token_bytes(ids)
    except OverflowError:
        raise TraceError(rule, f"{rule} must be below 2^63") from None


def _log_probs(value: Any) -> list[float]:
    rule = Rule.GENERATION_LOG_PROBS
    if not isinstance(value, list):
        raise TraceError(rule, f"{rule} must be a list, seen {_kind(value)}")
    kinds = set(map(type, value))
    if not kinds <= {int, float}:
        raise TraceError(rule, f"{rule} must hold numbers only, seen {sorted(kind.__name__ for kind in kinds)}")
    if not all(map(_is_finite, value)):
        raise TraceError(rule, f"{rule} must be finite")
    if max(value, default=0.0) > HIGHEST_LOG_PROB:
        raise TraceError(rule, f"{rule} must not be above {HIGHEST_LOG_PROB}, seen {max(value)}")
    if NO_ENTRY in value:
        raise TraceError(rule, f"{rule} holds {NO_ENTRY}, the engine's stand-in for no entry")
    return value


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def _check_usage(usage: Any, generated: int) -> None:
    counted = usage.get("completion_tokens") if isinstance(usage, dict) else None
    if isinstance(counted, int | float) and not isinstance(counted, bool) and counted > generated:
        raise TraceError(Rule.TOKEN_COUNT, f"usage counts {counted} generated tokens, only {generated} ids are there")


def _messages(value: Any, keys: Keys) -> tuple[list[Message], list[tuple[int, int]]]:
    """The messages with their numbers."""
    if not isinstance(value, list) or not value:
        raise TraceError(Rule.MESSAGES, f"messages must be a non-empty list, seen {_kind(value)}")
    numbers: list[tuple[int, int]] = []
    try:
        numbers.extend(keys.of_message(message, check_message) for message in value)
    except TraceError as error:
        raise TraceError(error.rule, f"messages[{len(numbers)}]: {error.message}") from None
    if value[-1]["role"] != "assistant":
        raise TraceError(Rule.LAST_MESSAGE, f"the last message must be assistant, seen {value[-1]['role']}")
    return value, numbers


def check_message(message: Any) -> None:
    """Raises TraceError where the message is none that a chat request may hold."""
    if not isinstance(message, dict):
        raise TraceError(Rule.MESSAGES, f"a message must be an object, seen {_kind(message)}")
    role = message.get("role")
    if role not in KNOWN_ROLES:
        raise TraceError(Rule.ROLE, f"role must be one of {', '.join(KNOWN_ROLES)}, seen {_shown(role)}")
    _check_content(message.get("content"))
    if role == "assistant":
        _check_calls(message.get("tool_calls"))
    if role == "tool" and not _text(message.get("tool_call_id")):
        raise TraceError(Rule.TOOL_CALL, "tool_call_id must be a non-empty string")


def _check_content(content: Any) -> None:
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list):
        raise TraceError(Rule.CONTENT, f"content must be null, text or parts, seen {_kind(content)}")
    for part in content:
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            raise TraceError(Rule.CONTENT, "content holds a part without a type")
        if part["type"] == "text" and not isinstance(part.get("text"), str):
            raise TraceError(Rule.CONTENT, "content holds a text part without text")


def _check_calls(calls: Any) -> None:
    if calls is None:
        return
    if not isinstance(calls, list):
        raise TraceError(Rule.TOOL_CALL, f"tool_calls must be a list, seen {_kind(calls)}")
    for index, call in enumerate(calls):
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not _text(call.get("id")) or not _text(function.get("name")):
            raise TraceError(Rule.TOOL_CALL, f"tool_calls[{index}] must have an id and a function with a name")
        if not isinstance(function.get("arguments"), str):
            raise TraceError(Rule.TOOL_CALL, f"tool_calls[{index}] must have its arguments as a string")


def _tools(record: dict[str, Any]) -> list[dict[str, Any]]:
    tools = record.get("tools")
    if not isinstance(tools, list):
        raise TraceError(Rule.TOOLS, f"tools must be a list, seen {_kind(tools)}")
    for index, tool in enumerate(tools):
        if not isinstance(tool, dict) or not _text(tool.get("id")):
            raise TraceError(Rule.TOOLS, f"tools[{index}] must be an object with an id")
        schema = tool.get("inputSchema")
        if not isinstance(schema, dict | None):
            raise TraceError(Rule.TOOLS, f"tools[{index}].inputSchema must be an object, seen {_kind(schema)}")
    return tools


def _extras(record: dict[str, Any]) -> dict[str, Any]:
    extras = record.get("x_trackgauge")
    if extras is None:
        return {}
    if not isinstance(extras, dict):
        raise TraceError(Rule.EXTRAS, f"x_trackgauge must be an object, seen {_kind(extras)}")
    return extras


def _spoken_reasoning(message: Message) -> str | None:
    return _text(message.get("reasoning_content")) or _text(message.get("reasoning"))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _kind(value: Any) -> str:
    return "nothing" if value is None else type(value).__name__


def _shown(value: Any) -> str:
    if isinstance(value, str | int | float | bool | None):
        return ascii(value)[:80]
    return _kind(value)
