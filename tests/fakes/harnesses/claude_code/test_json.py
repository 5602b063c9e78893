"""JSON through JavaScript's eyes; the expected texts are what node prints."""

import pytest

from fakes.harnesses.claude_code_json import js_dump, js_parse


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("1e3", "1000"),
        ("1.0", "1"),
        ("-0.0", "0"),
        ("12345678901234567890", "12345678901234567000"),
        ("9007199254740993", "9007199254740992"),
        ("1e21", "1e+21"),
        ("123456789.5e3", "123456789500"),
        ("0.1", "0.1"),
        ("1e-5", "0.00001"),
        ("1e-6", "0.000001"),
        ("1.5e-7", "1.5e-7"),
        ("1e400", "null"),
        ('{"a":1,"b":2,"a":3}', '{"a":3,"b":2}'),
        ('{"b":1,"10":2,"2":3,"01":4}', '{"2":3,"10":2,"b":1,"01":4}'),
        ('{"4294967295":1,"4294967294":0}', '{"4294967294":0,"4294967295":1}'),
        ('"\\u00e9\\/"', '"é/"'),
        ('"\\ud83d x"', '"\\ud83d x"'),
        ('"\\ud83d\\ude00"', '"😀"'),
        (' [ 1 , {"x" : true} , null ] ', '[1,{"x":true},null]'),
    ],
)
def test_a_value_comes_back_as_javascript_writes_it(given: str, written: str) -> None:
    assert js_dump(js_parse(given)) == written


@pytest.mark.parametrize("given", ["NaN", "Infinity", "-Infinity", "{", "", "[1,]", "\x0b1"])
def test_what_javascript_does_not_read_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match=r"Expecting|is not JSON|Illegal"):
        js_parse(given)
