"""The conversation of a Messages request as chat messages."""

from conformance.reference.capture import jsontext
from conformance.reference.capture.dialects.messages.mistakes import as_list, as_object, as_text, mistake
from conformance.reference.capture.dialects.messages.parts import block_parts, content_of, joined_text, parts_of
from conformance.reference.capture.jsontext import JSON, JSONObject

BETWEEN_SYSTEM_BLOCKS = "\n\n"
BETWEEN_BLOCKS = "\n"
UNSENT_BLOCKS = ("redacted_thinking",)
"""Blocks that hold nothing an engine could read."""


def chat_messages(body: JSONObject) -> list[JSONObject]:
    """All messages of the request, the system prompt first; raises Refusal."""
    turns: list[JSONObject] = []
    if body.get("system") is not None:
        turns += _system_turn(body["system"], "system")
    given = as_list(body.get("messages"), "messages")
    if not given:
        raise mistake("messages", "at least one message is required")
    for number, message in enumerate(given):
        turns += _turns(as_object(message, f"messages.{number}"), f"messages.{number}")
    return turns


def _turns(message: JSONObject, where: str) -> list[JSONObject]:
    role = message.get("role")
    content = message.get("content")
    place = f"{where}.content"
    if not isinstance(content, str | list):
        raise mistake(place, "must be a string or a list of blocks")
    if role == "user":
        return _user_turns(content, place)
    if role == "assistant":
        return [_assistant_turn(content, place)]
    if role == "system":
        return _system_turn(content, place)
    raise mistake(f"{where}.role", "must be 'user', 'assistant' or 'system'")


def _system_turn(content: JSON, where: str) -> list[JSONObject]:
    text = joined_text(content, where, BETWEEN_SYSTEM_BLOCKS)
    return [{"role": "system", "content": text}] if text else []


def _user_turns(content: JSON, where: str) -> list[JSONObject]:
    """Every tool result is a message of its own; what stands between them is a user's message."""
    if isinstance(content, str):
        return [{"role": "user", "content": content}]
    turns: list[JSONObject] = []
    said: list[JSONObject] = []
    for number, given in enumerate(content):
        place = f"{where}.{number}"
        block = as_object(given, place)
        if block.get("type") != "tool_result":
            said += block_parts(block, place)
            continue
        turns += _said(said)
        said = []
        turns.append(_result_turn(block, place))
    turns += _said(said)
    return turns or [{"role": "user", "content": ""}]


def _said(parts: list[JSONObject]) -> list[JSONObject]:
    content = content_of(parts)
    return [{"role": "user", "content": content}] if content else []


def _result_turn(block: JSONObject, where: str) -> JSONObject:
    """``is_error`` has no place in chat; harnesses tell the error in the text as well."""
    tool_call_id = as_text(block.get("tool_use_id"), f"{where}.tool_use_id")
    content = content_of(parts_of(block.get("content"), f"{where}.content"))
    return {"role": "tool", "tool_call_id": tool_call_id, "content": content}


def _assistant_turn(content: JSON, where: str) -> JSONObject:
    """Text, thoughts and calls, each in order: chat has a place of its own for each of them."""
    if isinstance(content, str):
        return {"role": "assistant", "content": content}
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[JSONObject] = []
    for number, given in enumerate(content):
        place = f"{where}.{number}"
        block = as_object(given, place)
        kind = block.get("type")
        if kind == "text":
            texts.append(as_text(block.get("text"), f"{place}.text"))
        elif kind == "thinking":
            thoughts.append(as_text(block.get("thinking"), f"{place}.thinking"))
        elif kind == "tool_use":
            calls.append(_tool_call(block, place))
        elif kind not in UNSENT_BLOCKS:
            allowed = "text, thinking, redacted_thinking, tool_use"
            raise mistake(f"{place}.type", f"the engine cannot be shown this block of an answer; allowed: {allowed}")
    text = BETWEEN_BLOCKS.join(one for one in texts if one)
    turn: JSONObject = {"role": "assistant", "content": text or (None if calls else "")}
    if any(thoughts):
        turn["reasoning"] = BETWEEN_BLOCKS.join(one for one in thoughts if one)
    if calls:
        turn["tool_calls"] = calls
    return turn


def _tool_call(block: JSONObject, where: str) -> JSONObject:
    """``input`` keeps the order of its keys, and is spelled as models and chat templates spell arguments."""
    arguments = jsontext.spaced(as_object(block.get("input"), f"{where}.input"))
    function = {"name": as_text(block.get("name"), f"{where}.name"), "arguments": arguments}
    return {"id": as_text(block.get("id"), f"{where}.id"), "type": "function", "function": function}
