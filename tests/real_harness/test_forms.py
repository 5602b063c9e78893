"""The comparison of forms sees every kind of difference, and nothing that depends on the run."""

import json
from typing import Any

import pytest

from fakes.harnesses import exchanges
from fakes.harnesses.exchanges import Exchange
from tests.real_harness.forms import Asked, compare, differences

HEADERS = (("Host", "127.0.0.1:1"), ("x-session-id", "a"), ("User-Agent", "u/1"))


def asked(body: Any, headers: tuple[tuple[str, str], ...] = HEADERS, path: str = "/v1/x") -> Asked:
    return Asked.of(exchange(body, headers, path))


def exchange(body: Any, headers: tuple[tuple[str, str], ...] = HEADERS, path: str = "/v1/x") -> Exchange:
    request = exchanges.sent("POST", path, headers, json.dumps(body, ensure_ascii=False).encode())
    return Exchange(n=0, request=request, response=None, ended="complete", streamed=False)


def assistant(**message: Any) -> dict[str, Any]:
    return {"messages": [{"role": "assistant", **message}]}


@pytest.mark.parametrize(
    ("real", "fake", "key"),
    [
        pytest.param({"a": 1, "b": 2}, {"b": 2, "a": 1}, "key order", id="key order"),
        pytest.param({"a": 1, "b": 2}, {"a": 1}, "body.b: only the real", id="a key more"),
        pytest.param({"a": 1}, {"a": 1, "b": 2}, "body.b: only the fake", id="a key less"),
        pytest.param({"a": 1}, {"a": 1.0}, "body.a", id="int for float"),
        pytest.param({"a": 1}, {"a": True}, "body.a", id="bool for int"),
        pytest.param({"a": 1}, {"a": 2}, "body.a", id="number"),
        pytest.param({"a": None}, {"a": ""}, "body.a", id="null for text"),
        pytest.param({"content": ""}, {"content": "x"}, "body.content", id="empty for text"),
        pytest.param({"content": "x"}, {"content": [{"type": "text"}]}, "body.content", id="string for list"),
        pytest.param({"a": [1]}, {"a": [1, 1]}, "body.a", id="one item more"),
        pytest.param({"role": "user"}, {"role": "system"}, "body.role", id="role"),
        pytest.param({"effort": "high"}, {"effort": "low"}, "body.effort", id="literal"),
        pytest.param(assistant(content="a"), assistant(content="a "), "content", id="what the model said"),
        pytest.param(assistant(arguments='{"a":1}'), assistant(arguments='{"a": 1}'), "arguments", id="dumped anew"),
        pytest.param([{"id": "a"}, {"id": "a"}], [{"id": "c"}, {"id": "d"}], "body[1].id", id="another id"),
    ],
)
def test_a_difference_is_told_with_its_key(real: Any, fake: Any, key: str) -> None:
    (found,) = differences(asked(real), asked(fake))
    assert key in found


@pytest.mark.parametrize(
    ("real", "fake"),
    [
        pytest.param({"content": "long text"}, {"content": "text"}, id="wording"),
        pytest.param({"parameters": {"a": 1}}, {"parameters": {}}, id="schema of a tool"),
        pytest.param([{"id": "a"}, {"id": "a"}], [{"id": "c"}, {"id": "c"}], id="ids that go together"),
        pytest.param(
            assistant(content="⟦000001:00:0001⟧"), assistant(content="⟦000002:00:0001⟧"), id="the run in a tag"
        ),
        pytest.param(
            assistant(arguments=r"\u27e6000001:00:0001\u27e7"),
            assistant(arguments=r"\u27e6000002:00:0001\u27e7"),
            id="the run in an escaped tag",
        ),
        pytest.param({"client_metadata": {"a": 1, "b": 2}}, {"client_metadata": {"b": 2, "a": 1}}, id="no order"),
    ],
)
def test_what_depends_on_the_run_or_is_free_is_no_difference(real: Any, fake: Any) -> None:
    assert differences(asked(real), asked(fake)) == []


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        pytest.param(HEADERS[::-1], "header order", id="order"),
        pytest.param((("host", "127.0.0.1:1"), *HEADERS[1:]), "header Host: only the real", id="case"),
        pytest.param(HEADERS[:2], "header User-Agent: only the real", id="missing"),
        pytest.param((*HEADERS, ("x-more", "1")), "header x-more: only the fake", id="more"),
        pytest.param((*HEADERS[:2], ("User-Agent", "u/2")), "header User-Agent: real 'u/1'", id="value"),
    ],
)
def test_headers_are_compared_by_name_case_order_and_value(headers: tuple[tuple[str, str], ...], told: str) -> None:
    assert told in differences(asked({}), asked({}, headers))[0]


def test_addresses_and_session_ids_are_the_run_s_own() -> None:
    other = (("Host", "127.0.0.1:2"), ("x-session-id", "b"), HEADERS[2])
    assert differences(asked({}), asked({}, other)) == []


def test_another_path_is_a_difference() -> None:
    assert differences(asked({}), asked({}, path="/v1/y")) == ["real POST /v1/x, fake POST /v1/y"]


def test_requests_are_paired_within_their_conversation_and_counted() -> None:
    def conversation(scope: int, tools: list[int]) -> Asked:
        return asked({"messages": [{"role": "user", "content": f"⟦000001:{scope:02d}:0000⟧"}], "tools": tools})

    parent, child, title = conversation(0, [1]), conversation(1, [1]), conversation(0, [])
    assert compare([parent, child, title], [title, child, parent]) == []
    assert compare([parent, child], [parent]) == ["scope 01: the real one sent 1 requests, the fake 0"]
