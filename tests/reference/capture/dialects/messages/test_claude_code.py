"""Requests that the real Claude Code sent: each is translated, and a conversation's prompt only ever grows."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.reference.capture.dialects.messages.request import chat_request

pytestmark = pytest.mark.unit

JSON = Any
RECORDINGS = sorted((Path(__file__).parents[4] / "data" / "claude_code").glob("*.json"))
GROWING = ("basic", "parallel", "thinking", "bgagent", "nested", "subagent", "streamexec", "multi_b", "prefix")
ROLES = {"system", "user", "assistant", "tool"}


def requests_of(path: Path) -> Iterator[tuple[str, JSON]]:
    """The bodies of a recording and who sent each; texts are placeholders, tools given once are restored."""
    tools: dict[int, JSON] = {}
    for number, request in enumerate(json.loads(path.read_text())["requests"], 1):
        body = request.get("body_shape")
        if not isinstance(body, dict) or "messages" not in body:
            continue
        agent = next((value for name, value in request["headers"] if name == "x-claude-code-agent-id"), "")
        if isinstance(body.get("tools"), str):
            body["tools"] = tools[int(body["tools"].rpartition("=")[2].rstrip(">"))]
        tools[request.get("n", number)] = body.get("tools")
        yield agent, body


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_every_recorded_request_is_translated(path: Path) -> None:
    bodies = [body for _, body in requests_of(path)]
    assert bodies
    for body in bodies:
        sent = chat_request(body)
        assert {message["role"] for message in sent["messages"]} <= ROLES
        assert sent["max_completion_tokens"] == body["max_tokens"]
        assert not {"metadata", "thinking", "context_management", "output_config", "system"} & set(sent)
        named = [tool["name"] for tool in body.get("tools") or [] if "type" not in tool]
        assert [tool["function"]["name"] for tool in sent.get("tools", [])] == named
        results = [b["tool_use_id"] for b in blocks_of(body) if b["type"] == "tool_result"]
        assert [m["tool_call_id"] for m in sent["messages"] if m["role"] == "tool"] == results
        calls = [b["id"] for b in blocks_of(body) if b["type"] == "tool_use"]
        assert [c["id"] for m in sent["messages"] for c in m.get("tool_calls", [])] == calls


@pytest.mark.parametrize("name", GROWING)
def test_the_history_of_a_conversation_is_translated_the_same_every_time(name: str) -> None:
    (path,) = [path for path in RECORDINGS if path.stem == name]
    histories: dict[str, list[JSON]] = {}
    grown = 0
    for agent, body in requests_of(path):
        told = [message for message in chat_request(body)["messages"] if message["role"] != "system"]
        before = histories.get(agent, [])
        assert told[: len(before)] == before
        grown += len(before) > 0
        histories[agent] = told
    assert grown >= 1


def blocks_of(body: JSON) -> list[JSON]:
    return [
        block for message in body["messages"] if isinstance(message["content"], list) for block in message["content"]
    ]
