"""What crosses Ray as arrays: the same tree on the other side, to the type and to the bit, from read-only memory."""

import math
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.contract.difference import tree_difference
from conformance.reference.rollout.packing import Numbers, packed, unpacked

JSON = Any

LEAVES = st.one_of(st.integers(), st.floats(allow_nan=False), st.booleans(), st.text(), st.none())
LONG = st.one_of(*(st.lists(each, min_size=60, max_size=90) for each in (st.integers(), st.floats(), st.booleans())))
TREES = st.recursive(
    LEAVES | LONG, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12
).filter(lambda tree: "nan" not in repr(tree))


def crossed(tree: JSON) -> JSON:
    """Pickled with its buffers apart, as Ray does, and read from memory that cannot be written."""
    buffers: list[pickle.PickleBuffer] = []
    text = pickle.dumps(tree, protocol=5, buffer_callback=buffers.append)
    there = [memoryview(bytes(buffer)).toreadonly() for buffer in buffers]
    return pickle.loads(text, buffers=there)


@given(TREES)
def test_a_tree_comes_back_as_it_was(tree: JSON) -> None:
    assert tree_difference(tree, unpacked(crossed(packed(tree)))) is None


@pytest.mark.parametrize(
    "values",
    [[-0.0, 5e-324, 1.7976931348623157e308] * 40, [2**63 - 1, -(2**63), 0] * 40],
    ids=["doubles", "integers"],
)
def test_numbers_keep_their_bits_in_read_only_memory(values: list[Any]) -> None:
    there = crossed(packed({"values": values}))["values"]
    assert isinstance(there, Numbers)
    assert there.values.readonly
    back = there.tolist()
    assert list(map(repr, back)) == list(map(repr, values))
    back[0] = math.pi  # whoever consumes it may change its own copy


@pytest.mark.parametrize("values", [[True, 1] * 40, [1, 2.0] * 40, [2**70, 1] * 40, [None, 0.5] * 40, [1, 2]])
def test_what_would_come_back_as_another_type_is_left_as_it_is(values: list[Any]) -> None:
    assert packed(values) is values
