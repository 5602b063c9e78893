"""Streams that take their time, break, or are the engine's own."""

import http.client
import json
import socket
import threading
from typing import Any

import pytest

from conformance.oracle.messages_answers import reassemble
from conformance.oracle.messages_stream import ends_in_error, grammar, looks_complete
from tests.reference.capture.dialects.messages.speaking import error_of, events_of, send, streamed
from tests.reference.capture.dialects.messages.test_answers import chunks_of
from tests.reference.capture.running import Proxy, Reply
from tests.reference.capture.scripted_engine import Answer, ScriptedEngine, completion, with_choice, with_message

pytestmark = pytest.mark.unit

JSON = Any
EVENTS = {"content-type": "text/event-stream"}


def later(proxy: Proxy, engine: ScriptedEngine, answer: Answer, gate: threading.Event, session: str) -> Reply:
    """A stream on the route that pings, whose answer comes a while after it was asked for."""
    engine.plan(answer)
    threading.Timer(0.6, gate.set).start()
    return send(proxy, session, model="pinging", stream=True)


def test_silence_is_broken_by_the_pings_of_the_dialect(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    gate = threading.Event()
    reply = later(proxy, engine, Answer(body=json.dumps(completion()).encode(), gate=gate), gate, session)
    assert [event["type"] for event in events_of(reply)][:2] == ["ping", "ping"]
    assert streamed(reply).text == "Yes."


def test_an_error_behind_a_ping_is_an_event_and_no_end(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    gate = threading.Event()
    body = json.dumps({"error": {"message": "busy", "type": "x", "code": 503}}).encode()
    reply = later(proxy, engine, Answer(503, body, gate=gate), gate, session)
    assert reply.status == 200
    assert ends_in_error(reply.raw.decode())
    assert events_of(reply)[-1]["error"] == {"type": "overloaded_error", "message": "busy"}
    assert proxy.records(session) == []


@pytest.mark.parametrize("model", ["policy", "plain"], ids=["captured", "uncaptured"])
def test_an_error_before_the_stream_is_an_answer_of_its_own(
    proxy: Proxy, engine: ScriptedEngine, session: str, model: str
) -> None:
    engine.plan(Answer(429, b'{"error":{"message":"slow down"}}', {"retry-after": "7"}))
    reply = send(proxy, session, model=model, stream=True)
    assert error_of(reply) == (429, "rate_limit_error", "slow down")
    assert reply.headers["retry-after"] == "7"


@pytest.mark.parametrize("model", ["policy", "plain"], ids=["captured", "uncaptured"])
def test_a_cut_answer_never_looks_complete(proxy: Proxy, engine: ScriptedEngine, session: str, model: str) -> None:
    whole = json.dumps(completion()).encode()
    engine.plan(Answer(body=whole, send=len(whole) - 1))
    assert error_of(send(proxy, session, model=model))[0] == 502
    engine.plan(Answer(body=whole, send=len(whole) - 1))
    assert error_of(send(proxy, session, model=model, stream=True))[0] == 502


def test_a_relayed_stream_that_is_cut_anywhere_ends_in_an_error(proxy: Proxy, engine: ScriptedEngine) -> None:
    calls = [{"id": "c", "type": "function", "function": {"name": "n", "arguments": '{"a": 1}'}}]
    body = chunks_of(with_message(reasoning="Hm.", content="I look.", tool_calls=calls))
    marks = [at for at in range(len(body)) if body.startswith(b"data: ", at)]
    for at in marks[1:]:
        for answer in (Answer(body=body, send=at, headers=EVENTS), Answer(body=body[:at], headers=EVENTS)):
            engine.plan(answer)
            told = send(proxy, model="plain", stream=True).raw.decode()
            assert not looks_complete(told), at
            assert ends_in_error(told), at


def test_a_relayed_stream_is_passed_on_while_it_comes(proxy: Proxy, engine: ScriptedEngine) -> None:
    body = chunks_of(with_message(content="abc"), pieces=3)
    resume = threading.Event()
    pause = body.index(b"\n\n", body.index(b'"a"')) + 2
    engine.plan(Answer(body=body, headers=EVENTS, pause_at=pause, gate=resume))
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=10)
    asked = {"model": "plain", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    connection.request("POST", "/v1/messages", json.dumps(asked).encode(), {"content-type": "application/json"})
    response = connection.getresponse()
    told = b""
    while b'"text":"a"' not in told:
        told += response.read1()
    assert b'"text":"b"' not in told
    resume.set()
    told += response.read()
    connection.close()
    assert grammar(told.decode())
    assert reassemble(told.decode()).text == "abc"


def test_pieces_of_parallel_calls_may_come_mixed(proxy: Proxy, engine: ScriptedEngine) -> None:
    def piece(index: int, arguments: str, **more: JSON) -> JSON:
        delta = {"tool_calls": [{"index": index, **more, "function": {"name": more.get("id"), "arguments": arguments}}]}
        return {"id": "x", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}

    chunks = [
        piece(0, '{"a"', id="c0"),
        piece(1, '{"b"', id="c1"),
        piece(1, ": 1}"),
        piece(0, ": 0}"),
        piece(0, "{}", id="c2"),
    ]
    chunks[-1]["choices"][0]["finish_reason"] = "tool_calls"
    data = [json.dumps(chunk) for chunk in chunks]
    engine.plan(Answer(body="".join(f"data: {one}\n\n" for one in [*data, "[DONE]"]).encode(), headers=EVENTS))
    blocks = streamed(send(proxy, model="plain", stream=True)).blocks
    assert [(block["id"], block["input"]) for block in blocks] == [("c0", {"a": 0}), ("c1", {"b": 1}), ("c2", {})]


def test_an_error_of_the_engine_amid_its_stream_is_told(proxy: Proxy, engine: ScriptedEngine) -> None:
    body = chunks_of(completion())
    error = b'data: {"error": {"message": "worker died", "type": "InternalServerError", "code": 500}}\n\n'
    engine.plan(Answer(body=body[: body.index(b"data: ", 6)] + error + b"data: [DONE]\n\n", headers=EVENTS))
    reply = send(proxy, model="plain", stream=True)
    assert ends_in_error(reply.raw.decode())
    assert events_of(reply)[-1]["error"] == {"type": "api_error", "message": "worker died"}


def test_a_relayed_stream_without_a_finish_ends_in_an_error(proxy: Proxy, engine: ScriptedEngine) -> None:
    body = chunks_of(with_choice(finish_reason=None))
    engine.plan(Answer(body=body, headers=EVENTS), Answer(body=b"data: [DONE]\n\n", headers=EVENTS))
    assert ends_in_error(send(proxy, model="plain", stream=True).raw.decode())
    assert error_of(send(proxy, model="plain", stream=True))[0] == 502


def test_garbage_amid_a_relayed_stream_is_told(proxy: Proxy, engine: ScriptedEngine) -> None:
    for garbage in (b"data: {oops\n\n", b"data: [1]\n\n"):
        body = chunks_of(completion())
        engine.plan(Answer(body=body[: body.index(b"data: ", 6)] + garbage, headers=EVENTS))
        assert ends_in_error(send(proxy, model="plain", stream=True).raw.decode())


def test_a_client_that_leaves_ends_the_engines_work(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    for model in ("policy", "plain"):
        engine.forget()
        engine.plan(Answer(gate=threading.Event()))
        with socket.create_connection(("127.0.0.1", proxy.port)) as client:
            asked = {"model": model, "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
            body = json.dumps(asked | {"proxy_x_session_id": session}).encode()
            head = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
            client.sendall(head.encode() + body)
            assert engine.arrived.wait(5)
        assert engine.hung_up.wait(5), model
    assert proxy.records(session) == []
