"""The window around a first difference, which failure messages are made of."""

import copy
import math
import random
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.contract.difference import (
    BLOCK,
    ListDifference,
    first_difference,
    list_difference,
    tree_difference,
)

pytestmark = pytest.mark.unit

TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("expected", "seen", "index"),
    [
        pytest.param([], [], None, id="empty"),
        pytest.param([1, 2, 3], [1, 2, 3], None, id="equal"),
        pytest.param([1, 2, 3], [1, 9, 3], 1, id="a value"),
        pytest.param([1, 2], [1, 2, 3], 2, id="seen goes on"),
        pytest.param([1, 2, 3], [1, 2], 2, id="seen ends"),
        pytest.param([], [7], 0, id="nothing expected"),
        pytest.param([0, 1], [0, True], 1, id="a bool for an int"),
        pytest.param([1, 2], [1.0, 2], 0, id="a float for an int"),
        pytest.param([0.0, -0.5], [-0.0, -0.5], 0, id="the sign of zero"),
        pytest.param([math.nan, 1.0], [float("nan"), 1.0], None, id="the same NaN"),
        pytest.param([math.nan, 1.0], [float("nan"), 1.5], 1, id="after a NaN"),
        pytest.param([[1]], [[True]], 0, id="a type inside a list"),
        pytest.param([{"a": 1, "b": 2}], [{"b": 2, "a": 1}], None, id="key order is free"),
    ],
)
def test_the_first_index_that_differs_is_found(expected: list[Any], seen: list[Any], index: int | None) -> None:
    assert first_difference(expected, seen) == index


@pytest.mark.parametrize("index", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK - 1, 3 * BLOCK + 7])
def test_one_lost_bit_is_found_anywhere_in_a_long_list(index: int) -> None:
    chance = random.Random(5)
    values = [-chance.random() for _ in range(3 * BLOCK + 8)]
    changed = list(values)
    [bits] = struct.unpack("<q", struct.pack("<d", values[index]))
    [changed[index]] = struct.unpack("<d", struct.pack("<q", bits ^ 1))
    assert first_difference(values, changed) == index


def test_the_window_holds_a_few_values_either_side_and_both_lengths() -> None:
    expected, seen = list(range(100)), [*range(50), 7, *range(51, 90)]
    found = list_difference(expected, seen, around=2)
    assert found == ListDifference(50, 48, (48, 49, 50, 51, 52), (48, 49, 7, 51, 52), 100, 90)
    assert str(found) == (
        "first difference at index 50: expected … 48 49 »50« 51 52 … (100 values), seen … 48 49 »7« 51 52 … (90 values)"
    )
    assert found.shown()[1] == {"index": 50, "from": 48, "values": [48, 49, 7, 51, 52], "length": 90}


def test_a_list_that_ends_first_says_so() -> None:
    assert str(list_difference([1, 2], [1, 2, 3])) == (
        "first difference at index 2: expected 1 2 »end« (2 values), seen 1 2 »3« (3 values)"
    )


def test_equal_lists_have_no_difference() -> None:
    assert list_difference([1, 2.5, "x"], [1, 2.5, "x"]) is None


@pytest.mark.parametrize(
    ("expected", "seen", "said"),
    [
        pytest.param({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, "$.a[1].b: value: expected 2, seen 3", id="deep"),
        pytest.param({"a": 1}, {}, "$.a: missing: expected 1, seen nothing", id="missing"),
        pytest.param({}, {"x y": None}, "$['x y']: extra: expected nothing, seen None", id="extra"),
        pytest.param({"a": None}, {}, "$.a: missing: expected None, seen nothing", id="null is not absent"),
        pytest.param([1], [1, 2], "$[1]: extra: expected nothing, seen 2", id="longer"),
        pytest.param([1, 2], [1], "$[1]: missing: expected 2, seen nothing", id="shorter"),
        pytest.param({"n": 1}, {"n": True}, "$.n: type: expected 1, seen True", id="type"),
        pytest.param({"n": 2.0}, {"n": 2}, "$.n: type: expected 2.0, seen 2", id="a float made an int"),
        pytest.param({"n": 2**64}, {"n": float(2**64)}, f"$.n: type: expected {2**64}, seen 1.8", id="huge"),
        pytest.param([], {}, "$: type: expected [], seen {}", id="list and object"),
        pytest.param({"a": 1, "b": 1}, {"b": 2, "a": 2}, "$.a: value", id="in the order of the expected"),
    ],
)  # fmt: skip
def test_the_path_of_the_first_difference_is_told(expected: Any, seen: Any, said: str) -> None:
    assert str(tree_difference(expected, seen)).startswith(said)


def test_key_order_counts_only_when_asked_for() -> None:
    one, other = {"a": {"x": 1, "y": 2}}, {"a": {"y": 2, "x": 1}}
    assert tree_difference(one, other) is None
    found = tree_difference(one, other, key_order=True)
    assert found is not None
    assert (found.path, found.what, found.expected, found.seen) == ("$.a", "key order", ["x", "y"], ["y", "x"])


def test_very_deep_trees_are_walked() -> None:
    def nested(leaf: int) -> Any:
        tree: Any = leaf
        for _ in range(5000):
            tree = [tree]
        return tree

    found = tree_difference(nested(1), nested(2))
    assert found is not None
    assert (found.expected, found.seen) == (1, 2)
    assert str(tree_difference(nested(1), 1)) == "$: type: expected a list nested too deeply to show, seen 1"


@given(TREES)
def test_a_tree_equals_its_copy(tree: Any) -> None:
    assert tree_difference(tree, copy.deepcopy(tree), key_order=True) is None


@given(TREES, TREES)
def test_a_difference_is_found_exactly_when_the_texts_differ(one: Any, other: Any) -> None:
    def text(tree: Any) -> Any:
        return {key: text(tree[key]) for key in sorted(tree)} if isinstance(tree, dict) else (
            [text(each) for each in tree] if isinstance(tree, list) else tree
        )  # fmt: skip

    assert (tree_difference(one, other) is None) == (repr(text(one)) == repr(text(other)))
