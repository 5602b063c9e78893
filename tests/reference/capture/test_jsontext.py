"""JSON that is not ours, read and written without a change of meaning."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.contract.difference import tree_difference
from conformance.reference.capture import jsontext

pytestmark = pytest.mark.unit

SURROGATES = st.text(st.characters(categories=["L", "N", "P", "Cs", "Cc"]))
NUMBERS = st.integers() | st.integers(2**63 - 2, 2**64 + 2) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | SURROGATES,
    lambda inner: st.lists(inner) | st.dictionaries(SURROGATES, inner),
)


@given(VALUES)
def test_what_is_written_reads_as_it_was_to_the_type_and_the_last_bit(value: Any) -> None:
    text = jsontext.write(value)
    assert tree_difference(value, json.loads(text)) is None
    assert tree_difference(value, jsontext.read(text)) is None


@given(st.dictionaries(SURROGATES, st.integers(0, 2**70)))
def test_keys_keep_their_order(value: dict[str, int]) -> None:
    assert list(json.loads(jsontext.write(value))) == list(value)


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("beside", [1, 2**70, "\ud83d"])
def test_what_json_cannot_hold_becomes_null(odd: float, beside: Any) -> None:
    assert json.loads(jsontext.write({"a": [odd], "b": beside})) == {"a": [None], "b": beside}


def test_nesting_is_kept_or_refused_in_words() -> None:
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    assert json.loads(jsontext.write(deep)) == deep
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="nested too deeply"):
        jsontext.write(deep)
