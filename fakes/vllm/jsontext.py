"""JSON as bytes, also for values a strict writer refuses."""

import json
from typing import Any

import orjson


def json_bytes(value: Any, *, python: bool = False, spaced: bool = False) -> bytes:
    """Compact UTF-8 JSON.

    ``python`` writes what orjson cannot: NaN as a bare word, integers of any size, lone surrogates as escapes.
    ``spaced`` puts a space after commas and colons, as Python does by itself.
    """
    if not python:
        return orjson.dumps(value)
    separators = (", ", ": ") if spaced else (",", ":")
    text = json.dumps(value, ensure_ascii=False, separators=separators)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=separators).encode()
