"""Where two values first differ, told in a window a reader can take in.

Types count: ``True`` is not ``1``, nor ``1`` ``1.0``. Floats count to the last
bit: ``0.0`` is not ``-0.0``; NaN is NaN.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BLOCK = 1024
"""Values compared at a time by the interpreter's own slice comparison, before any loop looks closer."""

_EXACT = {int, str, bool, type(None)}
"""Types of which equal values are the same value, once their types are equal."""

_ABSENT = object()


@dataclass(frozen=True, slots=True)
class ListDifference:
    """The first place where two lists differ.

    ``expected`` and ``seen`` are the values from index ``start`` on, a few either side of ``index``; a list that
    ends first has a shorter window. The lengths are those of the whole lists.
    """

    index: int
    start: int
    expected: tuple[Any, ...]
    seen: tuple[Any, ...]
    expected_length: int
    seen_length: int

    def shown(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The two sides as JSON objects of the same keys, for ``expected`` and ``seen`` of a check."""
        sides = ((self.expected, self.expected_length), (self.seen, self.seen_length))
        one, other = (
            {"index": self.index, "from": self.start, "values": list(values), "length": length}
            for values, length in sides
        )
        return one, other

    def __str__(self) -> str:
        def side(values: tuple[Any, ...], length: int) -> str:
            marked = [
                f"»{value!r}«" if self.start + at == self.index else repr(value) for at, value in enumerate(values)
            ]
            if self.index >= length:
                marked.append("»end«")
            before = "… " if self.start else ""
            after = " …" if self.start + len(values) < length else ""
            return f"{before}{' '.join(marked)}{after} ({length} values)"

        return (
            f"first difference at index {self.index}: expected {side(self.expected, self.expected_length)}, "
            f"seen {side(self.seen, self.seen_length)}"
        )


@dataclass(frozen=True, slots=True)
class TreeDifference:
    """The first place, in the order of the expected tree, where two trees of JSON differ.

    ``path`` reads like ``$.messages[3].content``. ``what`` is one of value, type, missing (not seen), extra (not
    expected), key order. For missing and extra the absent side is None.
    """

    path: str
    what: str
    expected: Any
    seen: Any

    def shown(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The two sides as JSON objects of the same keys, for ``expected`` and ``seen`` of a check."""
        place = {"path": self.path, "what": self.what}
        return {**place, "value": self.expected}, {**place, "value": self.seen}

    def __str__(self) -> str:
        expected = "nothing" if self.what == "extra" else _brief(self.expected)
        seen = "nothing" if self.what == "missing" else _brief(self.seen)
        return f"{self.path}: {self.what}: expected {expected}, seen {seen}"


def first_difference(expected: Sequence[Any], seen: Sequence[Any]) -> int | None:
    """The first index at which the lists differ, or one ends; None for equal lists."""
    shorter = min(len(expected), len(seen))
    for at in range(0, shorter, BLOCK):
        upto = min(at + BLOCK, shorter)
        left, right = expected[at:upto], seen[at:upto]
        if _same_block(left, right):
            continue
        for offset, (one, other) in enumerate(zip(left, right, strict=True)):
            if tree_difference(one, other) is not None:
                return at + offset
    return None if len(expected) == len(seen) else shorter


def list_difference(expected: Sequence[Any], seen: Sequence[Any], around: int = 3) -> ListDifference | None:
    """The first difference with ``around`` values on either side; None for equal lists."""
    index = first_difference(expected, seen)
    if index is None:
        return None
    start, stop = max(index - around, 0), index + around + 1
    return ListDifference(index, start, tuple(expected[start:stop]), tuple(seen[start:stop]), len(expected), len(seen))


def tree_difference(expected: Any, seen: Any, *, key_order: bool = False) -> TreeDifference | None:
    """The first difference of two JSON values; None when they are the same.

    With ``key_order`` objects must also hold their keys in the same order. Nesting of any depth is walked.
    """
    open_pairs: list[tuple[str, Any, Any]] = [("$", expected, seen)]
    while open_pairs:
        path, one, other = open_pairs.pop()
        if one is _ABSENT:
            return TreeDifference(path, "extra", None, other)
        if other is _ABSENT:
            return TreeDifference(path, "missing", one, None)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            if key_order and list(one) != list(other) and one.keys() == other.keys():
                return TreeDifference(path, "key order", list(one), list(other))
            keys = [*one, *(key for key in other if key not in one)]
            inner = [(f"{path}{_step(key)}", one.get(key, _ABSENT), other.get(key, _ABSENT)) for key in keys]
            open_pairs.extend(reversed(inner))
        elif _is_list(one) and _is_list(other):
            open_pairs.extend(_list_pairs(path, one, other))
        elif type(one) is not type(other):
            return TreeDifference(path, "type", one, other)
        elif not _same_scalar(one, other):
            return TreeDifference(path, "value", one, other)
    return None


def _same_block(left: Sequence[Any], right: Sequence[Any]) -> bool:
    """Whether two slices are surely the same; False may also mean that a closer look is needed."""
    left, right = list(left), list(right)
    types = list(map(type, left))
    kinds = set(types)
    if not kinds <= _EXACT | {float} or types != list(map(type, right)) or left != right:
        return False
    # Equal floats can differ in the sign of zero, which only their text shows.
    return float not in kinds or 0.0 not in left or repr(left) == repr(right)


def _same_scalar(one: Any, other: Any) -> bool:
    return repr(one) == repr(other) if isinstance(one, float) else bool(one == other)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _list_pairs(path: str, one: Sequence[Any], other: Sequence[Any]) -> list[tuple[str, Any, Any]]:
    """What is left to compare of two lists, last first; blocks that are surely the same are left out."""
    shorter = min(len(one), len(other))
    pairs: list[tuple[str, Any, Any]] = []
    for at in range(0, shorter, BLOCK):
        left, right = one[at : min(at + BLOCK, shorter)], other[at : min(at + BLOCK, shorter)]
        if not _same_block(left, right):
            pairs.extend((f"{path}[{at + n}]", *both) for n, both in enumerate(zip(left, right, strict=True)))
    if len(one) > shorter:
        pairs.append((f"{path}[{shorter}]", one[shorter], _ABSENT))
    elif len(other) > shorter:
        pairs.append((f"{path}[{shorter}]", _ABSENT, other[shorter]))
    return pairs[::-1]


def _step(key: Any) -> str:
    return f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{key!r}]"


def _brief(value: Any, chars: int = 120) -> str:
    try:
        text = repr(value)
    except RecursionError:
        return f"a {type(value).__name__} nested too deeply to show"
    return text if len(text) <= chars else f"{text[: chars // 2]}…{text[-chars // 2 :]} ({len(text)} characters)"
