"""What a client of the Responses dialect sees: whole or streamed, complete, cut or failed."""

import json
import threading
from typing import Any

import pytest

from conformance.reference.capture.dialects.responses.dialect import Responses
from tests.reference.capture.dialects.responses.speaking import (
    JSON,
    events_in,
    events_of,
    respond,
    response_of,
    said,
    streamed,
    told,
)
from tests.reference.capture.running import Proxy
from tests.reference.capture.scripted_engine import Answer, ScriptedEngine, completion, with_choice, with_message

pytestmark = pytest.mark.unit

CALLS = [
    {"id": "chatcmpl-tool-1", "type": "function", "function": {"name": "run", "arguments": '{"z": 1.0, "a": "ü\\n"}'}},
    {"id": "functions.run:1", "type": "function", "function": {"name": "run", "arguments": ""}},
]
CUT_CALL = CALLS[0] | {"function": {"name": "run", "arguments": '{"a'}}
LARGE_CALL = CALLS[0] | {"function": {"name": "run", "arguments": "x" * 2**20}}
TURNS: dict[str, tuple[JSON, list[str]]] = {
    "text": (with_message(content="Ünï 💥\n\n"), ["message"]),
    "thought": (with_message(content="x", reasoning="Hm.\n"), ["reasoning", "message"]),
    "old_thought": (with_message(content="x", reasoning=None, reasoning_content="Hm."), ["reasoning", "message"]),
    "thought_twice_named": (with_message(reasoning="Hm.", reasoning_content="Hm."), ["reasoning", "message"]),
    "only_thought": (with_message(content=None, reasoning="Hm."), ["reasoning"]),
    "calls": (with_message(content=None, tool_calls=CALLS), ["function_call", "function_call"]),
    "text_and_calls": (with_message(content="\n\n", tool_calls=CALLS), ["message", "function_call", "function_call"]),
    "large": (with_message(content=None, tool_calls=[LARGE_CALL]), ["function_call"]),
    "nothing": (with_message(content=""), ["message"]),
    "null": (with_message(content=None), ["message"]),
    "refusal": (with_message(content="So: ", refusal="No."), ["message"]),
    "surrogate": (with_message(content="\ud83d"), ["message"]),
    "parts": (with_message(content=[{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), ["message"]),
}


@pytest.mark.parametrize("name", TURNS)
def test_a_stream_and_a_whole_answer_say_the_same(
    name: str, proxy: Proxy, engine: ScriptedEngine, session: str
) -> None:
    answer, kinds = TURNS[name]
    engine.plan(answer, answer)
    whole = response_of(respond(proxy, session))
    assert [item["type"] for item in whole["output"]] == kinds
    assert said(streamed(respond(proxy, session, stream=True))) == said(whole)
    assert whole["status"] == "completed"


def test_text_reasoning_and_arguments_are_the_engines_to_the_letter(
    proxy: Proxy, engine: ScriptedEngine, session: str
) -> None:
    engine.plan(with_message(content=" Ünï\n", reasoning="Hm.\n", tool_calls=CALLS))
    thought, message, first, second = response_of(respond(proxy, session))["output"]
    assert thought["summary"] == [{"type": "summary_text", "text": "Hm.\n"}]
    assert message["content"][0]["text"] == " Ünï\n"
    assert (first["call_id"], first["arguments"]) == ("chatcmpl-tool-1", '{"z": 1.0, "a": "ü\\n"}')
    assert (second["call_id"], second["arguments"]) == ("functions.run:1", "")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("finish", "status", "details"),
    [
        ("stop", "completed", None),
        ("tool_calls", "completed", None),
        ("length", "incomplete", {"reason": "max_output_tokens"}),
        ("content_filter", "incomplete", {"reason": "content_filter"}),
        ("abort", "failed", None),
        ("error", "failed", None),
        (None, "failed", None),
    ],
)
def test_only_a_generation_that_ended_by_itself_is_complete(
    finish: str | None, status: str, details: JSON, stream: bool, proxy: Proxy, engine: ScriptedEngine, session: str
) -> None:
    message = {"role": "assistant", "content": "I", "tool_calls": [CUT_CALL]}
    engine.plan(with_choice(finish_reason=finish, message=message))
    reply = respond(proxy, session, stream=stream)
    response = streamed(reply) if stream else response_of(reply)
    assert (response["status"], response["incomplete_details"]) == (status, details)
    assert (response["error"] is not None) == (status == "failed")
    expected = "completed" if status == "completed" else "incomplete"
    assert [item["status"] for item in response["output"]] == ["completed", expected]
    assert response["output"][1]["arguments"] == '{"a'


def test_usage_has_the_engines_numbers(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    counts = {
        "prompt_tokens": 20,
        "completion_tokens": 3,
        "total_tokens": 23,
        "prompt_tokens_details": {"cached_tokens": 16},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    engine.plan(completion(usage=counts), completion(usage=counts), completion(usage={"prompt_tokens": "x"}))
    usage = response_of(respond(proxy, session))["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (20, 3, 23)
    assert usage["input_tokens_details"]["cached_tokens"] == 16
    assert usage["output_tokens_details"]["reasoning_tokens"] == 2
    assert streamed(respond(proxy, session, stream=True))["usage"] == usage
    assert response_of(respond(proxy, session))["usage"] is None


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_no_field_of_the_engine_is_seen(proxy: Proxy, session: str, stream: bool) -> None:
    text = respond(proxy, session, stream=stream, return_token_ids=True, top_logprobs=1).raw.decode()
    for field in ("token_ids", "generation", "routed_experts", "prompt_text", "metrics", "-0.6457"):
        assert field not in text


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_call_of_a_namespace_comes_back_as_it_was_offered(
    proxy: Proxy, engine: ScriptedEngine, session: str, stream: bool
) -> None:
    members = [{"type": "function", "name": "spawn_agent", "strict": False, "parameters": {"type": "object"}}]
    space = {"type": "namespace", "name": "multi_agent_v1", "description": "d", "tools": members}
    call = {"id": "c", "type": "function", "function": {"name": "multi_agent_v1__spawn_agent", "arguments": "{}"}}
    engine.plan(with_message(content=None, tool_calls=[call, CALLS[0]]))
    reply = respond(proxy, session, stream=stream, tools=[space, {"type": "web_search"}])
    response = streamed(reply) if stream else response_of(reply)
    assert [(item.get("namespace"), item["name"]) for item in response["output"]] == [
        ("multi_agent_v1", "spawn_agent"),
        (None, "run"),
    ]
    assert response["tools"] == [space]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_an_engine_that_named_no_choice_has_said_nothing(
    proxy: Proxy, engine: ScriptedEngine, session: str, stream: bool
) -> None:
    engine.plan(completion(choices=[]))
    reply = respond(proxy, session, stream=stream)
    assert (streamed(reply) if stream else response_of(reply))["status"] == "failed"
    assert proxy.records(session)[0]["is_valid"] is False


def test_a_response_is_named_after_the_engines_id(proxy: Proxy, session: str) -> None:
    response = response_of(respond(proxy, session))
    assert proxy.records(session)[0]["request_id"] in response["id"]
    assert response["model"] == "policy"


def test_the_stream_stays_alive_by_events_that_keep_their_count(
    proxy: Proxy, engine: ScriptedEngine, session: str
) -> None:
    gate = threading.Event()
    engine.plan(Answer(body=json.dumps(completion()).encode(), gate=gate))
    threading.Timer(0.7, gate.set).start()
    events = events_of(respond(proxy, session, model="pinging", stream=True))
    assert [event["type"] for event in events].count("response.in_progress") >= 3
    assert told(events)["output"][0]["content"][0]["text"] == "Yes."
    assert [event["type"] for event in events].count("response.created") == 1


def test_a_sign_of_life_behind_counted_events_is_not_counted() -> None:
    call: Any = None
    dialect = Responses()
    dialect.chat_request({"model": "policy", "input": "hi"})
    opening = dialect.ping
    frames = list(dialect.frames(completion(), call))
    assert dialect.ping == b": ping\n\n"
    assert told(events_in(b"".join([opening, dialect.ping, *frames])))["status"] == "completed"


OVERFLOW = "This model's maximum context length is 1024 tokens. However, your prompt contains 3200 input tokens"
LATE = {
    "overflow": (400, OVERFLOW, "context_length_exceeded"),
    "mistake": (400, "temperature must be non-negative", "invalid_prompt"),
    "too_many": (429, "busy", "rate_limit_exceeded"),
    "broken": (500, "EngineCore encountered an issue", "server_error"),
}


@pytest.mark.parametrize("name", LATE)
def test_an_error_behind_a_ping_fails_the_response(
    name: str, proxy: Proxy, engine: ScriptedEngine, session: str
) -> None:
    status, message, code = LATE[name]
    gate = threading.Event()
    engine.plan(Answer(status, json.dumps({"error": {"message": message, "code": status}}).encode(), gate=gate))
    threading.Timer(0.5, gate.set).start()
    events = events_of(respond(proxy, session, model="pinging", stream=True))
    response = told(events)
    assert (response["status"], response["output"]) == ("failed", [])
    assert (response["error"]["code"], message in response["error"]["message"]) == (code, True)
    assert proxy.records(session) == []


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("status", "wait"), [(401, None), (429, "7"), (500, None), (503, "2")])
def test_an_error_keeps_its_status_and_wait(
    status: int, wait: str | None, stream: bool, proxy: Proxy, engine: ScriptedEngine, session: str
) -> None:
    headers = {} if wait is None else {"Retry-After": wait}
    engine.plan(Answer(status, b'{"error":{"message":"no","type":"t","param":null,"code":1}}', headers))
    reply = respond(proxy, session, stream=stream)
    assert (reply.status, reply.headers.get("retry-after")) == (status, wait)
    assert reply.json["error"]["message"] == "no"
    assert set(reply.json["error"]) == {"message", "type", "param", "code"}


def test_an_overflow_is_told_by_its_code(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    engine.plan(Answer(400, json.dumps({"error": {"message": OVERFLOW, "code": 400}}).encode()))
    reply = respond(proxy, session)
    assert (reply.status, reply.json["error"]["code"]) == (400, "context_length_exceeded")


def test_a_cut_answer_never_looks_complete(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    engine.plan(Answer(body=json.dumps(completion()).encode(), send=40))
    reply = respond(proxy, session, stream=True)
    assert (reply.status, reply.json["error"]["type"]) == (502, "upstream_error")
    assert proxy.records(session) == []
