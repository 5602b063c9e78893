"""How deep a JSON value nests, found without recursion, so that no input can exhaust the stack."""

from typing import Any

DEEPEST = 100
"""No harness, tool schema or argument nests deeper; what does is refused before anything recurses into it."""


def too_deep(value: Any, limit: int = DEEPEST) -> bool:
    level = [value]
    for _ in range(limit):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return False
    return True


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
