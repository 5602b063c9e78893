"""Answers of the Messages dialect for the scripted server, and who of a session's agents gets which."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.harnesses.conftest import Reply, Seen

Block = dict[str, Any]
USAGE = {"input_tokens": 10, "output_tokens": 5}
NOT_FOUND = Reply(status=405)


def text(said: str) -> Block:
    return {"type": "text", "text": said}


def think(thought: str, signature: str = "c2lnbmF0dXJl") -> Block:
    return {"type": "thinking", "thinking": thought, "signature": signature}


def use(call_id: str, name: str, given: dict[str, Any] | str) -> Block:
    """A call; its input as an object, or as the raw text that the deltas spell."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def bash(call_id: str, command: str, **more: Any) -> Block:
    return use(call_id, "Bash", {"command": command, **more})


def event(kind: str, **data: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()


def events(blocks: Sequence[Block], stop_reason: str | None = None, usage: dict[str, Any] | None = None) -> list[bytes]:
    """The events of an answer, one by one."""
    stop = stop_reason or ("tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn")
    start: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [],
        "usage": usage or USAGE,
    }
    found = [event("message_start", message=start)]
    for index, block in enumerate(blocks):
        found += _block_events(index, block)
    delta = {"stop_reason": stop, "stop_sequence": None}
    return [*found, event("message_delta", delta=delta, usage=usage or USAGE), event("message_stop")]


def _block_events(index: int, block: Block) -> list[bytes]:
    kind = block["type"]
    if kind == "tool_use":
        raw = block["input"] if isinstance(block["input"], str) else json.dumps(block["input"])
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in (raw[:5], raw[5:]) if part]
        opened = block | {"input": {}}
    elif kind == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": block["thinking"]}]
        deltas += [{"type": "signature_delta", "signature": block["signature"]}] if block["signature"] else []
        opened = block | {"thinking": "", "signature": ""}
    elif kind == "text":
        half = len(block["text"]) // 2
        deltas = [{"type": "text_delta", "text": part} for part in (block["text"][:half], block["text"][half:])]
        opened = block | {"text": ""}
    else:
        deltas, opened = [], block
    return [
        event("content_block_start", index=index, content_block=opened),
        *(event("content_block_delta", index=index, delta=delta) for delta in deltas),
        event("content_block_stop", index=index),
    ]


def says(*blocks: Block, stop_reason: str | None = None, usage: dict[str, Any] | None = None) -> Reply:
    """A streamed answer."""
    return stream(events(blocks, stop_reason, usage))


def stream(chunks: Sequence[bytes], *, cut: bool = False) -> Reply:
    """A stream of these events that ends cleanly, or by a lost connection."""
    return Reply(content_type="text/event-stream", chunks=tuple(chunks), how="cut" if cut else "whole")


def buffered(*blocks: Block) -> Reply:
    """The same answer in one piece."""
    stop = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    body = {"id": "msg_1", "type": "message", "role": "assistant", "content": blocks, "stop_reason": stop}
    return Reply(body=json.dumps(body | {"usage": USAGE}).encode())


def refuses(status: int, message: str = "it broke", kind: str = "api_error", **headers: str) -> Reply:
    body = {"type": "error", "error": {"type": kind, "message": message}}
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Reply(status=status, body=json.dumps(body).encode(), headers=named)


@dataclass
class Script:
    """What the model says: to the root, side calls included, in order; and to each sub-agent, known by its prompt."""

    root: list[Reply]
    agents: dict[str, list[Reply]] = field(default_factory=dict)
    _prompts: dict[str, str] = field(default_factory=dict)
    _said: dict[str | None, int] = field(default_factory=dict)

    def __call__(self, seen: Seen) -> Reply:
        if seen.method == "HEAD":
            return NOT_FOUND
        agent_id = agent_of(seen)
        replies = self.root if agent_id is None else self.agents[self.prompt_of(agent_id, seen)]
        number = self._said.setdefault(agent_id, 0)
        self._said[agent_id] += 1
        return replies[min(number, len(replies) - 1)]

    def prompt_of(self, agent_id: str, seen: Seen) -> str:
        first = seen.json()["messages"][0]["content"]
        return self._prompts.setdefault(agent_id, first[-1]["text"])


def agent_of(seen: Seen) -> str | None:
    return dict(seen.headers).get("x-claude-code-agent-id")
