"""JSON as bytes, also for values a strict writer refuses."""

import json
from typing import Any

import orjson


def json_bytes(value: Any, *, python: bool = False, spaced: bool = False) -> bytes:
    """Compact UTF-8 JSON.

    What orjson refuses, integers beyond 64 bits and lone surrogates, is written as Python does. ``python`` writes all
    so, which makes NaN a bare word instead of null.
    ``spaced`` puts a space after commas and colons, as Python does by itself.
    """
    if not python:
        try:
            return orjson.dumps(value)
        except TypeError:
            pass
    separators = (", ", ": ") if spaced else (",", ":")
    text = json.dumps(value, ensure_ascii=False, separators=separators)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=separators).encode()
