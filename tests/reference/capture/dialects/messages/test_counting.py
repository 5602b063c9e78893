"""Counting the tokens of a prompt."""

import json
from typing import Any

import pytest

from tests.reference.capture.dialects.messages.speaking import HI, error_of, send
from tests.reference.capture.running import Proxy
from tests.reference.capture.scripted_engine import Answer, ScriptedEngine

pytestmark = pytest.mark.unit

JSON = Any
PATH = "/prefix/v1/messages/count_tokens?beta=true"


@pytest.fixture
def tokenizer(engine: ScriptedEngine) -> ScriptedEngine:
    engine.serve("/tokenize", Answer(body=b'{"count": 17, "max_model_len": 1024, "tokens": [1]}'))
    return engine


def test_the_engine_counts_the_translated_prompt(proxy: Proxy, tokenizer: ScriptedEngine, session: str) -> None:
    tools = [{"name": "bash", "input_schema": {"b": 1, "a": 2}}]
    reply = send(proxy, session, path=PATH, max_tokens=None, system="Be good.", tools=tools, temperature=1)
    assert (reply.status, reply.json) == (200, {"input_tokens": 17})
    (asked,) = tokenizer.asked
    assert (asked.method, asked.path) == ("POST", "/tokenize")
    assert asked.body == {
        "model": "served",
        "messages": [{"role": "system", "content": "Be good."}, *HI],
        "tools": [{"type": "function", "function": {"name": "bash", "parameters": {"b": 1, "a": 2}}}],
    }
    assert proxy.call("GET", f"/v1/sessions/{session}/completions").status == 404


def test_what_the_template_is_given_is_counted_too(proxy: Proxy, tokenizer: ScriptedEngine, session: str) -> None:
    begun = [*HI, {"role": "assistant", "content": "It is"}]
    send(proxy, session, path=PATH, model="pinned", max_tokens=None, messages=begun)
    body = tokenizer.asked[0].body
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert body["continue_final_message"] is True


@pytest.mark.parametrize(
    ("answer", "status", "kind"),
    [
        (Answer(404, b'{"detail":"Not Found"}'), 404, "not_found_error"),
        (Answer(429, b"{}", {"retry-after": "2"}), 429, "rate_limit_error"),
        (Answer(body=b"oops"), 502, "api_error"),
        (Answer(body=b'{"count": true}'), 502, "api_error"),
        (Answer(hang_up=True), 502, "api_error"),
    ],
    ids=["no-tokenizer", "busy", "no-json", "no-count", "gone"],
)
def test_a_count_that_fails_is_an_error_of_the_dialect(
    proxy: Proxy, engine: ScriptedEngine, answer: Answer, status: int, kind: str
) -> None:
    engine.serve("/tokenize", answer)
    assert error_of(send(proxy, path=PATH))[:2] == (status, kind)


def test_a_mistake_is_a_400_and_the_engine_is_not_asked(proxy: Proxy, tokenizer: ScriptedEngine) -> None:
    mistakes: list[JSON] = [{"messages": []}, {"model": "nope"}, {"tools": {}}]
    for body in mistakes:
        status, kind, _ = error_of(send(proxy, path=PATH, **body))
        assert status in (400, 404)
        assert kind in ("invalid_request_error", "not_found_error")
    assert tokenizer.asked == []


def test_large_prompts_are_counted(proxy: Proxy, tokenizer: ScriptedEngine) -> None:
    words = "word " * 100_000
    assert send(proxy, path=PATH, messages=[{"role": "user", "content": words}]).json == {"input_tokens": 17}
    assert json.loads(tokenizer.asked[0].raw)["messages"][0]["content"] == words
