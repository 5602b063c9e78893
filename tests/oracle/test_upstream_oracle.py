"""The judge of what goes upstream on hand-made bodies: it must see what is wrong, and only that."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from conformance.oracle import upstream
from conformance.oracle.judgement import Judgement

Body = dict[str, Any]
Judge = Callable[[Body, Body, str], Judgement]

SENT: Body = {
    "model": "route",
    "messages": [{"role": "user", "content": "Hello", "name": None}],
    "temperature": 1.0,
    "seed": 2**70,
    "stop": None,
    "tools": [{"function": {"name": "look", "parameters": {"zone": 1, "path": 2}}}],
}
JUDGES: dict[str, Judge] = {
    "conversation": upstream.same_conversation,
    "key order": upstream.key_order_kept,
    "numbers": upstream.numbers_kept,
    "arrival": upstream.numbers_arrive,
    "nulls": upstream.nulls_kept,
}


def changed(**changes: Any) -> Body:
    return {**SENT, **changes}


def without(*keys: str) -> Body:
    return {key: value for key, value in SENT.items() if key not in keys}


def failing(got: Body) -> list[str]:
    return [name for name, judge in JUDGES.items() if not judge(SENT, got, "here")]


def test_a_body_that_is_only_made_ready_for_the_engine_is_right() -> None:
    ready = {"stream": False, "logprobs": True, "top_logprobs": 0, "return_token_ids": True}
    assert failing({**ready, **changed(model="served")}) == []


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (changed(messages=[{"role": "user", "content": "Hello ", "name": None}]), ["conversation"]),
        (changed(messages=[*SENT["messages"], *SENT["messages"]]), ["conversation"]),
        (without("tools"), ["conversation", "arrival"]),
        (
            changed(tools=[{"function": {"name": "look", "parameters": {"path": 2, "zone": 1}}}]),
            ["key order"],
        ),
        (changed(temperature=1), ["numbers"]),
        (changed(seed=float(2**70)), ["numbers"]),
        (changed(temperature="1.0"), ["arrival"]),
        (without("seed"), ["arrival"]),
        (without("stop"), ["nulls"]),
        (changed(stop=[]), ["nulls"]),
        ({}, ["conversation", "numbers", "arrival", "nulls"]),
    ],
    ids=lambda value: None if isinstance(value, dict) else "+".join(value),
)
def test_each_fault_is_one_finding(got: Body, expected: list[str]) -> None:
    assert failing(got) == expected


def test_a_triple_in_a_message_is_not_part_of_the_conversation() -> None:
    sent = changed(messages=[{**SENT["messages"][0], "prompt_token_ids": [1]}])
    assert upstream.same_conversation(sent, SENT, "here")


@pytest.mark.parametrize("got", [{"logprobs": True}, {"logprobs": 1, "return_token_ids": True}, {}])
def test_half_a_request_for_tokens_is_none(got: Body) -> None:
    assert not upstream.asks_for_tokens(got, "here")


@pytest.mark.parametrize("top", [None, True, -1, "0", 0.0])
def test_top_logprobs_have_to_be_a_whole_number(top: object) -> None:
    assert not upstream.counts_top_log_probs({"top_logprobs": top}, "here")
    assert upstream.counts_top_log_probs({}, "here")
    assert upstream.counts_top_log_probs({"top_logprobs": 0}, "here")


@pytest.mark.parametrize(
    ("status", "bodies", "ok"),
    [
        (400, [], True),
        (422, [], False),
        (200, [], False),
        (200, [{}], True),
        (200, [{"n": 2}], False),
        (400, [{}], False),
        (200, [{}, {}], False),
    ],
)
def test_a_harm_is_refused_or_taken_out_and_never_half(status: int, bodies: list[Body], ok: bool) -> None:
    assert bool(upstream.refused_or(status, bodies, lambda body: "n" not in body, "n", "here")) is ok


@pytest.mark.parametrize(
    ("body", "limit"),
    [({}, None), ({"max_tokens": 1}, 1), ({"max_tokens": 1, "max_completion_tokens": 2}, 2)],
)
def test_the_newer_limit_counts(body: Body, limit: int | None) -> None:
    assert upstream.limit_of(body) == limit


def test_a_secret_is_found_in_headers_and_bodies_alike() -> None:
    request = {"path": "/v1/x", "headers": [["x-note", "a s3cr3t"]], "body_text": json.dumps({"x": "other"})}
    row = {"endpoint": "chat", "state": "finished", "request": request}
    assert not upstream.carries_none_of([row], ["s3cr3t"], "here")
    assert not upstream.carries_none_of([row], ["other"], "here")
    assert upstream.carries_none_of([row], ["other"], "here", bodies=False)
    assert upstream.body_of(row) == {"x": "other"}


def test_what_the_engine_refused_is_no_generation() -> None:
    rows = [{"endpoint": "chat", "state": state} for state in ("refused", "cut", "failed")]
    assert upstream.generations([*rows, {"endpoint": "tokenize", "state": "finished"}]) == rows[1:]
