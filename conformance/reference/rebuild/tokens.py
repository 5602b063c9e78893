"""Token sequences that share their beginnings: each prompt is kept once as far as an earlier one goes with it.

The prompts of a conversation are nearly all prefix: kept each for itself, a thousand of them are a thousand times
their length. Here they are the paths of a tree, eight bytes a token, and "starts with" is "lies below".
"""

from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from conformance.reference.rebuild.turns import Turn

WIDTH = 8
"""Bytes a token."""


class Node:
    """A place in the tree, and so the sequence that leads there: ``depth`` tokens, the last of them ``edge``.

    ``ended`` are the turns whose prompt plus generation is that sequence.
    """

    __slots__ = ("above", "below", "depth", "edge", "ended")

    def __init__(self, above: "Node | None", depth: int, edge: bytes) -> None:
        self.above = above
        self.depth = depth
        self.edge = edge
        self.below: dict[bytes, Node] = {}
        self.ended: list[Turn] = []

    def since(self, start: int) -> "array[int]":
        """The tokens from place ``start`` on."""
        edges: list[bytes] = []
        node = self
        while node.above is not None and node.depth > start:
            edges.append(node.edge)
            node = node.above
        surplus = max(0, min(start, self.depth) - node.depth)
        return array("q", b"".join(reversed(edges))[surplus * WIDTH :])

    def starts_with(self, other: "Node") -> bool:
        node: Node | None = self
        while node is not None and node.depth > other.depth:
            node = node.above
        return node is other


class TokenTree:
    """All token sequences of a source."""

    def __init__(self) -> None:
        self.root = Node(None, 0, b"")
        self._last = (b"", self.root)

    def add(self, ids: bytes) -> Node:
        """The node of a whole sequence; quick where it goes on from the one added before."""
        before, node = self._last
        at = len(before) if ids.startswith(before) else 0
        found = self.extend(node if at else self.root, at // WIDTH, ids[at:])
        self._last = (ids, found)
        return found

    def extend(self, node: Node, depth: int, added: bytes) -> Node:
        """The node of the first ``depth`` tokens that lead to ``node``, followed by ``added``."""
        while node.above is not None and node.above.depth >= depth:
            node = node.above
        if depth < node.depth:
            node = _split(node, depth)
        at = 0
        while at < len(added):
            child = node.below.get(added[at : at + WIDTH])
            if child is None:
                child = node.below[added[at : at + WIDTH]] = Node(
                    node, node.depth + (len(added) - at) // WIDTH, added[at:]
                )
            elif not added.startswith(child.edge, at):
                shared = common_prefix(added[at : at + len(child.edge)], child.edge) // WIDTH
                child = _split(child, node.depth + shared)
            node = child
            at += len(node.edge)
        return node


def _split(node: Node, depth: int) -> Node:
    """A new node above ``node``, so that the nodes that are known stay where they are."""
    above = node.above
    assert above is not None
    length = (depth - above.depth) * WIDTH
    upper = Node(above, depth, node.edge[:length])
    above.below[upper.edge[:WIDTH]] = upper
    node.above, node.edge = upper, node.edge[length:]
    upper.below[node.edge[:WIDTH]] = node
    return upper


def common_prefix(one: bytes | bytearray, other: bytes | bytearray, start: int = 0) -> int:
    """How many bytes of ``other`` stand in ``one`` from ``start`` on. Nothing is copied."""
    low, high = 0, min(len(one) - start, len(other))
    with memoryview(other) as view:
        if one.startswith(view[:high], start):
            return high
        while low < high:
            middle = (low + high + 1) // 2
            if one.startswith(view[low:middle], start + low):
                low = middle
            else:
                high = middle - 1
    return low


class Tokens(Sequence[int]):
    """The ids that lead to a node, read from the tree when they are asked for."""

    def __init__(self, node: Node) -> None:
        self.node = node

    def __len__(self) -> int:
        return self.node.depth

    @overload
    def __getitem__(self, place: int) -> int: ...
    @overload
    def __getitem__(self, place: slice) -> list[int]: ...
    def __getitem__(self, place: int | slice) -> int | list[int]:
        if isinstance(place, int):
            return self.node.since(0)[place]
        start, stop, step = place.indices(len(self))
        return self.node.since(start)[: max(0, stop - start) : step].tolist()

    def __iter__(self) -> Iterator[int]:
        return iter(self.node.since(0))

    def __eq__(self, other: object) -> bool:
        return list(self) == (list(other) if isinstance(other, Tokens) else other)

    __hash__ = None  # type: ignore[assignment]  # equal to lists, which have none either


def token_bytes(ids: list[int]) -> bytes:
    """Raises OverflowError for an id no engine has (2^63 and above)."""
    return array("q", ids).tobytes()
