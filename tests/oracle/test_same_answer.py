"""The oracle on answers: the engine's own pass, every way to change them fails."""

from typing import Any

import pytest

from conformance.oracle import same_answer

CALL = {"id": "call-1", "function": {"name": "run", "arguments": '{"b": 1, "a": "größer"}'}}
OTHER = {"id": "call-2", "function": {"name": "run", "arguments": "{}"}}


def but(**function: Any) -> dict[str, Any]:
    return {**CALL, "function": {"name": "run", "arguments": '{"b": 1, "a": "größer"}', **function}}


@pytest.mark.parametrize(("expected", "seen"), [("größer", "größer"), (None, ""), ("", None), (None, None)])
def test_the_same_text_is_the_same(expected: str | None, seen: str | None) -> None:
    assert same_answer.same_text(expected, seen, "here")


@pytest.mark.parametrize("seen", ["größe", "gro\u0308ßer", " größer", None, ["größer"], 7])
def test_another_text_is_shown_from_where_it_differs(seen: Any) -> None:
    judged = same_answer.same_text("größer", seen, "here")
    assert not judged
    assert judged.expected != judged.seen
    assert judged.where == "here"


def test_a_difference_deep_in_a_long_text_is_shown_in_a_window() -> None:
    judged = same_answer.same_text("a" * 100_000 + "b", "a" * 100_000 + "c", "here")
    assert (judged.expected, judged.seen) == (
        "100001 characters, from 99980: " + "a" * 20 + "b",
        "100001: " + "a" * 20 + "c",
    )


@pytest.mark.parametrize("arguments", ['{"b": 1, "a": "größer"}', '{"b":1,"a":"gr\\u00f6\\u00dfer"}'])
def test_arguments_are_the_same_as_json(arguments: str) -> None:
    assert same_answer.same_calls([CALL, OTHER], [OTHER, but(arguments=arguments)], "here")


@pytest.mark.parametrize("nothing", ["", None, "{}", "{ }"])
def test_no_arguments_are_an_empty_object(nothing: Any) -> None:
    assert same_answer.same_arguments("{}", nothing)
    assert same_answer.same_arguments("", nothing)


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param([], id="no call"),
        pytest.param([but(name="walk")], id="another name"),
        pytest.param([but(arguments='{"b": 1.0, "a": "größer"}')], id="a number of another form"),
        pytest.param([but(arguments='{"b": 1}')], id="a key is gone"),
        pytest.param([but(arguments='{"b": 1, "a": "größer"')], id="cut"),
        pytest.param([but(arguments={"b": 1, "a": "größer"})], id="an object in place of a text"),
        pytest.param([but(arguments="")], id="lost"),
        pytest.param([{**CALL, "id": "call-9"}], id="another id"),
        pytest.param([{"id": "call-1"}], id="no function"),
    ],
)
def test_another_call_is_told(seen: list[dict[str, Any]]) -> None:
    judged = same_answer.same_calls([CALL], seen, "here")
    assert not judged
    assert judged.where == "here, call call-1"


def test_calls_have_their_order_and_number() -> None:
    assert same_answer.same_order([CALL, OTHER], [CALL, OTHER], "here")
    for seen in ([OTHER, CALL], [CALL], [CALL, OTHER, OTHER], []):
        assert not same_answer.same_order([CALL, OTHER], seen, "here")


def test_usage_is_its_numbers() -> None:
    told = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    assert same_answer.same_usage(told, {**told, "prompt_tokens_details": None}, "here")
    for seen in ({**told, "completion_tokens": 5}, {**told, "prompt_tokens": 3.0}, {"prompt_tokens": 3}, None, [3, 4]):
        assert not same_answer.same_usage(told, seen, "here")
    assert not same_answer.same_usage(None, None, "here")
