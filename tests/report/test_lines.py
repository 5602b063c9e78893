"""Values in one line."""

import pytest

from conformance.report.lines import contrast, printable, short

pytestmark = pytest.mark.unit


def test_a_short_value_is_its_json() -> None:
    assert short({"finish_reason": "stop", "ids": [1, 2]}) == '{"finish_reason": "stop", "ids": [1, 2]}'


def test_a_long_value_keeps_both_ends_and_says_what_it_lost() -> None:
    text = short("a" * 500 + "b" * 500, 60)
    assert text == f'"{"a" * 29} … 942 characters … {"b" * 29}"'


def test_of_two_long_lists_the_place_where_they_part_is_shown() -> None:
    expected, seen = contrast(list(range(500)), [*range(400), 7, *range(401, 500)])
    assert expected == '{"index": 400, "from": 397, "values": [397, 398, 399, 400, 401, 402, 403], "length": 500}'
    assert seen == '{"index": 400, "from": 397, "values": [397, 398, 399, 7, 401, 402, 403], "length": 500}'


def test_of_two_long_texts_the_place_where_they_part_is_shown() -> None:
    expected, seen = contrast("x" * 1000 + "right" + "y" * 1000, "x" * 1000 + "wrong" + "y" * 1000, 40)
    assert expected == f'… "{"x" * 20}right{"y" * 15}" … (differs from character 1000 of 2005)'
    assert seen == f'… "{"x" * 20}wrong{"y" * 15}" … (differs from character 1000 of 2005)'


def test_of_two_large_trees_the_path_where_they_part_is_shown() -> None:
    messages = [{"role": "user", "content": "hello"}] * 100
    expected, seen = contrast({"messages": messages, "n": 1}, {"messages": messages}, 80)
    assert (expected, seen) == ("at $.n: 1", "at $.n: nothing")


def test_long_values_of_unlike_kinds_are_shortened_each() -> None:
    expected, seen = contrast(None, ["x" * 100] * 100, 50)
    assert expected == "null"
    assert " characters … " in seen


def test_control_characters_are_shown_not_sent() -> None:
    assert printable("a\nb\x1b[0m\x9b\u2028\ud800é⟦") == "a\\nb\\x1b[0m\\x9b\\u2028\\ud800é⟦"
