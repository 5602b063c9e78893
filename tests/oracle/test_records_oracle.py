"""The oracle on hand-made records and rows: it must see what is wrong, and only that."""

from typing import Any

import pytest

from conformance.oracle.matching import match
from conformance.oracle.records import broken_promise, law, none_lost, same_field, thrown_away_told, triple
from conformance.oracle.rollouts import conserved, never_wrong, sampled, view_shape, view_truth

PROMPT, GENERATION, LOG_PROBS = [1, 2, 3], [4, 5], [-0.5, -0.25]


def record(**changes: Any) -> dict[str, Any]:
    return {
        "uuid": "u1",
        "request_id": "chatcmpl-1",
        "model": "policy",
        "prompt_token_ids": PROMPT,
        "generation_token_ids": GENERATION,
        "generation_log_probs": LOG_PROBS,
        "is_valid": True,
        **changes,
    }


def row(**changes: Any) -> dict[str, Any]:
    return {
        "seq": 1,
        "endpoint": "chat",
        "state": "finished",
        "request_id": "chatcmpl-1",
        "prompt_token_ids": PROMPT,
        "generation_token_ids": GENERATION,
        "generation_log_probs": LOG_PROBS,
        **changes,
    }


def test_a_record_that_is_its_row_is_right() -> None:
    assert triple(record(), row())
    assert law([record()], [row()])


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"prompt_token_ids": [1, 2]}, id="a prompt id lost"),
        pytest.param({"generation_token_ids": [4, 6]}, id="another generation id"),
        pytest.param({"generation_token_ids": [4, True]}, id="a bool among the ids"),
        pytest.param({"generation_token_ids": [4, 5.0]}, id="a float among the ids"),
        pytest.param({"generation_log_probs": [-0.5, -0.2500000298023224]}, id="one bit of a log prob's float32"),
        pytest.param({"generation_log_probs": [-0.5, None]}, id="a log prob lost"),
        pytest.param({"generation_log_probs": None}, id="no log probs at all"),
    ],
)
def test_a_record_that_differs_in_anything_from_its_row_breaks_the_law(wrong: dict[str, Any]) -> None:
    assert not law([record(**wrong)], [row()])


def test_the_last_bit_of_a_double_that_stands_for_a_float32_is_nobodys_loss() -> None:
    captured = [record(generation_log_probs=[-0.5, -0.25000000000000006])]
    assert law(captured, [row()])
    assert same_field(captured, [row()], "generation_log_probs")
    assert not same_field(captured, [row()], "generation_log_probs", float32=False)


def test_minus_zero_is_not_zero() -> None:
    assert not triple(record(generation_log_probs=[-0.5, 0.0]), row(generation_log_probs=[-0.5, -0.0]))


def test_a_valid_record_that_no_row_explains_breaks_the_law_and_an_invalid_one_does_not() -> None:
    stray = record(request_id="other", prompt_token_ids=[9], generation_token_ids=[9], generation_log_probs=[0.0])
    assert not law([stray], [row()])
    assert law([stray | {"is_valid": False}], [row()])


def test_two_records_cannot_both_claim_one_row() -> None:
    assert not law([record(), record(uuid="u2")], [row()])


def test_an_answer_that_was_thrown_away_has_an_invalid_record() -> None:
    rows = [row(), row(seq=2, request_id="chatcmpl-2")]
    kept, thrown = record(), record(uuid="u2", request_id="chatcmpl-2", is_valid=False)
    assert thrown_away_told([kept, thrown], rows, calls=1)
    assert not thrown_away_told([kept], rows, calls=1)
    assert not thrown_away_told([kept, {**thrown, "is_valid": True}], rows, calls=1)


def test_records_find_their_rows_by_generation_when_request_ids_are_rewritten() -> None:
    matched = match([record(request_id="renamed")], [row()])
    assert len(matched.pairs) == 1


def test_a_finished_call_without_a_record_is_lost_and_a_refused_one_is_not() -> None:
    assert not none_lost([], [row()])
    assert none_lost([], [row(state="refused")])
    assert none_lost([], [row(endpoint="tokenize")])


@pytest.mark.parametrize(
    "wrong",
    [
        {"request_id": ""},
        {"model": None},
        {"prompt_token_ids": []},
        {"generation_token_ids": [4, -1]},
        {"generation_token_ids": [True, 5]},
        {"generation_log_probs": [-0.5]},
        {"generation_log_probs": [-0.5, float("nan")]},
        {"generation_log_probs": [-0.5, -9999.0]},
        {"generation_log_probs": [-0.5, 0.5]},
        {"generation_log_probs": [-0.5, 1]},
        {"generation_log_probs": [-0.5, -(10**400)]},
    ],
    ids=str,
)
def test_a_broken_promise_of_validity_is_seen(wrong: dict[str, Any]) -> None:
    assert broken_promise(record()) is None
    assert broken_promise(record(**wrong)) is not None


def trajectory(**changes: Any) -> dict[str, Any]:
    return {
        "session_id": "s",
        "withheld": False,
        "record_uuids": ["u1"],
        "tokens": [1, 2, 3, 4, 5],
        "mask": [0, 0, 0, 1, 1],
        "log_probs": [None, None, None, -0.5, -0.25],
        **changes,
    }


def answer(*trajectories: dict[str, Any], excluded: tuple[str, ...] = (), withheld: bool = False) -> dict[str, Any]:
    return {
        "withheld": withheld,
        "trajectories": list(trajectories),
        "excluded": [{"record_uuid": uuid, "why": "orphan"} for uuid in excluded],
    }


def test_a_view_that_is_the_chain_of_its_records_is_right() -> None:
    truth = sampled([record()])
    assert view_shape(trajectory())
    assert view_truth(trajectory(), truth)
    assert never_wrong(answer(trajectory()), truth)
    assert conserved(answer(trajectory()), truth)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"mask": [0, 0, 1, 1, 1], "log_probs": [None, None, 0.0, -0.5, -0.25]}, id="context trained"),
        pytest.param({"mask": [0, 0, 0, 1, 0], "log_probs": [None, None, None, -0.5, None]}, id="a sampled token lost"),
        pytest.param({"log_probs": [None, None, None, -0.25, -0.5]}, id="log probs swapped"),
        pytest.param({"tokens": [1, 2, 3, 4, 6]}, id="a token nobody sampled"),
        pytest.param({"mask": [0, 0, 0, 1]}, id="lists of different length"),
        pytest.param({"log_probs": [None, None, None, None, -0.25]}, id="a trained token without log prob"),
        pytest.param({"record_uuids": ["u9"]}, id="a record nobody captured"),
        pytest.param({"record_uuids": ["u1", "u1"]}, id="a record twice"),
    ],
)
def test_a_trainable_view_that_is_wrong_in_anything_is_seen(wrong: dict[str, Any]) -> None:
    assert not never_wrong(answer(trajectory(**wrong)), sampled([record()]))


def test_a_wrong_view_that_is_withheld_trains_nothing_wrong() -> None:
    wrong = trajectory(tokens=[1, 2, 3, 4, 6])
    assert never_wrong(answer(wrong | {"withheld": True}), sampled([record()]))
    assert never_wrong(answer(wrong, withheld=True), sampled([record()]))


def test_the_same_record_in_two_trainable_trajectories_is_trained_twice() -> None:
    assert not never_wrong(answer(trajectory(), trajectory()), sampled([record()]))


def test_each_record_stands_in_exactly_one_place() -> None:
    truth = sampled([record(), record(uuid="u2")])
    assert not conserved(answer(trajectory()), truth)
    assert conserved(answer(trajectory(), excluded=("u2",)), truth)
    assert not conserved(answer(trajectory(), excluded=("u1", "u2")), truth)
    assert not conserved(answer(trajectory(), excluded=("u2", "u3")), truth)


NO_LISTS = dict.fromkeys(("prompt_token_ids", "generation_token_ids", "generation_log_probs"))


def test_without_records_the_law_says_nothing_and_without_a_finished_call_none_can_be_lost() -> None:
    assert law([], [row()]).lacking == "record"
    assert same_field([], [row()], "prompt_token_ids").lacking == "record"
    assert not same_field([record(request_id="other", **NO_LISTS)], [row()], "prompt_token_ids")
    assert none_lost([], [row(state="failed"), row(endpoint="tokenize")]).lacking == "call that the engine finished"
    assert none_lost([], [row()]).lacking is None
