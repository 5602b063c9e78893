"""The ledger tells a streamed answer as it was streamed, not as a buffered parser would have read it."""

from typing import Any

import pytest

from conformance.oracle.chat_answers import reassemble
from tests.fakes.vllm.wire.conftest import Play

TENANT = {"tool_parser": "hermes", "reasoning_parser": "qwen3"}
TOOL = {"type": "function", "function": {"name": "run", "parameters": {"type": "object", "properties": {}}}}
CALL = {"name": "run", "arguments": {"command": "ls  # {tag}"}}
TURNS: dict[str, dict[str, Any]] = {
    "text": {"text": "{tag} größer 🛠️"},
    "reasoning and text": {"reasoning": "Hm.", "text": "{tag} Yes."},
    "two calls": {"calls": [CALL, CALL]},
    "a call that is no JSON": {"text": "{tag}", "calls": [{"name": "run", "arguments": '{"a": 1, oops}'}]},
    "a call that is cut": {"text": "{tag}", "calls": [{"name": "run", "arguments": '{"a": "lo'}], "finish": "length"},
    "a message of its own": {
        "text": "{tag} x",
        "message": {"content": "{tag} y", "tool_calls": [{"function": {"name": "run", "arguments": '{"a'}}]},
    },
}


@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
def test_the_ledger_has_the_message_that_was_streamed(play: Play, turn: dict[str, Any]) -> None:
    script = play(turn, tenant=TENANT, sampling="drifting")
    told = reassemble(script.ask(stream=True, tools=[TOOL]).text)
    message = script.row()["message"]
    assert list(message)[:2] == ["role", "content"]
    assert (message["content"], message["reasoning"]) == (told.content, told.reasoning)
    assert message.get("tool_calls", []) == told.tool_calls


def test_a_broken_call_is_read_differently_in_a_stream_and_in_a_body(play: Play) -> None:
    script = play(TURNS["a call that is no JSON"], tenant=TENANT, sampling="drifting")
    script.ask(tools=[TOOL])
    assert "tool_calls" not in script.row()["message"]
    script.ask(stream=True, tools=[TOOL])
    assert script.row()["message"]["tool_calls"][0]["function"]["arguments"].startswith('{"a": 1')
