"""Sessions, records, paths and errors: the proxy's rules hold for Messages as for chat."""

import json
import threading
from typing import Any

import pytest

from fakes.vllm.errors import Refusal, prompt_too_long, requested_too_much
from fakes.vllm.profiles import PROFILES
from tests.reference.capture.dialects.messages.speaking import HI, error_of, message_of, send, streamed
from tests.reference.capture.running import Proxy
from tests.reference.capture.scripted_engine import Answer, ScriptedEngine, completion, with_message

pytestmark = pytest.mark.unit

JSON = Any


def test_a_call_is_recorded_in_chat_form(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    tool = {"name": "bash", "input_schema": {"type": "object"}}
    asked: JSON = {
        "system": "Be good.",
        "tools": [tool],
        "tool_choice": {"type": "any"},
        "temperature": 0.5,
        "stop_sequences": ["END"],
    }
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"b": 1,  "a": 2}'}}
    for stream in (False, True):
        engine.plan(with_message(content=None, tool_calls=[call], reasoning="Hm."))
        send(proxy, session, stream=stream, **asked)
    first, second = proxy.records(session)
    assert first["messages"] == [
        {"role": "system", "content": "Be good."},
        *HI,
        {"role": "assistant", "tool_calls": [call]},
    ]
    assert first["tools"] == [{"id": "bash", "description": "", "inputSchema": {"jsonSchema": {"type": "object"}}}]
    assert (first["tool_choice"], first["is_valid"], first["model"]) == ("required", True, "served")
    assert first["x_trackgauge"]["sampling"] == {"temperature": 0.5, "max_completion_tokens": 100, "stop": ["END"]}
    assert first["x_trackgauge"]["reasoning"] == "Hm."
    different = ("uuid", "captured_at", "x_trackgauge")
    assert {k: v for k, v in first.items() if k not in different} == {
        k: v for k, v in second.items() if k not in different
    }


def test_the_engine_is_asked_for_tokens_and_never_for_a_stream(
    proxy: Proxy, engine: ScriptedEngine, session: str
) -> None:
    send(proxy, session, stream=True)
    (asked,) = engine.chats()
    assert asked.body == {
        "model": "served",
        "messages": HI,
        "max_completion_tokens": 100,
        "stream": False,
        "logprobs": True,
        "return_token_ids": True,
        "top_logprobs": 0,
    }
    assert asked.header("x-api-key") is None


def test_pins_and_the_targets_extra_body_hold(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    send(proxy, session, model="pinned", temperature=0.1, top_k=5, seed=1)
    body = engine.chats()[0].body
    assert (body["temperature"], body["top_k"], body["seed"]) == (1.0, -1, 1)
    assert body["chat_template_kwargs"] == {"enable_thinking": False}


def test_without_a_session_nothing_is_recorded_and_no_tokens_are_asked_for(
    proxy: Proxy, engine: ScriptedEngine
) -> None:
    before = proxy.sessions()
    message_of(send(proxy))
    (asked,) = engine.chats()
    assert asked.body == {"model": "served", "messages": HI, "max_completion_tokens": 100}
    assert proxy.sessions() == before


def test_the_ids_of_claude_code_are_kept(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    native = {"X-Claude-Code-Session-Id": session, "x-claude-code-agent-id": "a1"}
    nested = native | {"x-claude-code-agent-id": "a2", "x-claude-code-parent-agent-id": "a1"}
    for headers in (native, nested):
        send(proxy, headers=headers)
    extras = [record["x_trackgauge"] for record in proxy.records(session)]
    assert [(extra["agent_id"], extra["parent_agent_id"]) for extra in extras] == [("a1", None), ("a2", "a1")]


def test_a_session_in_the_api_key_is_one_and_any_other_key_is_none(
    proxy: Proxy, engine: ScriptedEngine, session: str
) -> None:
    send(proxy, headers={"x-api-key": f"sycap-session:{session}"})
    send(proxy, headers={"x-api-key": f"sk-{session}"})
    assert len(proxy.records(session)) == 1


def test_an_invalid_record_does_not_touch_the_client(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    engine.plan(completion(prompt_token_ids=None), completion(prompt_token_ids=None))
    assert message_of(send(proxy, session))["content"] == [{"type": "text", "text": "Yes."}]
    assert streamed(send(proxy, session, stream=True)).text == "Yes."
    assert [record["is_valid"] for record in proxy.records(session)] == [False, False]


@pytest.mark.parametrize(
    "path",
    ["/v1/messages?beta=true", "/ng-rollout/abc-123/v1/messages?beta=true", "/p/v1/x/v1/messages"],
    ids=["beta", "prefix", "prefix-with-v1"],
)
def test_a_query_and_a_prefix_change_nothing(proxy: Proxy, engine: ScriptedEngine, session: str, path: str) -> None:
    message_of(send(proxy, session, path=path))
    assert engine.chats()[0].path == "/v1/chat/completions"
    assert len(proxy.records(session)) == 1


@pytest.mark.parametrize("path", ["/", "/ng-rollout/abc-123", "/p/x/"])
def test_a_knock_at_the_base_path_is_answered(proxy: Proxy, path: str) -> None:
    reply = proxy.call("HEAD", path)
    assert (reply.status, reply.raw) == (200, b"")


def test_other_methods_are_refused_in_the_dialects_shape(proxy: Proxy) -> None:
    assert error_of(proxy.call("GET", "/x/v1/messages"))[:2] == (405, "invalid_request_error")


@pytest.mark.parametrize(
    ("body", "status", "kind", "told"),
    [
        (b"{", 400, "invalid_request_error", "not valid JSON"),
        (b"[]", 400, "invalid_request_error", "must be a JSON object"),
        (b'{"messages":[]}', 400, "invalid_request_error", "model must name a route"),
        (b'{"model":"gpt"}', 404, "not_found_error", "policy"),
        (b'{"model":"policy","stream":"yes"}', 400, "invalid_request_error", "stream"),
        (b'{"model":"policy","max_tokens":5,"messages":[]}', 400, "invalid_request_error", "messages"),
    ],
    ids=["no-json", "a-list", "no-model", "unknown-model", "stream-a-word", "no-messages"],
)
def test_a_clients_mistake_is_told_in_the_dialects_shape(
    proxy: Proxy, engine: ScriptedEngine, body: bytes, status: int, kind: str, told: str
) -> None:
    reply = proxy.call("POST", "/v1/messages", body)
    assert error_of(reply)[:2] == (status, kind)
    assert told in error_of(reply)[2]
    assert engine.chats() == []


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
        (422, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (503, "overloaded_error"),
        (529, "overloaded_error"),
    ],
)
def test_the_engines_status_and_retry_after_are_kept(
    proxy: Proxy, engine: ScriptedEngine, session: str, status: int, kind: str
) -> None:
    engine.plan(Answer(status, b'{"object":"error","message":"no luck"}', {"retry-after": "3"}))
    reply = send(proxy, session)
    assert error_of(reply) == (status, kind, "no luck")
    assert reply.headers["retry-after"] == "3"
    assert proxy.records(session) == []


def test_faults_on_the_way_to_the_engine_are_gateway_errors_without_addresses(
    proxy: Proxy, engine: ScriptedEngine, session: str
) -> None:
    dead = error_of(send(proxy, session, model="dead"))
    assert dead[:2] == (502, "api_error")
    assert "127.0.0.1" not in dead[2]
    engine.plan(Answer(gate=threading.Event()))
    assert error_of(send(proxy, session, model="hasty"))[:2] == (504, "timeout_error")


def refused(proxy: Proxy, engine: ScriptedEngine, refusal: Refusal, **body: JSON) -> tuple[int, str, str]:
    engine.plan(Answer(refusal.status, json.dumps(refusal.body).encode()))
    return error_of(send(proxy, **body))


@pytest.mark.parametrize("version", PROFILES)
def test_an_overlong_prompt_is_told_in_the_one_sentence_that_claude_code_knows(
    proxy: Proxy, engine: ScriptedEngine, session: str, version: str
) -> None:
    for as_ids in (False, True):
        for wanted in (None, 50):
            refusal = prompt_too_long(PROFILES[version], 1100, 1024, as_ids=as_ids, wanted=wanted)
            status, kind, told = refused(proxy, engine, refusal, proxy_x_session_id=session)
            assert (status, kind) == (400, "invalid_request_error")
            assert told in (f"prompt is too long: {count} tokens > 1024 maximum" for count in (1025, 1100))


@pytest.mark.parametrize("version", PROFILES)
def test_too_much_wanted_beside_a_prompt_that_fits_is_no_overlong_prompt(
    proxy: Proxy, engine: ScriptedEngine, session: str, version: str
) -> None:
    refusal = requested_too_much(PROFILES[version], 900, 1024, 200)
    status, kind, told = refused(proxy, engine, refusal, proxy_x_session_id=session)
    assert (status, kind) == (400, "invalid_request_error")
    assert told.startswith("input length and `max_tokens` exceed context limit: 900 + 200 > 1024, ")


def test_a_limit_above_the_models_length_is_told_as_it_is(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    words = "max_tokens=5000 cannot be greater than max_model_len=1024. Please request fewer output tokens."
    engine.plan(Answer(400, json.dumps({"error": {"message": words, "param": "max_tokens", "code": 400}}).encode()))
    assert error_of(send(proxy, session))[2] == words


def test_an_overflow_in_unknown_words_still_begins_with_the_sentence(
    proxy: Proxy, engine: ScriptedEngine, session: str
) -> None:
    engine.plan(Answer(400, b'{"error":{"message":"exceeds the context window","code":400}}'))
    assert error_of(send(proxy, session))[2] == "prompt is too long: exceeds the context window"
