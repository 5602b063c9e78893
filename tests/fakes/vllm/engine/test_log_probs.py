"""Log probs are a pure function of where a token stands, and use every bit they have."""

import math
import struct

from hypothesis import given
from hypothesis import strategies as st

from fakes.vllm.log_probs import draw, draw_alternatives

IDS = st.lists(st.integers(0, 4095), min_size=1, max_size=60)


def _as_float32(value: float) -> float:
    widened: float = struct.unpack("f", struct.pack("f", value))[0]
    return widened


@given(st.text(), IDS)
def test_they_are_float32_widened_to_double_and_strictly_negative(place: str, ids: list[int]) -> None:
    values = draw(place, ids)
    assert len(values) == len(ids)
    assert all(value < 0 and math.isfinite(value) and _as_float32(value) == value for value in values)


@given(st.text(), IDS)
def test_rounding_or_losing_one_bit_is_always_seen(place: str, ids: list[int]) -> None:
    for value in draw(place, ids):
        (word,) = struct.unpack("I", struct.pack("f", value))
        assert word & 1
        assert round(value, 4) != value


@given(st.text(), IDS)
def test_64_bits_are_more_than_a_float32_can_hold(place: str, ids: list[int]) -> None:
    assert all(value < 0 and _as_float32(value) != value for value in draw(place, ids, 64))


@given(st.text(), IDS, st.integers(1, 10))
def test_a_longer_row_begins_like_a_shorter_one(place: str, ids: list[int], more: int) -> None:
    assert draw(place, ids + [5] * more)[: len(ids)] == draw(place, ids)


def test_two_places_and_two_ids_never_share_a_value() -> None:
    rows = [draw(f"place {number}", [token] * 50) for number in range(40) for token in (17, 18)]
    assert len({value for row in rows for value in row}) > 3_990


@given(st.text(), IDS, st.integers(1, 20))
def test_candidates_come_best_first_with_the_chosen_id_at_the_head(place: str, ids: list[int], count: int) -> None:
    chosen = draw(place, ids)
    for (token, value), row in zip(
        zip(ids, chosen, strict=True), draw_alternatives(place, ids, chosen, count, 4096), strict=True
    ):
        assert row[0] == (token, value)
        assert len({candidate for candidate, _ in row}) == count
        assert [likely for _, likely in row] == sorted((likely for _, likely in row), reverse=True)
        assert all(_as_float32(likely) == likely for _, likely in row)
