"""JSON as JavaScript reads and writes it: numbers are doubles, keys that look like array indexes come first."""

import json
import re
from decimal import Decimal
from typing import Any

_INDEX = re.compile(r"0|[1-9]\d{0,9}")
_INDEX_LIMIT = 2**32 - 1
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def js_parse(text: str) -> Any:
    """What ``JSON.parse`` makes of a text. Raises ``ValueError`` where that throws."""
    # Only these four: Python would strip any white space that Unicode knows.
    return json.loads(
        text.strip(" \t\n\r"),
        parse_int=lambda digits: _number(float(digits)),
        parse_float=lambda digits: _number(float(digits)),
        parse_constant=_refuse,
        object_pairs_hook=lambda pairs: js_object(dict(pairs)),
    )


def js_object(given: dict[str, Any]) -> dict[str, Any]:
    """The same object in the order in which JavaScript lists its keys."""
    indexes = [key for key in given if _INDEX.fullmatch(key) and int(key) < _INDEX_LIMIT]
    if not indexes:
        return given
    first = {key: given[key] for key in sorted(indexes, key=int)}
    return first | {key: value for key, value in given.items() if key not in first}


def js_dump(value: Any) -> str:
    """``JSON.stringify``: compact, non-ASCII as it is, lone surrogates escaped."""
    if isinstance(value, str):
        return _SURROGATE.sub(lambda one: f"\\u{ord(one[0]):04x}", json.dumps(value, ensure_ascii=False))
    if isinstance(value, dict):
        return "{" + ",".join(f"{js_dump(key)}:{js_dump(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(js_dump, value)) + "]"
    if isinstance(value, float):
        return _fraction(value)
    return json.dumps(value)


def _number(value: float) -> int | float:
    """A double; a whole one as the integer whose digits JavaScript writes."""
    if value.is_integer() and abs(value) < 1e21:
        # Through the shortest digits: 12345678901234567890 is written 12345678901234567000, not as its exact value.
        return int(Decimal(repr(value)))
    return value


def _fraction(value: float) -> str:
    if value in (float("inf"), float("-inf")):
        return "null"
    digits = repr(value)
    if "e" not in digits:
        return digits
    if 1e-6 <= abs(value) < 1e-4:
        return f"{Decimal(digits):f}"
    mantissa, exponent = digits.split("e")
    return f"{mantissa}e{int(exponent):+d}"


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
