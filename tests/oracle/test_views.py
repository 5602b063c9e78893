"""The judging of trainer views, shown hand-made answers: true ones, and lies of one kind each."""

from typing import Any

import pytest

from conformance.oracle import views
from conformance.oracle.rollouts import Answer, Sampled

FIRST = Sampled("a", [1, 2], [10, 11], [-0.5, -0.0])
LEFT = Sampled("b", [1, 2, 10, 11, 3], [12], [-0.25])
RIGHT = Sampled("c", [1, 2, 10, 11, 4], [13], [-0.125])
TRUTH = {one.key: one for one in (FIRST, LEFT, RIGHT)}

CHAIN = {
    "record_uuids": ["a", "b"],
    "withheld": False,
    "tokens": [1, 2, 10, 11, 3, 12],
    "mask": [0, 0, 1, 1, 0, 1],
    "log_probs": [None, None, -0.5, -0.0, None, -0.25],
}
BRANCH = {
    "record_uuids": ["c"],
    "withheld": False,
    "tokens": [1, 2, 10, 11, 4, 13],
    "mask": [0, 0, 0, 0, 0, 1],
    "log_probs": [None] * 5 + [-0.125],
}


def answer(*trajectories: dict[str, Any], withheld: bool = False) -> Answer:
    return {"withheld": withheld, "trajectories": list(trajectories)}


def test_a_true_view_is_true_column_by_column() -> None:
    assert views.equal_lengths(answer(CHAIN, BRANCH))
    for field in ("tokens", "mask", "log_probs"):
        assert views.columns(answer(CHAIN, BRANCH), TRUTH, field)


@pytest.mark.parametrize(
    ("field", "lie"),
    [
        ("tokens", [1, 2, 10, 11, 12]),
        ("tokens", [1, 2, 10, 11, 3, 12, 151645]),
        ("mask", [0, 0, 1, 1, 1, 1]),
        ("mask", [0, 0, True, True, 0, True]),
        ("log_probs", [None, None, -0.5, 0.0, None, -0.25]),
        ("log_probs", [0.0, 0.0, -0.5, -0.0, 0.0, -0.25]),
        ("log_probs", None),
    ],
)
def test_a_lie_in_a_column_is_told(field: Any, lie: Any) -> None:
    assert not views.columns(answer(CHAIN | {field: lie}), TRUTH, field)


def test_a_trajectory_of_records_that_nobody_made_is_told() -> None:
    assert not views.columns(answer(CHAIN | {"record_uuids": ["a", "x"]}), TRUTH, "tokens")


def test_columns_of_other_lengths_or_of_nothing_are_told() -> None:
    assert not views.equal_lengths(answer(CHAIN | {"mask": [0, 0, 1]}))
    assert not views.equal_lengths(answer(CHAIN | {"tokens": [], "mask": [], "log_probs": []}))


def test_branches_with_their_shared_part_trained_once_are_right() -> None:
    assert views.each_trained_once(answer(CHAIN, BRANCH), TRUTH.values())
    assert views.same_sequences(answer(BRANCH, CHAIN), map(views.window, ([FIRST, LEFT], [FIRST, RIGHT])))
    assert views.nothing_trained_twice(answer(CHAIN, BRANCH))


def test_a_shared_part_that_is_trained_twice_is_told() -> None:
    twice = BRANCH | {"mask": [0, 0, 1, 1, 0, 1], "log_probs": [None, None, -0.5, -0.0, None, -0.125]}
    assert not views.each_trained_once(answer(CHAIN, twice), TRUTH.values())
    assert not views.nothing_trained_twice(answer(CHAIN, twice))


def test_a_branch_that_is_missing_or_withheld_is_told() -> None:
    ends = [views.window([FIRST, LEFT]), views.window([FIRST, RIGHT])]
    for given in (answer(CHAIN), answer(CHAIN, BRANCH | {"withheld": True}), answer(CHAIN, BRANCH, withheld=True)):
        assert not views.each_trained_once(given, TRUTH.values())
        assert not views.same_sequences(given, ends)


def test_ids_are_never_masked_in_even_where_they_are_withheld() -> None:
    assert views.never_masked_in(answer(CHAIN), {3, 4})
    assert not views.never_masked_in(answer(CHAIN | {"withheld": True}), {12})
