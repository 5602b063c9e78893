"""Records that must not be trusted."""

from typing import Any

import pytest

from conformance.contract.rebuilds import RebuildAnswer
from tests.reference.rebuild.making import (
    JSON,
    answer,
    call,
    envelope,
    rebuilt,
    said,
    system,
    trained,
    two_turns,
    user,
)

ABSENT = object()


def broken(n: int, changes: JSON) -> list[JSON]:
    turns = two_turns()
    for key, value in changes.items():
        if key == "messages" and isinstance(value, list) and value[:-1] == turns[0]["messages"][:-1]:
            # The fault is in the answer: what the call asked stays its own, or it would be a retry of another.
            turns[n]["messages"] = [*turns[n]["messages"][:-1], value[-1]]
            continue
        if value is ABSENT:
            del turns[n][key]
        else:
            turns[n][key] = value
    return turns


def with_turn(turn: JSON) -> JSON:
    return {"messages": [system(), user("Look."), turn]}


FAULTS: dict[str, tuple[str, JSON]] = {
    "schema version 2": ("schema_version", {"schema_version": 2}),
    "schema version true": ("schema_version", {"schema_version": True}),
    "schema version 1.0": ("schema_version", {"schema_version": 1.0}),
    "another session": ("session_id", {"session_id": "t"}),
    "an empty uuid": ("uuid", {"uuid": ""}),
    "marked invalid": ("is_valid", {"is_valid": False}),
    "valid as a number": ("is_valid", {"is_valid": 1}),
    "no word on validity": ("is_valid", {"is_valid": ABSENT}),
    "an empty request id": ("request_id", {"request_id": ""}),
    "no request id": ("request_id", {"request_id": None}),
    "an empty model": ("model", {"model": ""}),
    "no prompt ids": ("prompt_token_ids", {"prompt_token_ids": None}),
    "empty prompt ids": ("prompt_token_ids", {"prompt_token_ids": []}),
    "a text among ids": ("prompt_token_ids", {"prompt_token_ids": [1, "2"]}),
    "a truth among ids": ("prompt_token_ids", {"prompt_token_ids": [True, 2]}),
    "a float among ids": ("prompt_token_ids", {"prompt_token_ids": [1.0]}),
    "a negative id": ("prompt_token_ids", {"prompt_token_ids": [1, -1]}),
    "an id of 65 bits": ("prompt_token_ids", {"prompt_token_ids": [2**64]}),
    "empty generation ids": ("generation_token_ids", {"generation_token_ids": []}),
    "a log prob too few": ("generation_log_probs", {"generation_log_probs": [-0.5]}),
    "no log probs": ("generation_log_probs", {"generation_log_probs": None}),
    "empty log probs": ("generation_log_probs", {"generation_log_probs": []}),
    "a log prob without a number": ("generation_log_probs", {"generation_log_probs": [None, -1.0]}),
    "log prob true": ("generation_log_probs", {"generation_log_probs": [False, -1.0]}),
    "log prob nan": ("generation_log_probs", {"generation_log_probs": [float("nan"), -1.0]}),
    "log prob infinite": ("generation_log_probs", {"generation_log_probs": [float("-inf"), -1.0]}),
    "a log prob beyond floats": ("generation_log_probs", {"generation_log_probs": [-(10**400), -1.0]}),
    "a positive log prob": ("generation_log_probs", {"generation_log_probs": [0.01, -1.0]}),
    "no entry": ("generation_log_probs", {"generation_log_probs": [-9999.0, -1.0]}),
    "fewer ids than usage counts in floats": ("token_count", {"token_count": {"completion_tokens": 3.0}}),
    "fewer ids than usage counts": ("token_count", {"token_count": {"completion_tokens": 3}}),
    "no messages": ("messages", {"messages": []}),
    "a message that is none": ("messages", {"messages": [None, said("a")]}),
    "no assistant turn last": ("last_message", {"messages": [system(), user("a")]}),
    "an unknown role": ("role", {"messages": [{"role": "function", "content": ""}, said("a")]}),
    "content as an object": ("content", {"messages": [{"role": "user", "content": {}}, said("a")]}),
    "a part without a type": ("content", {"messages": [{"role": "user", "content": [{}]}, said("a")]}),
    "a tool message without an id": ("tool_call", {"messages": [{"role": "tool", "content": ""}, said("a")]}),
    "a call without an id": ("tool_call", with_turn(said("", call("{}") | {"id": None}))),
    "a call without arguments": (
        "tool_call",
        with_turn(said("", {"id": "c", "function": {"name": "a"}})),
    ),
    "calls that are no list": ("tool_call", with_turn(said("") | {"tool_calls": {}})),
    "no tools": ("tools", {"tools": ABSENT}),
    "tools that are no list": ("tools", {"tools": {}}),
    "a tool without a name": ("tools", {"tools": [{}]}),
    "a schema that is none": ("tools", {"tools": [{"id": "a", "inputSchema": 3}]}),
    "extras that are none": ("x_trackgauge", {"x_trackgauge": []}),
    "a number that is no JSON": ("nesting", {"tools": [{"id": "a", "inputSchema": {"jsonSchema": float("nan")}}]}),
}


def excluded(found: RebuildAnswer) -> list[tuple[str, str, str | None]]:
    return [(one.record_uuid, one.why, one.error.rule if one.error else None) for one in found.excluded]


@pytest.mark.parametrize("name", FAULTS)
def test_a_record_with_a_fault_fails_alone_and_names_its_rule(name: str) -> None:
    rule, changes = FAULTS[name]
    found = rebuilt(broken(0, changes)[0])
    assert (found.outcome, found.withheld, found.reason_code) == ("failed", True, "no_valid_record")
    assert found.error is not None
    assert found.error.rule == rule
    assert found.error.record_uuid == ("#0" if rule == "uuid" else "u0")
    assert trained(found) == []


@pytest.mark.parametrize("name", FAULTS)
def test_a_last_record_with_a_fault_breaks_nothing(name: str) -> None:
    rule, changes = FAULTS[name]
    found = rebuilt(*broken(1, changes))
    assert (found.outcome, found.withheld) == ("clean", False)
    assert excluded(found) == [("#1" if rule == "uuid" else "u1", "invalid", rule)]
    assert trained(found) == [10, 11]


@pytest.mark.parametrize("name", FAULTS)
def test_what_continues_a_record_with_a_fault_is_withheld(name: str) -> None:
    found = rebuilt(*broken(0, FAULTS[name][1]))
    assert (found.outcome, found.withheld) == ("partial", True)
    assert found.reason_code in ("invalid_record", "uncaptured_turn")
    assert [one.record_uuids for one in found.trajectories] == [["u1"]]


def test_whole_numbers_and_a_little_above_zero_are_log_probs() -> None:
    found = rebuilt(*broken(0, {"generation_log_probs": [0, 1e-3]}))
    assert found.outcome == "clean"


def test_more_ids_than_usage_counts_are_trained() -> None:
    assert rebuilt(*broken(0, {"token_count": {"completion_tokens": 1}})).outcome == "clean"


def test_a_uuid_that_comes_twice_is_one_record() -> None:
    turns = two_turns()
    found = rebuilt(*turns, turns[1])
    assert excluded(found) == [("u1", "invalid", "uuid_unique")]
    assert trained(found) == [10, 11, 12, 13]


@pytest.mark.parametrize(
    "other",
    [
        {"generation_log_probs": [-9.0, -9.0]},
        {"generation_token_ids": [5, 6]},
        {"prompt_token_ids": [1, 2, 3, 10, 11, 4]},
        {"messages": [system(), user("x"), said("y")]},
        {"is_valid": False},
    ],
)
def test_of_records_with_one_uuid_that_contradict_one_another_none_is_trained(other: JSON) -> None:
    """Which of them comes first says nothing of which tells the truth."""
    turns = two_turns()
    for records in ([*turns, turns[1] | other], [turns[1] | other, *turns]):
        found = rebuilt(*records)
        assert {uuid for uuid, _, _ in excluded(found)} == {"u1"}
        assert trained(found) == [10, 11]


def test_one_generation_behind_two_prompts_is_not_trained() -> None:
    """A proxy that records the answer before once more gives it a context that it never had."""
    turns = two_turns()
    again = {key: turns[0][key] for key in ("request_id", "generation_token_ids", "generation_log_probs")}
    found = rebuilt(turns[0], turns[1] | again)
    assert trained(found) == []
    assert {(uuid, rule) for uuid, _, rule in excluded(found)} == {("u0", "request_id"), ("u1", "request_id")}


def test_strictness_turns_what_is_partial_into_an_error_that_names_the_record() -> None:
    turns = broken(0, {"request_id": None})
    found = answer({"envelope": envelope(*turns)}, allow_partial=False)
    assert (found.outcome, found.trajectories, found.reason_code) == ("failed", [], "invalid_record")
    assert found.error is not None
    assert (found.error.rule, found.error.record_uuid) == ("request_id", "u0")
    assert answer({"envelope": envelope(*two_turns())}, allow_partial=False).outcome == "clean"


def test_a_cut_generation_is_noted_and_trained() -> None:
    for reason in ("length", "abort", None):
        found = rebuilt(*broken(1, {"finish_reason": reason}))
        assert (found.outcome, [note.code for note in found.notes]) == ("clean", ["cut_generation"])


@pytest.mark.parametrize(
    "value",
    [None, 7, [], {}, {"schema_version": 2}, {"schema_version": 1}, {"schema_version": 1, "session_id": " "}],
    ids=repr,
)
def test_what_is_no_envelope_is_a_typed_error(value: Any) -> None:
    found = answer({"envelope": value})
    assert (found.outcome, found.withheld, found.trajectories) == ("failed", True, [])
    assert found.error is not None
    assert found.error.rule in ("envelope", "source")


def test_an_empty_session_failed_for_want_of_records() -> None:
    found = rebuilt()
    assert (found.outcome, found.reason_code) == ("failed", "no_records")
    assert found.error is not None


def test_deep_nesting_is_a_typed_error() -> None:
    deep: Any = []
    for _ in range(400):
        deep = [deep]
    found = rebuilt(*two_turns()[:1], broken(1, {"tools": [{"id": "a", "description": deep}]})[1])
    assert excluded(found) == [("u1", "invalid", "nesting")]
    arguments = "[" * 5000 + "]" * 5000
    turn = said("", call(arguments))
    assert rebuilt(broken(0, with_turn(turn))[0]).outcome == "clean"
