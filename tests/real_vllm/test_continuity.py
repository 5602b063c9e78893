"""The reference goes on in its own tokens in front of a real vLLM, with a real template and a real tokenizer.

What the model says is noise, so its tokens are never those that its text would be encoded in.
"""

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from conformance.oracle.continuity import adds, continues
from tests.fakes.vllm.wire.serving_here import call
from tests.real_vllm.engine import NAMES
from tests.reference.capture.running import Proxy

pytestmark = pytest.mark.real_vllm

JSON = Any

TURN_END = 2002
ROUTE = {"type": "model", "target": NAMES[0], "token_capture_engine": "vllm"}
INJECTED = {"token_injection": True, "tool_parser": "hermes", "reasoning_parser": "qwen3"}
TOOLS = [
    {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {"path": {}}}}}
]
SAYINGS = ("And then?", "What is \u2042, or <|im_end|>?\n", " größer 🙂", "The end.")
CALLS = len(SAYINGS) + 1

SETTINGS: dict[str, JSON] = {
    "thinking": {},
    "silent": {"chat_template_kwargs": {"enable_thinking": False}},
    "tools": {"tools": TOOLS, "chat_template_kwargs": {"enable_thinking": False}},
    "ending": {"chat_template_kwargs": {"enable_thinking": False}, "allowed_token_ids": [56, 64, 274, 13, TURN_END]},
    "effort": {"reasoning_effort": "low"},
}
"""``ending`` makes the model end most of its turns by itself."""


@pytest.fixture(scope="module")
def proxy(real: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    base = {**ROUTE, "base_url": f"{real}/v1"}
    routes = {
        "policy": {**base, **INJECTED},
        "as-rendered": base,
        "in-vain": {**base, "token_injection": True, "injection_transport": "prefix_chat"},
    }
    with Proxy(tmp_path_factory.mktemp("proxy"), {"routes": routes}) as running:
        yield running


def talked(proxy: Proxy, model: str, session: str, settings: JSON) -> list[list[JSON]]:
    """A conversation, every other call streamed; the messages of each call."""
    messages: list[JSON] = [{"role": "user", "content": "Say something."}]
    asked = []
    for turn in range(CALLS):
        asked.append(list(messages))
        streaming = {"stream": True} if turn % 2 else {}
        body = {"model": model, "messages": messages, "max_tokens": 12, "seed": turn, **streaming, **settings}
        assert proxy.chat(session, **body).status == 200
        said = proxy.records(session)[-1]["messages"][-1]
        messages = [*messages, said]
        calls = said.get("tool_calls") or []
        messages += [{"role": "tool", "tool_call_id": one["id"], "content": "None."} for one in calls]
        if turn < len(SAYINGS):
            messages.append({"role": "user", "content": SAYINGS[turn]})
    return asked


def rendered(real: str, messages: JSON, settings: JSON) -> list[int]:
    """What vLLM itself makes of a chat request."""
    known = {key: settings[key] for key in ("tools", "chat_template_kwargs", "reasoning_effort") if key in settings}
    reply = call(real, "POST", "/v1/chat/completions/render", {"model": NAMES[0], "messages": messages, **known})
    ids: list[int] = json.loads(reply.text)["token_ids"]
    return ids


def as_row(number: int, record: JSON) -> JSON:
    return {**record, "seq": number, "endpoint": "completions" if number else "chat"}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_conversation_with_a_real_vllm_goes_on_in_its_own_tokens(real: str, proxy: Proxy, name: str) -> None:
    settings = SETTINGS[name]
    asked = talked(proxy, "policy", f"continued-{name}", settings)
    records = proxy.records(f"continued-{name}")
    told = [(one["is_valid"], one["x_trackgauge"]["plain_reason"]) for one in records]
    assert told == [(True, "first_call"), *[(True, None)] * (CALLS - 1)]
    for number, (before, record) in enumerate(pairwise(records), start=1):
        rows = as_row(number - 1, before), as_row(number, record)
        assert continues(*rows)
        ends = SAYINGS[number - 1].count("<|im_end|>") + 1
        judged = adds(*rows, rendered(real, asked[number], settings), ends, TURN_END)
        assert judged, judged


def test_the_same_conversation_without_continuity_does_not(proxy: Proxy) -> None:
    talked(proxy, "as-rendered", "as-rendered", SETTINGS["silent"])
    rows = [as_row(number, record) for number, record in enumerate(proxy.records("as-rendered"))]
    assert not all(continues(*pair) for pair in pairwise(rows))


def test_a_real_vllm_that_ignores_a_prefix_is_found_out_before_it_generates(proxy: Proxy) -> None:
    talked(proxy, "in-vain", "in-vain", SETTINGS["silent"])
    reasons = [record["x_trackgauge"]["plain_reason"] for record in proxy.records("in-vain")]
    assert reasons == ["first_call", *["prefix_not_kept"] * (CALLS - 1)]
