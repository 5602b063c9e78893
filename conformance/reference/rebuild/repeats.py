"""A record file without what it repeats: the messages and prompt ids that an earlier record of the source had too.

Nearly all of a record is the history of its call, letter by letter as in the record before. What is equal as text is
equal as JSON, and need not be parsed again. Whatever is not of the plain form is left to the parser.
"""

import json
import re
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from conformance.reference.rebuild.tokens import Node, TokenTree, common_prefix, token_bytes

JSON = Any

KEPT = 4
"""Records whose texts are kept: enough for agents that take turns."""

_MESSAGES, _IDS = b'"messages":', b'"prompt_token_ids":'
_CUT = "\x00cut"
_PLACE = json.dumps(_CUT).encode()
_BLANKS = " \t\n\r"
_HUGE = re.compile(rb"[0-9]{19}")
_decode = json.JSONDecoder().raw_decode


@dataclass(frozen=True, eq=False)
class Long:
    """The long texts of one record: its messages and prompt ids without their brackets, where each message ends,
    the exact numbers of the messages, and the node of the prompt.
    """

    messages: bytes
    ends: list[int]
    numbers: "array[int]"
    ids: bytes
    prompt: Node


@dataclass(frozen=True, eq=False)
class Cut:
    """A record of which ``messages`` are only those that are ``new``; the others have the exact numbers ``known``."""

    record: dict[str, JSON]
    known: "array[int]"
    new: list[JSON]
    prompt: Node
    messages: bytes
    ends: list[int]
    ids: bytes


class Repeats:
    """Cuts the records of one source, each against those read before."""

    def __init__(self, tree: TokenTree) -> None:
        self._tree = tree
        self._kept: deque[Long] = deque(maxlen=KEPT)

    def remember(self, cut: Cut, numbers: "array[int]") -> None:
        """Once a record is found valid, the next ones are cut against it."""
        self._kept.appendleft(Long(cut.messages, cut.ends, numbers, cut.ids, cut.prompt))

    def cut(self, raw: bytes) -> Cut | None:
        """Null where the text is not of the plain form, or holds what is no token id; no error is raised."""
        try:
            return self._cut(raw)
        except (ValueError, LookupError, RecursionError, OverflowError):
            return None

    def _cut(self, raw: bytes) -> Cut | None:
        start = _array_after(raw, raw.find(_MESSAGES), _MESSAGES)
        if start is None or raw.count(b"{", 0, start) != 1 or raw.count(b"[", 0, start) != 1:
            return None  # only what stands behind scalars alone is sure to be the record's own
        known, new, ends, end = self._messages(raw, start)
        first = _array_after(raw, raw.find(_IDS, end), _IDS)
        if first is None:
            return None
        last = raw.index(b"]", first)
        record = _parsed(raw[: start - 1] + _PLACE + raw[end + 1 : first - 1] + _PLACE + raw[last + 1 :])
        if not isinstance(record, dict) or [record.get(key) for key in ("messages", "prompt_token_ids")] != [_CUT] * 2:
            return None
        ids = raw[first:last]
        prompt = self._prompt(ids)
        return None if prompt is None else Cut(record, known, new, prompt, raw[start:end], ends, ids)

    def _messages(self, raw: bytes, start: int) -> "tuple[array[int], list[JSON], list[int], int]":
        """The numbers of the messages that are known, the others, where each ends, and where the array does."""
        known, numbers, ends = 0, array("I"), list[int]()
        for long in self._kept:
            length = len(long.messages)
            whole = raw.startswith(long.messages, start)
            shared = length if whole else common_prefix(raw[start : start + length], long.messages)
            count = bisect_right(long.ends, shared)
            if count and long.ends[count - 1] > known and raw[start + long.ends[count - 1]] in b",]":
                known, numbers, ends = long.ends[count - 1], long.numbers[:count], long.ends[:count]
            if whole:
                break
        at = start + known
        text = raw[at : raw.index(_IDS, at)].decode()
        new: list[JSON] = []
        told, end = 0, at
        for value, until in _elements(text, is_first=not known):
            new.append(value)
            end += until - told if text.isascii() else len(text[told:until].encode())
            told = until
            ends.append(end - start)
        place = _skip(text, told)
        if text[place] != "]":
            raise ValueError("no end of the messages")
        return numbers, new, ends, end + place - told

    def _prompt(self, ids: bytes) -> Node | None:
        node, depth, at = self._tree.root, 0, 0
        for long in self._kept:
            whole = ids.startswith(long.ids) and ids[len(long.ids) : len(long.ids) + 1] in (b",", b"")
            length = len(long.ids) if whole else _border(ids, long.ids)
            if length > at:
                node, at = long.prompt, length
                depth = node.depth if whole else ids.count(b",", 0, length) + 1
            if whole:
                break
        # What is known stands in as one id, so that a comma without one after it is seen.
        added: list[JSON] = orjson.loads(b"[0" + ids[at:] + b"]")[1:] if at else orjson.loads(b"[" + ids + b"]")
        if (added and (set(map(type, added)) != {int} or min(added) < 0)) or not (added or at):
            return None
        return self._tree.extend(node, depth, token_bytes(added))


def _array_after(raw: bytes, key: int, name: bytes) -> int | None:
    """The first byte inside the array that is the value of a key, or null."""
    if key < 0:
        return None
    at = key + len(name)
    while raw[at : at + 1] in (b" ", b"\t", b"\n", b"\r"):
        at += 1
    return at + 1 if raw[at : at + 1] == b"[" else None


def _elements(text: str, *, is_first: bool) -> Iterator[tuple[JSON, int]]:
    """The elements of an array from here on, each with its end; before each but the first a comma."""
    at = _skip(text, 0)
    while text[at] != "]":
        if not is_first:
            if text[at] != ",":
                raise ValueError("no comma between messages")
            at = _skip(text, at + 1)
        value, end = _decode(text, at)
        yield value, end
        at, is_first = _skip(text, end), False


def _skip(text: str, at: int) -> int:
    while text[at] in _BLANKS:
        at += 1
    return at


def _border(ids: bytes, known: bytes) -> int:
    """How far two texts of ids have whole ids in common."""
    shared = common_prefix(ids, known)
    if ids[shared : shared + 1] in (b",", b"") and known[shared : shared + 1] in (b",", b""):
        return shared
    return max(0, ids.rfind(b",", 0, shared))


def _parsed(text: bytes) -> JSON:
    """As the standard library has it; orjson is quicker, but makes floats of huge integers and refuses surrogates."""
    if _HUGE.search(text):
        return json.loads(text)
    try:
        return orjson.loads(text)
    except ValueError:
        return json.loads(text)
