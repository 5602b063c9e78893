"""Did a conversation of another dialect reach the engine as the same one in chat form? Never raises on bad messages."""

from collections.abc import Iterable
from typing import Any

from conformance.oracle.conversation import spoken, text_of

JSON = Any


def objects(messages: JSON) -> list[dict[str, JSON]]:
    """The messages that are objects; none where there is no list of them."""
    return [one for one in messages if isinstance(one, dict)] if isinstance(messages, list) else []


def said(messages: JSON) -> list[list[JSON]]:
    """What is said, called and answered, in order; a message that is none of the chat form stands as it is."""
    return [each for one in objects(messages) for each in _said_in(one)]


def assistant_turns(messages: JSON) -> list[list[list[JSON]]]:
    """What is said and called in each assistant message; an empty one is an empty list."""
    return [_said_in(one) for one in objects(messages) if one.get("role") == "assistant"]


def roles_saying(messages: JSON, text: str) -> list[str]:
    """The roles of all messages whose text holds this."""
    return [str(one.get("role")) for one in objects(messages) if text in _text(one)]


def reasoning_before(messages: JSON, text: str) -> str | None:
    """The reasoning, by its new or its old name, of the assistant message that says or calls this."""
    for one in objects(messages):
        if one.get("role") == "assistant" and any(text in each for each in _said_in(one)):
            return one.get("reasoning") or one.get("reasoning_content")
    return None


def calls(sayings: Iterable[list[JSON]]) -> list[list[JSON]]:
    """Only the calls: id, name and arguments."""
    return [each[1:] for each in sayings if each[0] == "call"]


def results(sayings: Iterable[list[JSON]]) -> list[list[JSON]]:
    """Only the results: id and text."""
    return [each[1:] for each in sayings if each[0] == "result"]


def _said_in(message: dict[str, JSON]) -> list[list[JSON]]:
    try:
        return spoken([message])
    except (KeyError, TypeError, AttributeError):
        return [["no chat message", str(message.get("role")), message]]


def _text(message: dict[str, JSON]) -> str:
    try:
        found = text_of(message.get("content"))
    except (TypeError, AttributeError):
        return ""
    return found if isinstance(found, str) else ""
