"""What goes to the engine, and what comes of the connection to it."""

import asyncio
import json
import re
import threading

import pytest

from conformance.reference.capture.config import Route
from conformance.reference.capture.upstream import Engine
from tests.reference.capture.running import JSON, Proxy
from tests.reference.capture.scripted_engine import Answer, ScriptedEngine, completion

pytestmark = pytest.mark.unit


def post(proxy: Proxy, text: str, session: str | None) -> int:
    headers = {} if session is None else {"proxy_x_session_id": session}
    return proxy.call("POST", "/v1/chat/completions", text.encode(), headers).status


def test_the_body_arrives_equal_to_the_last_digit_and_in_order(
    proxy: Proxy, engine: ScriptedEngine, session: str
) -> None:
    big = "9" * 60
    text = (
        '{"z":1,"model":"policy","messages":[{"role":"user","content":"\\ud83d é","x":null,"a":1.0}],'
        f'"tools":[{{"b":{{"z":1,"a":{big}}}}}],"temperature":1,"top_p":1.0,"seed":null,"a":-0.1e-7}}'
    )
    for captured in (session, None):
        assert post(proxy, text, captured) == 200
    expected = json.loads(text) | {"model": "served"}
    asked, plain = engine.chats()
    added = {"logprobs": True, "return_token_ids": True, "top_logprobs": 0}
    assert json.dumps(asked.body) == json.dumps({**expected, **added})
    assert json.dumps(plain.body) == json.dumps(expected)
    assert (plain.path, plain.header("content-type")) == ("/v1/chat/completions", "application/json")


OWNED: dict[str, tuple[JSON, int]] = {
    "logprobs": (False, 200),
    "return_token_ids": (False, 200),
    "include_reasoning": (False, 200),
    "top_logprobs": (None, 200),
    "n": (2, 400),
    "echo": (True, 400),
    "use_beam_search": (True, 400),
    "required_prefix_token_ids": ([1], 200),
    "kv_transfer_params": ({"prompt_token_ids": [1]}, 200),
    "stream_options": ({"include_usage": True}, 200),
}


@pytest.mark.parametrize("key", OWNED)
def test_what_the_proxy_owns_is_neutralised_or_refused(
    key: str, proxy: Proxy, engine: ScriptedEngine, session: str
) -> None:
    value, status = OWNED[key]
    assert proxy.chat(session, **{key: value}).status == status
    bodies = [asked.body for asked in engine.chats()]
    if status == 400:
        assert bodies == []
        return
    own = {"logprobs": True, "return_token_ids": True, "top_logprobs": 0}
    assert bodies == [{"model": "served", "messages": [{"role": "user", "content": "hi"}], **own}]


def test_token_triples_in_the_history_are_not_sent(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    turn = {
        "role": "assistant",
        "content": "x",
        "prompt_token_ids": [1],
        "generation_token_ids": [2],
        "generation_log_probs": [0],
    }
    proxy.chat(session, messages=[turn])
    assert engine.chats()[0].body["messages"] == [{"role": "assistant", "content": "x"}]


def test_pins_win_over_the_client_and_fill_does_not(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    proxy.chat(session, model="pinned", temperature=0.1, seed=99, top_logprobs=1)
    proxy.chat(session, model="pinned", top_logprobs=5)
    proxy.chat(None, model="pinned", temperature=0.1)
    pinned, filled, plain = (asked.body for asked in engine.chats())
    assert (pinned["temperature"], pinned["top_k"], pinned["seed"], pinned["top_logprobs"]) == (1.0, -1, 99, 2)
    assert pinned["chat_template_kwargs"] == {"enable_thinking": False}
    assert (filled["seed"], filled["top_logprobs"]) == (7, 5)
    assert (plain["temperature"], plain["seed"], "top_k" in plain) == (0.1, 7, False)
    assert {asked.header("X-Cluster") for asked in engine.chats()} == {"blue"}


def test_a_captured_stream_is_asked_for_buffered(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    proxy.chat(session, stream=True, stream_options={"include_usage": True})
    body = engine.chats()[0].body
    assert (body["stream"], "stream_options" in body) == (False, False)


def test_a_call_without_a_session_is_streamed_through(proxy: Proxy, engine: ScriptedEngine) -> None:
    text = b': hello\n\ndata: {"a":1}\n\ndata: [DONE]\n\n'
    engine.plan(Answer(200, text, {"content-type": "text/event-stream; charset=utf-8"}))
    reply = proxy.chat(None, stream=True, stream_options={"include_usage": True})
    assert (reply.raw, reply.headers["content-type"]) == (text, "text/event-stream; charset=utf-8")
    assert engine.chats()[0].body["stream"] is True
    assert engine.chats()[0].body["stream_options"] == {"include_usage": True}


MISTAKES = {
    "not_json": (b"{", "invalid_body"),
    "nan": (b'{"model":"policy","messages":[{}],"x":NaN}', "invalid_body"),
    "overflow": (b'{"model":"policy","messages":[{}],"x":1e999}', "invalid_body"),
    "not_utf_8": (b'{"model":"policy","messages":[{"content":"\xff"}]}', "invalid_body"),
    "list": (b"[]", "invalid_body"),
    "deep": (b"[" * 100_000, "invalid_body"),
    "deep_message": (b'{"model":"policy","messages":[{"content":' + b"[" * 900 + b"]" * 900 + b"}]}", None),
    "no_model": (b'{"messages":[{}]}', "invalid_value"),
    "unknown_model": (b'{"model":"Policy","messages":[{}]}', "model_not_found"),
    "no_messages": (b'{"model":"policy"}', "invalid_value"),
    "empty_messages": (b'{"model":"policy","messages":[]}', "empty_messages"),
    "odd_stream": (b'{"model":"policy","messages":[{}],"stream":"yes"}', "invalid_value"),
    "stream_1": (b'{"model":"policy","messages":[{}],"stream":1}', "invalid_value"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_clients_mistake_is_refused_before_the_engine_is_asked(
    name: str, proxy: Proxy, engine: ScriptedEngine, session: str
) -> None:
    body, code = MISTAKES[name]
    reply = proxy.call("POST", "/v1/chat/completions", body, {"proxy_x_session_id": session})
    if code is None:
        assert reply.status in (200, 400)
        return
    assert reply.status == (404 if code == "model_not_found" else 400)
    assert reply.json["error"]["code"] == code
    assert isinstance(reply.json["error"]["message"], str)
    assert engine.chats() == []


def test_an_unknown_model_is_told_the_routes(proxy: Proxy) -> None:
    message = proxy.chat(None, model="nope").json["error"]["message"]
    assert re.search(r"policy.*plain.*pinned", message)


def test_calls_one_after_the_other_use_one_connection(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    proxy.chat(session)
    opened = engine.connections
    for _ in range(5):
        proxy.chat(session)
    assert engine.connections == opened


def test_an_engine_that_hangs_up_when_idle_is_asked_once_and_answers(
    proxy: Proxy, engine: ScriptedEngine, session: str
) -> None:
    for _ in range(10):
        engine.plan(Answer(body=json.dumps(completion()).encode(), hang_up_after=True))
        assert proxy.chat(session).status == 200
    assert len(engine.chats()) == 10


@pytest.mark.parametrize("times", [1, 3])
def test_what_an_engine_says_unasked_is_no_answer_to_the_next_call(times: int, engine: ScriptedEngine) -> None:
    stale = json.dumps(completion(id="chatcmpl-stale")).encode()

    async def next_answer() -> JSON:
        upstream, called = Engine(), Route("policy", "served", engine.base_url)
        await upstream.complete(called, b"{}")
        for _ in range(times):
            engine.say_unasked(stale)
        answer = json.loads(await upstream.complete(called, b"{}"))
        await upstream.close()
        return answer

    assert asyncio.run(next_answer())["id"] == "chatcmpl-1"
    assert len(engine.chats()) == 2


def test_no_record_holds_what_was_said_unasked(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    proxy.chat(f"{session}-first")
    engine.say_unasked(json.dumps(completion(id="chatcmpl-stale")).encode())
    assert proxy.chat(session).json["id"] == "chatcmpl-1"
    assert [record["request_id"] for record in proxy.records(session)] == ["chatcmpl-1"]


@pytest.mark.parametrize("captured", [True, False], ids=["captured", "forwarded"])
@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Answer(status=429, body=b"{}", headers={"retry-after": "5\x7f"}), 429),
        (Answer(status=999, body=b"{}"), 502),
        (Answer(body=json.dumps(completion()).encode(), headers={"content-type": "a\x7fb"}), 200),
    ],
    ids=["control character", "no status", "type with a control character"],
)
def test_a_head_that_cannot_be_sent_on_is_no_lost_connection(
    answer: Answer, status: int, captured: bool, proxy: Proxy, engine: ScriptedEngine, session: str
) -> None:
    engine.plan(answer)
    assert proxy.chat(session if captured else None).status == status


@pytest.mark.anyio
async def test_a_fault_of_the_reader_is_not_told_as_the_engines(engine: ScriptedEngine) -> None:
    upstream = Engine()
    with pytest.raises(ValueError, match="the reader's own"):
        async with upstream.opened(Route("policy", "served", engine.base_url), b"{}"):
            raise ValueError("the reader's own")
    await upstream.close()


def test_300_calls_are_at_the_engine_at_once(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    gate = threading.Event()
    for _ in range(300):
        engine.plan(Answer(body=json.dumps(completion()).encode(), gate=gate))
    threads = [threading.Thread(target=proxy.chat, args=(session,)) for _ in range(300)]
    for thread in threads:
        thread.start()
    deadline = threading.Event()
    for _ in range(2000):
        if len(engine.chats()) == 300:
            break
        deadline.wait(0.01)
    at_once = len(engine.chats())
    gate.set()
    for thread in threads:
        thread.join(20)
    assert at_once == 300
    assert len(proxy.records(session)) == 300
