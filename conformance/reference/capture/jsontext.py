"""JSON whose bytes are not ours: what a client or an engine wrote is read and written without changing its meaning.

The standard library's ``json`` reads: integers of any size, ``1`` against ``1.0``, key order and escaped lone
surrogates all survive it, which faster libraries do not promise. orjson writes, ten times faster and more; what it
cannot write as it is it refuses, and ``json`` writes that.
"""

import json
import math
from typing import Any, Never

import orjson

JSON = Any
"""A JSON value of foreign origin."""

JSONObject = dict[str, JSON]


def read(data: bytes) -> JSON:
    """The JSON value of a client's body. ``ValueError`` if it is not JSON, or holds what JSON cannot (NaN, 1e999)."""
    return _parse(data, strict=True)


def read_engine(data: bytes) -> JSON:
    """The JSON value of an engine's body. NaN and infinities are let through: they must be seen to be judged."""
    return _parse(data, strict=False)


def _parse(data: bytes, *, strict: bool) -> JSON:
    text = data.decode("utf-8")
    try:
        if strict:
            return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite_float)
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def write(value: JSON) -> bytes:
    """Compact UTF-8; lone surrogates stay ``\\uXXXX`` escapes, and what JSON cannot hold becomes null."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        # Integers beyond 64 bits, lone surrogates, deep nesting.
        return _written_slowly(value)


def _written_slowly(value: JSON) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError:
        return _written_slowly(_without_non_finite(value))


def spaced(value: JSON) -> str:
    """JSON text as models and chat templates spell it, blanks after colons and commas."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse_constant(text: str) -> Never:
    raise ValueError(f"{text} is not JSON")


def _finite_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"number out of range: {text[:40]}")
    return number


def _without_non_finite(value: JSON) -> JSON:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_without_non_finite(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_non_finite(item) for key, item in value.items()}
    return value
