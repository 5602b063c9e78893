"""What the client sees: answers in both modes, errors, pings, and what becomes of it when it leaves."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.reference.capture.running import JSON, Proxy, Reply
from tests.reference.capture.scripted_engine import Answer, ScriptedEngine, completion, with_choice, with_message

pytestmark = pytest.mark.unit

CALLS = [
    {"id": "chatcmpl-tool-1", "type": "function", "function": {"name": "run", "arguments": '{"a": "ü\\n"}'}},
    {"id": "functions.run:1", "type": "function", "function": {"name": "run", "arguments": ""}},
]
TURNS: dict[str, JSON] = {
    "text": with_message(content="Ünï 💥\n\n"),
    "reasoning": with_message(content=None, reasoning="Hm."),
    "old_reasoning": with_message(content="x", reasoning="Hm.", reasoning_content="Hm."),
    "calls": with_message(content=None, tool_calls=CALLS),
    "cut_call": with_choice(
        finish_reason="length",
        message={
            "role": "assistant",
            "content": "I",
            "tool_calls": [CALLS[0] | {"function": {"name": "f", "arguments": '{"a'}}],
        },
    ),
    "megabyte": with_message(
        content=None, tool_calls=[CALLS[0] | {"function": {"name": "f", "arguments": "x" * 2**20}}]
    ),
    "empty": with_message(content=""),
    "refusal": with_message(content=None, refusal="No."),
    "surrogate": with_message(content="\ud83d"),
}


def assembled(chunks: list[JSON]) -> tuple[JSON, JSON]:
    message: JSON = {}
    for chunk in chunks:
        for choice in chunk["choices"]:
            for key, value in choice["delta"].items():
                if key == "tool_calls":
                    for call in value:
                        kept = message.setdefault("tool_calls", {}).setdefault(call["index"], {"arguments": ""})
                        kept["arguments"] += call["function"].get("arguments") or ""
                        kept |= {"id": call["id"], "name": call["function"]["name"]} if "id" in call else {}
                elif isinstance(value, str):
                    message[key] = message.get(key, "") + value
    return message, chunks[-1]["choices"][0]["finish_reason"]


@pytest.mark.parametrize("name", TURNS)
def test_a_stream_and_a_buffered_answer_hold_the_same(
    name: str, proxy: Proxy, engine: ScriptedEngine, session: str
) -> None:
    engine.plan(TURNS[name], TURNS[name])
    buffered = proxy.chat(session).json["choices"][0]
    reply = proxy.chat(session, stream=True)
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.raw.endswith(b"data: [DONE]\n\n")
    message, finish = assembled(reply.chunks)
    for key in ("role", "content", "reasoning", "reasoning_content", "refusal"):
        assert (message.get(key) or None) == (buffered["message"].get(key) or None)
    calls = [{"id": c["id"], **c["function"]} for c in buffered["message"].get("tool_calls") or []]
    assert list(message.get("tool_calls", {}).values()) == calls
    assert finish == buffered["finish_reason"]


def test_usage_is_streamed_only_if_asked_for(proxy: Proxy, session: str) -> None:
    asked = proxy.chat(session, stream=True, stream_options={"include_usage": True}).chunks
    assert (asked[-1]["choices"], asked[-1]["usage"]["total_tokens"]) == ([], 5)
    assert all(chunk["choices"] for chunk in proxy.chat(session, stream=True).chunks)


@pytest.mark.parametrize("stream", [False, True], ids=["buffered", "streamed"])
def test_engine_fields_are_seen_only_by_who_asked(proxy: Proxy, session: str, stream: bool) -> None:
    text = proxy.chat(session, stream=stream).raw.decode()
    for field in ("prompt_token_ids", "token_ids", "routed_experts", "prompt_text", "metrics", "-0.6457"):
        assert field not in text
    told = proxy.chat(session, stream=stream, logprobs=True, return_token_ids=True).raw.decode()
    for field in ("prompt_token_ids", "token_ids", "-0.6457429528236389"):
        assert field in told


def test_top_log_probs_are_cut_to_what_the_client_asked(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    entry = {"token": "x", "logprob": -1.0, "top_logprobs": [{"token": "x"}, {"token": "y"}]}
    engine.plan(with_choice(logprobs={"content": [entry] * 3}))
    seen = proxy.chat(session, model="pinned", logprobs=True).json["choices"][0]["logprobs"]["content"]
    assert [each["top_logprobs"] for each in seen] == [[], [], []]


def test_reasoning_that_was_not_wanted_is_left_out(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    engine.plan(with_message(reasoning="Hm."))
    assert proxy.chat(session, include_reasoning=False).json["choices"][0]["message"]["reasoning"] is None
    assert proxy.records(session)[0]["x_trackgauge"]["reasoning"] == "Hm."


@pytest.mark.parametrize("stream", [False, True], ids=["buffered", "streamed"])
def test_odd_answers_still_end_well(proxy: Proxy, engine: ScriptedEngine, session: str, stream: bool) -> None:
    odd = completion(usage={"prompt_tokens": "x"}, created="then")
    odd["choices"][0]["message"]["content"] = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    engine.plan(odd)
    reply = proxy.chat(session, stream=stream, stream_options={"include_usage": True})
    assert reply.status == 200
    if stream:
        assert assembled(reply.chunks)[0]["content"] == "ab"


OVERFLOW = "This model's maximum context length is 1024 tokens. However, your prompt contains 3200 input tokens"
CAP = "max_tokens=5000 cannot be greater than max_model_len=1024. Please request fewer output tokens."
OLD_CAP = "'max_tokens' or 'max_completion_tokens' is too large: 9. This model's maximum context length is 8 tokens"


def vllm_error(message: str, kind: str = "BadRequestError", param: str | None = None, code: int = 400) -> bytes:
    return json.dumps({"error": {"message": message, "type": kind, "param": param, "code": code}}).encode()


ERRORS: dict[str, tuple[Answer, int, JSON, str]] = {
    "bad_value": (Answer(400, vllm_error("no", param="top_p")), 400, 400, "no"),
    "overflow": (Answer(400, vllm_error(OVERFLOW, param="input_tokens")), 400, "context_length_exceeded", OVERFLOW),
    "output_cap": (Answer(400, vllm_error(CAP, param="max_tokens")), 400, 400, CAP),
    "old_output_cap": (Answer(400, vllm_error(OLD_CAP)), 400, 400, OLD_CAP),
    "string": (Answer(401, b'{"error":"Unauthorized"}'), 401, 401, "Unauthorized"),
    "flat": (Answer(404, b'{"object":"error","message":"gone","type":"NotFoundError","code":404}'), 404, 404, "gone"),
    "detail": (Answer(404, b'{"detail":"Not Found"}'), 404, 404, "Not Found"),
    "text": (Answer(500, b"Internal Server Error"), 500, 500, "Internal Server Error"),
    "empty": (Answer(503, b""), 503, 503, "the engine returned HTTP 503"),
    "redirect": (Answer(302, b"", {"location": "/elsewhere"}), 502, "upstream_invalid_response", "status 302"),
    "hang_up": (Answer(hang_up=True), 502, "upstream_unreachable", "engine"),
}


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("captured", [True, False], ids=["captured", "plain"])
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "buffered"])
def test_an_error_keeps_status_and_gets_the_dialects_shape(
    name: str, captured: bool, stream: bool, proxy: Proxy, engine: ScriptedEngine, session: str
) -> None:
    answer, status, code, message = ERRORS[name]
    engine.plan(answer)
    reply = proxy.chat(session if captured else None, stream=stream)
    error = reply.json["error"]
    assert (reply.status, error["code"]) == (status, code)
    assert message in error["message"]
    assert set(error) == {"message", "type", "param", "code"}
    assert reply.headers["content-type"] == "application/json"


def test_retry_after_is_kept_and_addresses_and_keys_are_not(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    text = f"key engine-secret refused at {engine.base_url}/chat/completions, try 127.0.0.1:{engine.port}"
    engine.plan(Answer(429, vllm_error(text), {"Retry-After": "7"}))
    reply = proxy.chat(session)
    assert reply.headers["retry-after"] == "7"
    for secret in ("engine-secret", "127.0.0.1", str(engine.port)):
        assert secret not in reply.raw.decode()


def test_an_engine_that_is_down_or_slow_has_its_own_status(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    assert proxy.chat(session, model="dead").status == 502
    engine.plan(Answer(gate=threading.Event()))
    assert proxy.chat(session, model="hasty").status == 504
    assert engine.hung_up.wait(20)


@contextmanager
def streaming(proxy: Proxy, session: str) -> Iterator[http.client.HTTPResponse]:
    """The answer to a streamed call of the route ``pinging``, to be read as it comes."""
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=20)
    asked = {"model": "pinging", "messages": [{"role": "user", "content": "hi"}], "stream": True}
    connection.request("POST", "/v1/chat/completions", json.dumps(asked), {"proxy_x_session_id": session})
    try:
        yield connection.getresponse()
    finally:
        connection.close()


def test_a_waiting_stream_gives_signs_of_life(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    gate = threading.Event()
    engine.plan(Answer(body=json.dumps(completion()).encode(), gate=gate))
    with streaming(proxy, session) as response:
        signs = [response.readline() + response.readline() for _ in range(3)]
        gate.set()
        rest = response.read()
    assert signs == [b": ping\n\n"] * 3
    pings = rest.count(b": ping\n\n")
    assert rest.startswith(b": ping\n\n" * pings + b"data: {")
    assert rest.endswith(b"data: [DONE]\n\n")


def test_an_error_after_a_ping_is_told_in_the_stream(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    gate = threading.Event()
    engine.plan(Answer(503, b"", gate=gate))
    with streaming(proxy, session) as response:
        assert response.readline() + response.readline() == b": ping\n\n"
        gate.set()
        reply = Reply(response.status, {}, response.read())
    assert reply.status == 200
    assert reply.chunks[-1]["error"]["code"] == 503
    assert b"[DONE]" not in reply.raw
    engine.plan(Answer(503, b""))
    assert proxy.chat(session, model="pinging", stream=True).status == 503


def test_a_buffered_call_is_never_pinged(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    gate = threading.Event()
    engine.plan(Answer(503, b"", gate=gate))
    threading.Timer(0.4, gate.set).start()
    assert proxy.chat(session, model="pinging").status == 503


def opened_call(proxy: Proxy, session: str | None, stream: bool) -> socket.socket:
    """A call whose answer nobody has read yet."""
    asked: JSON = {"model": "policy", "messages": [{"role": "user", "content": "hi"}], "stream": stream}
    if session is not None:
        asked["proxy_x_session_id"] = session
    body = json.dumps(asked).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
    connection = socket.create_connection(("127.0.0.1", proxy.port))
    connection.sendall(head.encode() + body)
    return connection


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "buffered"])
@pytest.mark.parametrize("captured", [True, False], ids=["captured", "plain"])
def test_a_client_that_leaves_ends_the_generation(
    captured: bool, stream: bool, proxy: Proxy, engine: ScriptedEngine, session: str
) -> None:
    engine.plan(Answer(gate=threading.Event()))
    connection = opened_call(proxy, session if captured else None, stream)
    assert engine.arrived.wait(5)
    connection.close()
    assert engine.hung_up.wait(20)
    assert proxy.call("GET", f"/v1/sessions/{session}/completions").status == 404


def test_an_answer_that_nobody_took_is_recorded_and_marked(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    # An answer that does not fit into the socket's buffers cannot have been taken when the client leaves.
    gate = threading.Event()
    engine.plan(Answer(body=json.dumps(with_message(content="x" * 30_000_000)).encode(), gate=gate))
    connection = opened_call(proxy, session, False)
    assert engine.arrived.wait(5)
    gate.set()
    deadline = time.monotonic() + 20
    while not proxy.envelope(session).get("completions") and time.monotonic() < deadline:
        pass
    connection.close()
    while not proxy.envelope(session)["undelivered"] and time.monotonic() < deadline:
        pass
    envelope = proxy.envelope(session)
    (record,) = envelope["completions"]
    assert envelope["undelivered"] == [record["uuid"]]
    assert record["is_valid"] is True


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "buffered"])
def test_a_client_that_leaves_as_soon_as_it_has_all_is_not_told_as_gone(
    stream: bool, proxy: Proxy, session: str
) -> None:
    end = b"[DONE]\n\n" if stream else b'"prompt_logprobs":null}'
    for _ in range(100):
        connection = opened_call(proxy, session, stream)
        seen = b""
        while end not in seen and (part := connection.recv(65536)):
            seen += part
        connection.close()
        assert end in seen
    assert proxy.envelope(session)["undelivered"] == []


@pytest.mark.parametrize("captured", [True, False], ids=["captured", "plain"])
def test_a_cut_answer_never_looks_complete(captured: bool, proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    body = json.dumps(completion()).encode()
    engine.plan(Answer(body=body, send=300))
    connection = opened_call(proxy, session if captured else None, False)
    seen = b""
    while part := connection.recv(65536):
        seen += part
        if b"upstream_unreachable" in seen:
            break
    connection.close()
    assert seen.startswith(b"HTTP/1.1 502") if captured else not seen.endswith(b"0\r\n\r\n")
