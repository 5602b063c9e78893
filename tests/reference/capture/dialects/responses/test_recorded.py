"""The requests that the real Codex was recorded to send."""

import json
from pathlib import Path

import pytest

from tests.reference.capture.dialects.responses.speaking import JSON, streamed
from tests.reference.capture.running import Proxy
from tests.reference.capture.scripted_engine import ScriptedEngine

pytestmark = pytest.mark.unit

DATA = Path(__file__).parents[4] / "data" / "codex"
SPAWN = {"type": "function", "name": "spawn_agent", "strict": False, "parameters": {"type": "object"}}


def filled(body: JSON) -> JSON:
    """A recorded shape with something in the places that the recording blanked."""
    for tool in body["tools"]:
        if tool["type"] == "function":
            tool["parameters"] = {"type": "object"}
        elif tool["type"] == "namespace":
            tool["tools"] = [SPAWN]
    for item in body["input"]:
        if item["type"] == "function_call":
            item["arguments"] = '{"cmd": "echo hi"}'
    return body


def recorded(name: str) -> list[JSON]:
    return list(json.loads((DATA / f"{name}.json").read_text())["requests"])


def send(proxy: Proxy, request: JSON) -> JSON:
    headers = {key: value for key, value in request["headers"] if key not in ("content-length", "host")}
    return streamed(
        proxy.call(request["method"], request["path"], json.dumps(filled(request["body_shape"])).encode(), headers)
    )


@pytest.mark.parametrize("name", ["codex_exec", "codex_err500"])
def test_each_recorded_request_is_answered_with_a_complete_stream(
    name: str, proxy: Proxy, engine: ScriptedEngine
) -> None:
    routed = recorded(name)
    for request in routed:
        request["body_shape"]["model"] = "policy"
        assert send(proxy, request)["status"] == "completed"
    assert len(engine.chats()) == len(routed)


def test_a_recorded_tool_turn_is_one_assistant_turn_and_its_result(
    proxy: Proxy, engine: ScriptedEngine, session: str
) -> None:
    request = recorded("codex_exec")[1]
    request["body_shape"]["model"] = "policy"
    request["headers"] = [[key, session if key == "session-id" else value] for key, value in request["headers"]]
    request["headers"] = [[key, value] for key, value in request["headers"] if key != "x-session-id"]
    response = send(proxy, request)
    asked = engine.chats()[0].body
    roles = [message["role"] for message in asked["messages"]]
    assert roles == ["developer", "developer", "user", "user", "assistant", "tool"]
    call = asked["messages"][4]["tool_calls"][0]
    assert call["function"] == {"name": "exec_command", "arguments": '{"cmd": "echo hi"}'}
    assert asked["messages"][5]["tool_call_id"] == call["id"]
    names = [tool["function"]["name"] for tool in asked["tools"]]
    assert names[:2] == ["exec_command", "write_stdin"]
    assert "multi_agent_v1__spawn_agent" in names
    assert "web_search" not in [tool["type"] for tool in response["tools"]]
    assert not {"client_metadata", "prompt_cache_key", "include", "store", "reasoning", "input"} & set(asked)
    assert [one["session_id"] for one in proxy.records(session)] == [session]
