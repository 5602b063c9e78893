"""The form of a record: what a true one looks like, and each lie that has to be seen."""

from collections.abc import Callable
from typing import Any

import pytest

from conformance.oracle import record_form
from conformance.oracle.judgement import Judgement

JSON = Any

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1.0}'}}
ASKED = [{"role": "user", "content": "Look.", "name": None}]
ANSWER = {"role": "assistant", "content": " Yes. ", "tool_calls": [CALL]}
OFFERED = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]
UUID = "3f0d7a52-3c1e-4a57-9a0e-5d6f2b7c8d9e"
OTHER_UUID = "3f0d7a52-3c1e-4a57-9a0e-5d6f2b7c8d9f"


def record(**changed: JSON) -> dict[str, JSON]:
    whole: dict[str, JSON] = {
        "schema_version": 1,
        "uuid": UUID,
        "session_id": "s",
        "parent_session_id": None,
        "captured_at": "2026-12-01T00:00:00.000000+00:00",
        "request_id": "r",
        "model": "m",
        "messages": [*ASKED, ANSWER],
        "tools": [
            {"id": "look", "description": "", "inputSchema": {"jsonSchema": {"type": "object", "properties": {}}}}
        ],
        "tool_choice": "auto",
        "token_count": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        "prompt_token_ids": [1],
        "generation_token_ids": [2],
        "generation_log_probs": [-0.5],
        "finish_reason": "stop",
        "is_valid": True,
        "x_trackgauge": {"sampling": {"seed": 7, "temperature": 1.0}, "started_at": "then"},
    }
    return whole | changed


def test_a_record_as_published_has_nothing_to_hide() -> None:
    true = record()
    assert record_form.published_form([true])
    assert record_form.nothing_beside([true])
    assert record_form.one_form_of_time([true])
    assert record_form.tells_request(true, ASKED)
    assert record_form.tells_answer(true, {"message": {**ANSWER, "refusal": None}})
    assert record_form.tells_tools(true, OFFERED)
    assert record_form.tells_sampling(true, {"temperature": 1.0, "seed": 7, "stream": False, "stop": None})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("schema_version", True),
        ("schema_version", 2),
        ("uuid", None),
        ("messages", {}),
        ("tools", None),
        ("tool_choice", {"type": "function"}),
        ("token_count", {"prompt_tokens": 1.0, "completion_tokens": 1, "total_tokens": 2}),
        ("generation_token_ids", ["2"]),
        ("generation_log_probs", [True]),
        ("is_valid", 1),
    ],
)
def test_a_value_of_another_type_is_seen(key: str, value: JSON) -> None:
    assert not record_form.published_form([record(), record(**{key: value})])


def test_a_missing_key_is_seen_even_where_null_would_do() -> None:
    lacking = record()
    del lacking["parent_session_id"]
    assert not record_form.published_form([lacking])


def test_a_key_beside_the_published_ones_is_seen() -> None:
    assert not record_form.nothing_beside([record(), record(extra=None)])


def test_uuids_have_their_form_and_are_used_once() -> None:
    assert record_form.distinct_uuids([record(), record(uuid=OTHER_UUID)])
    assert not record_form.distinct_uuids([record(), record()])
    assert not record_form.distinct_uuids([record(uuid="rec-1")])


@pytest.mark.parametrize(
    "time",
    ["2026-12-01T00:00:00.000+00:00", "2026-12-01T01:00:00.000000+01:00", "2026-12-01T00:00:00+00:00", 1.5, None],
)
def test_a_time_in_another_form_is_seen(time: JSON) -> None:
    assert not record_form.one_form_of_time([record(captured_at=time)])


def test_two_offset_forms_do_not_go_together() -> None:
    zulu = record(captured_at="2026-12-01T00:00:00.000000Z")
    assert record_form.one_form_of_time([zulu])
    assert not record_form.one_form_of_time([record(), zulu])


def test_records_at_one_time_do_not_rise() -> None:
    later = record(captured_at="2026-12-01T00:00:00.000001+00:00")
    assert record_form.rising([record(), later])
    assert not record_form.rising([record(), record()])
    assert not record_form.rising([later, record()])


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": "Look."}, ANSWER],
        [ANSWER],
        [*ASKED, *ASKED, ANSWER],
        None,
    ],
)
def test_a_request_told_otherwise_is_seen(messages: JSON) -> None:
    assert not record_form.tells_request(record(messages=messages), ASKED)


@pytest.mark.parametrize(
    "last",
    [
        {**ANSWER, "content": "Yes."},
        {**ANSWER, "tool_calls": None},
        {**ANSWER, "tool_calls": [{**CALL, "function": {"name": "look", "arguments": '{"a":1.0}'}}]},
        {**ANSWER, "tool_calls": [{**CALL, "id": "c2"}]},
        {**ANSWER, "role": "user"},
        {**ANSWER, "tool_calls": [{}]},
        {},
        "Yes.",
    ],
)
def test_an_answer_told_otherwise_is_seen(last: JSON) -> None:
    assert not record_form.tells_answer(record(messages=[*ASKED, last]), {"message": ANSWER})


@pytest.mark.parametrize(
    "tools",
    [
        [],
        [{"id": "look", "description": "", "inputSchema": {"type": "object", "properties": {}}}],
        [{"id": "look", "description": "", "inputSchema": {"jsonSchema": {"properties": {}, "type": "object"}}}],
        [{"id": "look", "description": "?", "inputSchema": {"jsonSchema": {"type": "object", "properties": {}}}}],
    ],
)
def test_tools_told_otherwise_are_seen(tools: JSON) -> None:
    assert not record_form.tells_tools(record(tools=tools), OFFERED)


@pytest.mark.parametrize("sent", [{"temperature": 1.0}, {"temperature": 1, "seed": 7}, {"seed": 7, "top_p": 0.5}])
def test_sampling_that_was_not_sent_is_seen(sent: JSON) -> None:
    assert not record_form.tells_sampling(record(), sent)


def test_the_reported_finish_of_a_turn_that_calls_is_not_the_samplers() -> None:
    row: dict[str, JSON] = {"finish_reason": "stop", "message": {"tool_calls": [CALL]}}
    assert record_form.finish_reported(row) == "tool_calls"
    assert record_form.finish_reported(row | {"finish_reason": "length"}) == "length"
    assert record_form.finish_reported(row | {"message": {"content": "Done."}}) == "stop"


def test_only_ids_and_times_may_differ_between_two_modes() -> None:
    other = {**ANSWER, "tool_calls": [{**CALL, "id": "c2"}]}
    twin = record(uuid=OTHER_UUID, captured_at="later", request_id="r2", messages=[*ASKED, other])
    twin["x_trackgauge"] = {**twin["x_trackgauge"], "started_at": "at another time"}
    assert record_form.same_but_for_ids_and_times(record(), twin)
    assert not record_form.same_but_for_ids_and_times(record(), twin | {"finish_reason": "length"})
    assert not record_form.same_but_for_ids_and_times(record(), twin | {"generation_log_probs": [-0.25]})


@pytest.mark.parametrize(
    "judge",
    [
        record_form.published_form,
        record_form.nothing_beside,
        record_form.distinct_uuids,
        record_form.one_form_of_time,
        record_form.rising,
    ],
)
def test_without_records_nothing_is_said_of_their_form(judge: Callable[[list[JSON]], Judgement]) -> None:
    two = [record(), record(uuid=OTHER_UUID, captured_at="2026-12-01T00:00:00.000001+00:00")]
    assert (judge([]).lacking is None, judge(two).lacking) == (False, None)
