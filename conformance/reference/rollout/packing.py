"""Long lists of numbers as arrays, so that a rollout crosses Ray's object store as buffers and not as objects.

A pickled list of a hundred thousand ids is as many objects to make, on each side; an array is one buffer, which the
receiver sees read-only in shared memory.
"""

from array import array
from pickle import PickleBuffer
from typing import Any

JSON = Any

WORTH_IT = 64
"""Shorter lists stay as they are."""
CODES = {int: "q", float: "d"}


class Numbers:
    """An array of 64-bit integers or doubles; ``values`` may be read-only memory of somebody else's."""

    def __init__(self, code: str, values: Any) -> None:
        self.code = code
        self.values = memoryview(values).cast("B")

    def __reduce_ex__(self, protocol: Any) -> tuple[type["Numbers"], tuple[str, Any]]:
        return Numbers, (self.code, PickleBuffer(self.values) if protocol >= 5 else bytes(self.values))

    def tolist(self) -> list[Any]:
        """The numbers, to the bit; the memory is not kept."""
        return self.values.cast(self.code).tolist()  # type: ignore[call-overload, no-any-return]


def packed(tree: JSON) -> JSON:
    """The tree with its long lists of numbers of one type as arrays; all else as it is."""
    if isinstance(tree, dict):
        return {key: packed(value) for key, value in tree.items()}
    if not isinstance(tree, list):
        return tree
    code = CODES.get(type(tree[0])) if len(tree) >= WORTH_IT else None
    # A bool among integers, or an integer among floats, would come back as another type.
    if code is not None and len(set(map(type, tree))) == 1:
        try:
            return Numbers(code, array(code, tree))
        except OverflowError:
            return tree
    return [packed(value) for value in tree] if _nests(tree) else tree


def unpacked(tree: JSON) -> JSON:
    """The same tree with lists."""
    if isinstance(tree, Numbers):
        return tree.tolist()
    if isinstance(tree, dict):
        return {key: unpacked(value) for key, value in tree.items()}
    return [unpacked(value) for value in tree] if isinstance(tree, list) and _nests(tree) else tree


def _nests(tree: list[JSON]) -> bool:
    """Whether anything in it can hold a list; one of numbers and nulls is not walked."""
    return not set(map(type, tree)) <= {int, float, bool, str, type(None)}
