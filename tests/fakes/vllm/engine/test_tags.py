"""Tags are written and found in one exact width."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.vllm.tags import Tag, asked_for, find_tags, format_tag

RUNS, SCOPES, TURNS = st.integers(0, 999_999), st.integers(0, 99), st.integers(0, 9_999)


def test_a_tag_is_written_in_six_two_and_four_digits() -> None:
    assert format_tag(7, 1, 12) == "⟦000007:01:0012⟧"


@given(RUNS, SCOPES, TURNS, st.text(), st.text())
def test_a_tag_is_found_again_wherever_it_stands(run: int, scope: int, turn: int, before: str, after: str) -> None:
    assert Tag(run, scope, turn) in find_tags(before + format_tag(run, scope, turn) + after)


@pytest.mark.parametrize(
    "text", [r"\u27e6000007:01:0012\u27e7", r"\\u27e6000007:01:0012\\u27e7", r"\u27E6000007:01:0012⟧"]
)
def test_a_tag_whose_brackets_were_escaped_as_json_is_found(text: str) -> None:
    assert find_tags(text) == [Tag(7, 1, 12)]


@pytest.mark.parametrize(
    "text", ["⟦00007:01:0012⟧", "⟦000007:1:0012⟧", "⟦000007:01:00123⟧", "[000007:01:0012]", "⟦٠٠٠٠٠٧:٠١:٠٠١٢⟧"]
)
def test_anything_of_another_width_is_no_tag(text: str) -> None:
    assert find_tags(text) == []


@pytest.mark.parametrize("numbers", [(1_000_000, 0, 0), (0, 100, 0), (0, 0, 10_000), (-1, 0, 0)])
def test_a_number_that_does_not_fit_is_refused(numbers: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        format_tag(*numbers)


def test_the_first_tag_gives_the_scope_and_the_highest_of_that_scope_the_turn() -> None:
    tags = [Tag(7, 1, 0), Tag(7, 0, 9), Tag(7, 1, 3), Tag(8, 1, 5), Tag(7, 1, 2)]
    assert asked_for(tags) == Tag(7, 1, 3)


def test_without_a_tag_nothing_is_asked_for() -> None:
    assert asked_for([]) is None
