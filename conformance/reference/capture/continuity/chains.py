"""The chains of one caller: which call continued which, with the tokens of each."""

import hashlib
import json
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain as joined

from conformance.reference.capture.continuity.sameness import agrees
from conformance.reference.capture.jsontext import JSON, JSONObject

REASONING_KEYS = ("reasoning", "reasoning_content")
"""Where a message of a history may tell what was thought before it."""


@dataclass(frozen=True)
class Spoken:
    """The messages of a request, each with its digest."""

    messages: Sequence[JSONObject]
    digests: tuple[bytes, ...]

    @property
    def has_answers(self) -> bool:
        return any(message.get("role") == "assistant" for message in self.messages)

    def answered_after(self, depth: int) -> bool:
        """Whether an assistant speaks behind the first ``depth`` messages."""
        return any(message.get("role") == "assistant" for message in self.messages[depth:])


@dataclass(eq=False)
class Turn:
    """One answered call. Messages and tokens are those beyond the ``parent``'s; the answer stands last.

    ``generated`` counts the tokens of the answer. ``self_ended``: the model itself ended it, so that its last token is
    the end of a turn. ``rendering`` names all but the messages that its prompt was rendered with. ``reasoning`` is what
    was thought before the answer; it is in no message. ``spellings`` are digests of rewrites of its messages, and
    ``length`` counts the tokens of the whole history.
    """

    parent: "Turn | None"
    messages: Sequence[JSONObject]
    digests: tuple[bytes, ...]
    ids: "array[int]"
    generated: int
    self_ended: bool
    rendering: str | None
    depth: int
    number: int
    uuid: str
    reasoning: str | None = None
    delivered: bool = True
    children: list["Turn"] = field(default_factory=list)
    spellings: set[bytes] = field(default_factory=set)
    length: int = field(init=False)

    def __post_init__(self) -> None:
        self.length = len(self.ids) + (0 if self.parent is None else self.parent.length)

    def chain(self) -> "Iterator[Turn]":
        """This turn and all that it continues, back to the first."""
        turn: Turn | None = self
        while turn is not None:
            yield turn
            turn = turn.parent

    def history(self) -> list[int]:
        """Prompt and generation."""
        pieces = [turn.ids for turn in self.chain()]
        return list(joined.from_iterable(reversed(pieces)))

    def opens(self, prompt: "array[int]") -> bool:
        """Whether a prompt starts with the history. It is not put together for that: this is done on the event loop."""
        end = self.length
        if len(prompt) < end:
            return False
        for turn in self.chain():
            start = end - len(turn.ids)
            if prompt[start:end] != turn.ids:
                return False
            end = start
        return True


class Chains:
    """A tree of turns for each first call. Belongs to one thread."""

    def __init__(self) -> None:
        self._roots: list[Turn] = []
        self.turns = 0
        self.weight = 0

    def matches(self, spoken: Spoken) -> list[Turn]:
        """The turns whose whole conversation, answer included, the messages start with and go on from; best first.

        The longest is best; of equal ones that whose thoughts the messages do not contradict, then that which reached
        its client, and of these the latest.
        """
        found: list[tuple[Turn, int]] = []
        open_turns = [(turn, 0) for turn in self._roots]
        while open_turns:
            turn, contradicted = open_turns.pop()
            if _goes_on_from(spoken, turn):
                contradicted += _thought_otherwise(spoken, turn)
                found.append((turn, contradicted))
                open_turns.extend((child, contradicted) for child in turn.children)
        found.sort(key=lambda pair: (pair[0].depth, -pair[1], pair[0].delivered, pair[0].number), reverse=True)
        return [turn for turn, _ in found]

    def add(self, turn: Turn) -> None:
        siblings = self._roots if turn.parent is None else turn.parent.children
        siblings.append(turn)
        self.turns += 1
        self.weight += len(turn.ids) + sum(map(_size, turn.messages))

    def __iter__(self) -> Iterator[Turn]:
        open_turns = list(self._roots)
        while open_turns:
            turn = open_turns.pop()
            yield turn
            open_turns.extend(turn.children)


def _goes_on_from(spoken: Spoken, turn: Turn) -> bool:
    if turn.depth >= len(spoken.messages):
        return False
    start = turn.depth - len(turn.messages)
    if spoken.digests[start : turn.depth] == turn.digests:
        return True
    pairs = zip(turn.digests, spoken.digests[start : turn.depth], strict=True)
    differing = [at for at, (known, given) in enumerate(pairs) if known != given]
    return all(_is_spelling(turn, at, spoken.messages[start + at]) for at in differing)


def _is_spelling(turn: Turn, at: int, message: JSONObject) -> bool:
    """Whether a message is a rewrite of the turn's own. That is found out once: it takes time, and every call asks."""
    told = f"{at} {json.dumps(message)}".encode()
    spelling = hashlib.blake2b(told, digest_size=16).digest()
    if spelling not in turn.spellings:
        if not agrees(turn.messages[at], message):
            return False
        turn.spellings.add(spelling)
    return True


def _thought_otherwise(spoken: Spoken, turn: Turn) -> bool:
    """Whether the history tells another thought than the turn's. One that tells none says nothing about it."""
    message = spoken.messages[turn.depth - 1]
    told = next((text for key in REASONING_KEYS if isinstance(text := message.get(key), str) and text.strip()), None)
    return told is not None and told.split() != (turn.reasoning or "").split()


def _size(message: JSONObject) -> int:
    """Roughly what a message weighs, in the size of a token: all its texts, wherever they stand, pictures included."""
    size = 100
    values: list[JSON] = [message]
    while values:
        value = values.pop()
        if isinstance(value, str):
            size += 8 + len(value) // 8
        elif isinstance(value, dict):
            values.extend(value.values())
        elif isinstance(value, list):
            values.extend(value)
        else:
            size += 4
    return size
