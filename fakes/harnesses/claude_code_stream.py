"""How Claude Code reads an answer of the Messages dialect: event by event, or whole."""

from dataclasses import dataclass, field
from typing import Any

import orjson

from fakes.harnesses.chat_answers import Message
from fakes.harnesses.claude_code_history import Block
from fakes.harnesses.claude_code_inputs import input_of
from fakes.harnesses.claude_code_json import js_dump, js_parse
from fakes.harnesses.sse import Event

_TOKENS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


@dataclass
class Answer:
    """An answer as far as it came, in the form in which the history will hold it.

    ``blocks`` are those that came to their end, ``half`` the one that did not, ``error`` what an error event said.
    """

    blocks: list[Block] = field(default_factory=list)
    half: Block | None = None
    stop_reason: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    opened: bool = False
    events: int = 0
    error: str | None = None

    @property
    def message(self) -> Message | None:
        """The assistant message, or None where nothing of one came."""
        whole = bool(self.blocks) or self.stop_reason is not None
        return {"role": "assistant", "content": self.blocks, "stop_reason": self.stop_reason} if whole else None

    @property
    def calls(self) -> list[Block]:
        return [block for block in self.blocks if block["type"] == "tool_use"]

    @property
    def text(self) -> str:
        return "".join(block["text"] for block in self.blocks if block["type"] == "text")

    @property
    def tokens(self) -> int:
        """All tokens that the usage tells of, in and out."""
        counts = [self.usage.get(name) for name in _TOKENS]
        return sum(count for count in counts if isinstance(count, int))


class AnswerReader:
    """Feed it the events of a stream; unknown ones, pings and further keys are passed over."""

    def __init__(self) -> None:
        self.answer = Answer()
        self._raw = ""

    def feed(self, event: Event) -> Block | None:
        """Take one event; the tool call that it completes, if it does."""
        answer = self.answer
        answer.events += 1
        data = _object(event.data)
        kind = data.get("type", event.event)
        if kind == "message_start":
            answer.usage |= _dict(_dict(data.get("message")).get("usage"))
        elif kind == "content_block_start":
            answer.opened = True
            self._raw = ""
            answer.half = _started(_dict(data.get("content_block")))
        elif kind == "content_block_delta":
            self._grow(_dict(data.get("delta")))
        elif kind == "content_block_stop":
            return self._finish()
        elif kind == "message_delta":
            answer.stop_reason = _dict(data.get("delta")).get("stop_reason", answer.stop_reason)
            answer.usage |= _dict(data.get("usage"))
        elif kind == "error":
            answer.error = _error(data)
        return None

    def _grow(self, delta: dict[str, Any]) -> None:
        half = self.answer.half
        kind = delta.get("type")
        if half is None:
            return
        if kind == "input_json_delta":
            self._raw += str(delta.get("partial_json", ""))
            return
        name = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}.get(str(kind))
        if name is not None and name in half:
            half[name] += str(delta.get(name, ""))

    def _finish(self) -> Block | None:
        block, self.answer.half = self.answer.half, None
        if block is None:
            return None
        if block["type"] == "tool_use":
            block["input"] = input_of(self._raw)
        self.answer.blocks.append(block)
        return block if block["type"] == "tool_use" else None


def whole_answer(body: bytes) -> Answer:
    """A buffered answer. One that is not a message has an ``error``."""
    try:
        parsed = js_parse(body.decode())
    except ValueError as error:
        return Answer(error=f"body is not JSON: {error}")
    if not isinstance(parsed, dict) or not isinstance(parsed.get("content"), list):
        return Answer(error="body is not a message")
    blocks = []
    for given in parsed["content"]:
        block = _started(_dict(given)) | {key: value for key, value in _dict(given).items() if key in _KEPT}
        if block["type"] == "tool_use" and not isinstance(block["input"], dict):
            block["input"] = input_of(js_dump(block["input"]))
        blocks.append(block)
    return Answer(blocks=blocks, stop_reason=parsed.get("stop_reason"), usage=_dict(parsed.get("usage")))


def error_said(body: bytes) -> str:
    """The message of an error body; empty when it has none."""
    data = _object(body)
    return _error(data) if data else body.decode(errors="replace")[:200]


_KEPT = {"text", "thinking", "signature", "data", "input"}


def _started(given: dict[str, Any]) -> Block:
    """A block at its start. The input of a call that stands here is not read: only its deltas count."""
    kind = str(given.get("type"))
    if kind == "tool_use":
        return {"type": kind, "id": str(given.get("id")), "name": str(given.get("name")), "input": {}}
    if kind == "thinking":
        return {"type": kind, "thinking": str(given.get("thinking", "")), "signature": str(given.get("signature", ""))}
    if kind == "redacted_thinking":
        return {"type": kind, "data": str(given.get("data", ""))}
    return {"type": "text", "text": str(given.get("text") or "")} if kind == "text" else dict(given) | {"type": kind}


def _error(data: dict[str, Any]) -> str:
    error = data.get("error")
    return str(error.get("message", error)) if isinstance(error, dict) else str(error or data)


def _object(text: str | bytes) -> dict[str, Any]:
    try:
        return _dict(orjson.loads(text))
    except ValueError:
        return {}


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
