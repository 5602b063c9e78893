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
from secrets import token_hex
from typing import Any

import orjson

from conformance.reference.rebuild.tokens import Node, TokenTree, common_prefix, token_bytes

JSON = Any

KEPT = 4
"""Conversations whose texts are kept: enough for agents that take turns."""

_MESSAGES, _IDS = b'"messages":', b'"prompt_token_ids":'
_CUT = f"cut {token_hex(16)}"  # no record can hold it
_PLACE = json.dumps(_CUT).encode()
_BLANKS = " \t\n\r"
_HUGE = re.compile(rb"[0-9]{19}")
_decode = json.JSONDecoder().raw_decode

Text = bytes | bytearray


@dataclass(eq=False)
class Long:
    """The long texts of a record: its messages and prompt ids without their brackets, where each message ends,
    the exact numbers of the messages, and the node of the prompt.

    A record that goes on from it to the letter takes its place, so that a conversation is one text that grows.
    """

    messages: bytearray
    ends: "array[int]"
    numbers: "array[int]"
    ids: bytearray
    prompt: Node


@dataclass(frozen=True, eq=False)
class Cut:
    """A record of which ``messages`` are only those that are ``new``; the others have the exact numbers ``known``.

    ``texts`` are its messages and prompt ids, of which those of ``before`` are left out.
    """

    record: dict[str, JSON]
    known: "array[int]"
    new: list[JSON]
    prompt: Node
    before: Long | None
    texts: tuple[Text, Text]
    ends: "array[int]"


@dataclass(frozen=True, eq=False)
class _Messages:
    """What is known of an array of messages, what is new, where each ends, and where the array does.

    ``before`` is the text that all of it goes on from.
    """

    known: "array[int]"
    new: list[JSON]
    before: Long | None
    ends: "array[int]"
    end: int


class Repeats:
    """Cuts the records of one source, each against those read before."""

    def __init__(self, tree: TokenTree) -> None:
        self._tree = tree
        self._kept: deque[Long] = deque(maxlen=KEPT)

    def remember(self, cut: Cut, numbers: "array[int]") -> None:
        """Once a record is found valid, the next ones are cut against it; before any other record is cut."""
        messages, ids = cut.texts
        if cut.before is None:
            self._kept.appendleft(Long(bytearray(messages), cut.ends, numbers, bytearray(ids), cut.prompt))
            return
        long = cut.before
        self._kept.remove(long)
        self._kept.appendleft(long)
        long.messages += messages
        long.ends.extend(cut.ends)
        long.ids += ids
        long.numbers, long.prompt = numbers, cut.prompt

    def cut(self, raw: Text) -> Cut | None:
        """Null where the text is not of the plain form, or holds what is no token id; no error is raised."""
        try:
            return self._cut(raw)
        except (ValueError, LookupError, RecursionError, OverflowError):
            return None

    def _cut(self, raw: Text) -> Cut | None:
        start = _array_after(raw, raw.find(_MESSAGES), _MESSAGES)
        if start is None or raw.count(b"{", 0, start) != 1 or raw.count(b"[", 0, start) != 1:
            return None  # only what stands behind scalars alone is sure to be the record's own
        found = self._messages(raw, start)
        first = _array_after(raw, raw.find(_IDS, found.end), _IDS)
        if first is None:
            return None
        last = raw.index(b"]", first)
        record = _parsed(raw[: start - 1] + _PLACE + raw[found.end + 1 : first - 1] + _PLACE + raw[last + 1 :])
        if not isinstance(record, dict) or [record.get(key) for key in ("messages", "prompt_token_ids")] != [_CUT] * 2:
            return None
        prompt = self._prompt(raw, first, last)
        if prompt is None:
            return None
        before, ends, of_messages, of_ids = found.before, found.ends, start, first
        if before is not None and _goes_on(raw, before.ids, first):
            of_messages, of_ids = start + len(before.messages), first + len(before.ids)
        elif before is not None:
            ends, before = before.ends + ends, None
        return Cut(
            record, found.known, found.new, prompt, before, (raw[of_messages : found.end], raw[of_ids:last]), ends
        )

    def _messages(self, raw: Text, start: int) -> _Messages:
        known, numbers, ends = 0, array("I"), array("Q")
        before = next((long for long in self._kept if raw.startswith(long.messages, start)), None)
        candidates = list(self._kept) if before is None else [before]
        for long in candidates:
            shared = len(long.messages) if before else common_prefix(raw, long.messages, start)
            count = bisect_right(long.ends, shared)
            if count and long.ends[count - 1] > known and raw[start + long.ends[count - 1]] in b",]":
                known, numbers, ends = long.ends[count - 1], long.numbers[:count], long.ends[:count]
        at = start + known
        if before is not None and known == len(before.messages):
            ends = array("Q")
        else:
            before = None
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
        return _Messages(numbers, new, before, ends, end + place - told)

    def _prompt(self, raw: Text, first: int, last: int) -> Node | None:
        node, depth, at = self._tree.root, 0, 0
        for long in self._kept:
            whole = _goes_on(raw, long.ids, first)
            length = len(long.ids) if whole else _border(raw, long.ids, first)
            if length > at:
                node, at = long.prompt, length
                depth = node.depth if whole else raw.count(b",", first, first + length) + 1
            if whole:
                break
        # What is known stands in as one id, so that a comma without one after it is seen.
        text = raw[first + at : last]
        added: list[JSON] = orjson.loads(b"[0" + text + b"]")[1:] if at else orjson.loads(b"[" + text + b"]")
        if (added and (set(map(type, added)) != {int} or min(added) < 0)) or not (added or at):
            return None
        return self._tree.extend(node, depth, token_bytes(added))


def _array_after(raw: Text, key: int, name: bytes) -> int | None:
    """The first byte inside the array that is the value of a key, or null."""
    if key < 0:
        return None
    at = key + len(name)
    while raw[at] in b" \t\n\r":
        at += 1
    return at + 1 if raw[at] == ord("[") else None


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


def _goes_on(raw: Text, known: bytearray, first: int) -> bool:
    """Whether the array of ids that starts at ``first`` starts with the ``known`` ids, to the letter."""
    return raw.startswith(known, first) and raw[first + len(known)] in b",]"


def _border(raw: Text, known: bytearray, first: int) -> int:
    """How far the array of ids that starts at ``first`` has whole ids in common with the ``known`` ones."""
    shared = common_prefix(raw, known, first)
    if raw[first + shared] in b",]" and (shared == len(known) or known[shared] == ord(",")):
        return shared
    return max(first, raw.rfind(b",", first, first + shared)) - first


def _parsed(text: Text) -> JSON:
    """As the standard library has it; orjson is quicker, but makes floats of huge integers and refuses surrogates."""
    if _HUGE.search(text):
        return json.loads(text)
    try:
        return orjson.loads(text)
    except ValueError:
        return json.loads(text)
