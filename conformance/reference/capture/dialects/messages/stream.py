"""A message told as the events of a stream."""

from collections.abc import Iterator

from conformance.reference.capture import jsontext
from conformance.reference.capture.dialects.messages.answer import (
    Call,
    content_of,
    ending,
    first_choice,
    opening,
    signature_of,
    usage_of,
)
from conformance.reference.capture.jsontext import JSONObject


def message_stream(view: JSONObject) -> Iterator[bytes]:
    """The frames of a finished answer: the message begins, block after block, the stop reason, the end."""
    content = content_of(view)
    usage = usage_of(view.get("usage"))
    yield begun(view, usage | {"output_tokens": 0})
    index = 0
    if content.thinking:
        yield block_begun(index, THINKING)
        yield thought(index, content.thinking)
        yield signed(index, content.thinking)
        yield block_ended(index)
        index += 1
    if content.text:
        yield block_begun(index, TEXT)
        yield said(index, content.text)
        yield block_ended(index)
        index += 1
    for number, call in enumerate(content.calls, index):
        yield from call_block(number, call)
    yield from ended(ending(first_choice(view), content), usage)


THINKING: JSONObject = {"type": "thinking", "thinking": "", "signature": ""}
TEXT: JSONObject = {"type": "text", "text": ""}


def begun(view: JSONObject, usage: JSONObject) -> bytes:
    """The first event; ``view`` needs only the head of an answer."""
    return event({"type": "message_start", "message": {**opening(view), "usage": usage}})


def block_begun(index: int, block: JSONObject) -> bytes:
    """The start of a block that is still empty."""
    return event({"type": "content_block_start", "index": index, "content_block": block})


def thought(index: int, text: str) -> bytes:
    """Some thinking."""
    return _delta(index, {"type": "thinking_delta", "thinking": text})


def signed(index: int, thinking: str) -> bytes:
    """The signature of all the thinking of a block, its last delta."""
    return _delta(index, {"type": "signature_delta", "signature": signature_of(thinking)})


def said(index: int, text: str) -> bytes:
    """Some text."""
    return _delta(index, {"type": "text_delta", "text": text})


def call_block(index: int, call: Call) -> Iterator[bytes]:
    """A whole call. Clients take the input from the deltas alone; without one it is ``{}``."""
    yield block_begun(index, {"type": "tool_use", "id": call.id, "name": call.name, "input": {}})
    if call.arguments:
        yield _delta(index, {"type": "input_json_delta", "partial_json": call.arguments})
    yield block_ended(index)


def block_ended(index: int) -> bytes:
    """The end of a block. Claude Code runs a tool as soon as it has this."""
    return event({"type": "content_block_stop", "index": index})


def ended(told: JSONObject, usage: JSONObject) -> Iterator[bytes]:
    """Why the message ended, what it cost, and that it has."""
    yield event({"type": "message_delta", "delta": told, "usage": usage})
    yield event({"type": "message_stop"})


def event(data: JSONObject) -> bytes:
    """One frame, named by the type of its data."""
    return f"event: {data['type']}\ndata: ".encode() + jsontext.write(data) + b"\n\n"


def _delta(index: int, delta: JSONObject) -> bytes:
    return event({"type": "content_block_delta", "index": index, "delta": delta})
