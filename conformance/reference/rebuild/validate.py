"""Whether one record may be trusted: every promise of ``is_valid`` checked again, each failure naming its rule."""

import math
from array import array
from typing import Any

from conformance.contract.records import SCHEMA_VERSION
from conformance.reference.rebuild.errors import Rule, TraceError
from conformance.reference.rebuild.repeats import Cut
from conformance.reference.rebuild.rewrites import Message
from conformance.reference.rebuild.tokens import Node, TokenTree, token_bytes
from conformance.reference.rebuild.turns import Keys, Messages, Turn

KNOWN_ROLES = ("system", "developer", "user", "assistant", "tool")
HIGHEST_LOG_PROB = 1e-3
"""Rounding in an engine may lift a log prob a little above 0; more is no log prob."""
AGENT_IDS = ("agent_id", "parent_agent_id", "native_session_id", "native_parent_id")
NO_ENTRY = -9999.0
"""vLLM's stand-in for a token without a log prob."""


def turn_of(record: Any, session_id: str, keys: Keys, tree: TokenTree, cut: Cut | None = None) -> Turn:
    """The record as a turn. Raises TraceError naming the rule and, where it has one, the record's uuid.

    ``cut`` is what the record lacks because earlier ones had it already.
    """
    if not isinstance(record, dict):
        raise TraceError(Rule.RECORD_OBJECT, f"a record must be an object, seen {_kind(record)}")
    uuid = record.get("uuid")
    if not isinstance(uuid, str) or not uuid:
        raise TraceError(Rule.UUID, f"uuid must be a non-empty string, seen {_kind(uuid)}")
    try:
        return _turn(record, uuid, session_id, keys, tree, cut)
    except TraceError as error:
        raise TraceError(error.rule, error.message, uuid) from None


def _turn(record: dict[str, Any], uuid: str, session_id: str, keys: Keys, tree: TokenTree, cut: Cut | None) -> Turn:
    _check_head(record, session_id)
    prompt_end = cut.prompt if cut else _prompt(record, tree)
    generation, log_probs = _generated(record, prompt_end.depth)
    _check_usage(record.get("token_count"), len(generation))
    exact = _numbers(cut.new, keys, cut.known) if cut else _numbers(record.get("messages"), keys, array("I"))
    messages = Messages(keys, exact)
    tools = _tools(record)
    tools_key = keys.of_value(tools)
    extras = _extras(record)
    sampled = _bytes(Rule.GENERATION_TOKEN_IDS, generation)
    turn = Turn(
        uuid=uuid,
        captured_at=_text(record.get("captured_at")) or "",
        session_id=session_id,
        parent_session_id=_text(record.get("parent_session_id")),
        request_id=record["request_id"],
        model=record["model"],
        messages=messages,
        exact=exact,
        normal=array("I", map(keys.normal_of_exact.__getitem__, exact)),
        tools=keys.tools.setdefault(tools_key, tools),
        tools_key=tools_key,
        choice_key=keys.of_value(record.get("tool_choice")),
        prompt_end=prompt_end,
        history_end=tree.extend(prompt_end, prompt_end.depth, sampled),
        generation=generation,
        log_probs=log_probs,
        finish_reason=_text(record.get("finish_reason")),
        reasoning=_text(extras.get("reasoning")) or _spoken_reasoning(messages[-1]),
        agent_id=_text(extras.get("agent_id")),
        parent_agent_id=_text(extras.get("parent_agent_id")),
        native_session_id=_text(extras.get("native_session_id")),
        native_parent_id=_text(extras.get("native_parent_id")),
    )
    turn.history_end.ended.append(turn)
    return turn


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


def _prompt(record: dict[str, Any], tree: TokenTree) -> Node:
    return tree.add(_bytes(Rule.PROMPT_TOKEN_IDS, _ids(Rule.PROMPT_TOKEN_IDS, record.get("prompt_token_ids"))))


def _generated(record: dict[str, Any], prompt_length: int) -> tuple[list[int], list[float]]:
    generation = _ids(Rule.GENERATION_TOKEN_IDS, record.get("generation_token_ids"))
    log_probs = _log_probs(record.get("generation_log_probs"))
    if len(log_probs) != len(generation):
        raise TraceError(
            Rule.GENERATION_LOG_PROBS,
            f"one log prob a generated id is needed, seen {len(log_probs)} for {len(generation)} ids "
            f"after a prompt of {prompt_length}",
        )
    return generation, log_probs


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


def _numbers(value: Any, keys: Keys, known: "array[int]") -> "array[int]":
    """The exact numbers of the messages: those that are ``known``, and those of ``value`` after them."""
    if not isinstance(value, list) or not (value or known):
        raise TraceError(Rule.MESSAGES, f"messages must be a non-empty list, seen {_kind(value)}")
    numbers = array("I", known)
    try:
        numbers.extend(keys.of_message(message, check_message)[0] for message in value)
    except TraceError as error:
        raise TraceError(error.rule, f"messages[{len(numbers)}]: {error.message}") from None
    last = keys.messages[numbers[-1]]
    if last["role"] != "assistant":
        raise TraceError(Rule.LAST_MESSAGE, f"the last message must be assistant, seen {last['role']}")
    return numbers


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
    for key in AGENT_IDS:
        if not isinstance(extras.get(key), str | None):
            raise TraceError(Rule.EXTRAS, f"x_trackgauge.{key} must be a string, seen {_kind(extras[key])}")
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
