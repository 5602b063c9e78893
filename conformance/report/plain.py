"""Any value a check may show, as JSON that every reader accepts; what JSON cannot say is said in words."""

import json
import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TypeAlias

JSON: TypeAlias = "dict[str, JSON] | list[JSON] | str | int | float | bool | None"

DEEPEST = 60
"""Levels of nesting that are kept. Deeper values become a remark, so that no reader runs out of stack."""


def plain(value: object, depth: int = 0) -> JSON:
    """``value`` in JSON's own types. Floats that JSON lacks, bytes and foreign objects become marked strings."""
    if isinstance(value, Enum):
        return plain(value.value, depth)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else f"float {value}"
    if isinstance(value, bytes | bytearray | memoryview):
        return f"bytes {bytes(value)!r}"
    if depth >= DEEPEST:
        return f"… nested deeper than {DEEPEST} levels …"
    if isinstance(value, Mapping):
        return {_key(key): plain(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, Set):
        return [plain(inner, depth + 1) for inner in sorted(value, key=repr)]
    if isinstance(value, Sequence):
        return [plain(inner, depth + 1) for inner in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name), depth + 1) for each in fields(value)}
    return f"{type(value).__name__} {value!r}"


def _key(key: object) -> str:
    return key if isinstance(key, str) else f"{type(key).__name__} {key!r}"


def encode(value: JSON, indent: int | None = None) -> bytes:
    """UTF-8 JSON. Falls back to escapes where the text holds lone surrogates, which UTF-8 cannot carry."""
    separators = (",", ": ") if indent is not None else (",", ":")
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, indent=indent, separators=separators).encode()


def elide(value: JSON, items: int, chars: int) -> JSON:
    """``value`` with the middle of long lists and strings left out; a remark in its place gives the whole length."""
    if isinstance(value, str):
        if len(value) <= chars:
            return value
        half = chars // 2
        return f"{value[:half]}… {len(value) - 2 * half} of {len(value)} characters left out …{value[-half:]}"
    if isinstance(value, list):
        if len(value) <= items:
            return [elide(inner, items, chars) for inner in value]
        half = max(items // 2, 1)
        head = [elide(inner, items, chars) for inner in value[:half]]
        tail = [elide(inner, items, chars) for inner in value[-half:]]
        return [*head, f"… {len(value) - 2 * half} of {len(value)} items left out …", *tail]
    if isinstance(value, dict):
        return {key: elide(inner, items, chars) for key, inner in value.items()}
    return value
