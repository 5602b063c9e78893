"""Which call continues which: by tokens where they are contiguous, by messages where only the words are."""

from bisect import bisect_right
from collections.abc import Sequence, Set
from dataclasses import dataclass

from conformance.contract.vocabulary import NoteCode, ReasonCode
from conformance.reference.rebuild.tokens import Node
from conformance.reference.rebuild.turns import Keys, Turn


@dataclass(frozen=True)
class Link:
    """``contiguous`` is false where a call continues another in words but not in tokens."""

    parent: Turn
    contiguous: bool


def links(turns: Sequence[Turn], keys: Keys) -> dict[str, Link]:
    """For each turn that continues another, by uuid, what it continues. The links hold no cycle."""
    found: dict[str, Link] = {}
    among = set(turns)
    for turn in turns:
        parent = token_parent(turn, among)
        if parent is not None:
            found[turn.uuid] = Link(parent, contiguous=True)
    by_words = sorted(turns, key=lambda turn: (len(turn.messages), turn.place))
    word_lengths = [len(turn.messages) for turn in by_words]
    for turn in turns:
        link = found.get(turn.uuid)
        least = len(link.parent.messages) if link else 0
        first, last = bisect_right(word_lengths, least), bisect_right(word_lengths, turn.request_length)
        parent = word_parent(turn, by_words[first:last], keys)
        if parent is not None and not _descends(parent, turn, found):
            found[turn.uuid] = Link(parent, contiguous=False)
    return found


def token_parent(turn: Turn, among: Set[Turn]) -> Turn | None:
    """The turn with the longest prompt plus generation that the turn's prompt starts with."""
    node: Node | None = turn.prompt_end
    while node is not None:
        ended = [other for other in node.ended if other in among and other is not turn]
        if ended:
            return max(ended, key=lambda other: other.place)
        node = node.above
    return None


def word_parent(turn: Turn, candidates: Sequence[Turn], keys: Keys) -> Turn | None:
    """The candidate with the longest conversation, generated turn included, that the turn's request starts with."""
    for candidate in reversed(candidates):
        without_tools = candidate.tools and not turn.tools
        if not without_tools and in_words(candidate, turn, keys):
            return candidate
    return None


def in_words(earlier: Turn, later: Turn, keys: Keys) -> bool:
    """Whether the later request starts with the earlier conversation, up to declared rewrites."""
    length = len(earlier.messages)
    if later.request_length < length:
        return False
    if later.normal[:length] == earlier.normal:
        return True
    return all(map(keys.agree, earlier.exact, later.exact[:length]))


def _descends(turn: Turn, ancestor: Turn, found: dict[str, Link]) -> bool:
    while turn is not ancestor:
        link = found.get(turn.uuid)
        if link is None:
            return False
        turn = link.parent
    return True


def roles_added(parent: Turn | None, turn: Turn) -> list[str]:
    """The roles of the messages that the turn's request adds to the parent's conversation."""
    start = 0 if parent is None else len(parent.messages)
    return [message["role"] for message in turn.messages[start:-1]]


@dataclass(frozen=True)
class Judgement:
    """What one link is worth: ``reason`` is null where the chain goes on; ``notes`` are told either way."""

    reason: ReasonCode | None
    detail: str
    notes: tuple[NoteCode, ...]


def judge(link: Link, turn: Turn, assembled: Sequence[int], keys: Keys) -> Judgement:
    """Whether the turn goes on the chain whose messages, as emitted, have the exact numbers ``assembled``."""
    parent = link.parent
    notes = []
    if (turn.tools_key, turn.choice_key) != (parent.tools_key, parent.choice_key):
        notes.append(NoteCode.TOOLS_CHANGED)
    if not link.contiguous:
        return Judgement(ReasonCode.TOKENS_DISAGREE, "prompt ids do not start with those before it", tuple(notes))
    if turn.model != parent.model:
        detail = f"the served model changed from {parent.model} to {turn.model}"
        return Judgement(ReasonCode.MODEL_CHANGED, detail, tuple(notes))
    if not history_agrees(assembled, parent, turn, keys):
        return Judgement(ReasonCode.HISTORY_DISAGREES, "history differs and no rewrite explains it", tuple(notes))
    if set(roles_added(parent, turn)) <= {"assistant"}:
        return Judgement(ReasonCode.HISTORY_DISAGREES, "it adds no message of the environment", tuple(notes))
    if turn.exact[: len(parent.exact)] != parent.exact:
        notes.append(NoteCode.REWRITTEN)
    return Judgement(None, "", tuple(notes))


def history_agrees(assembled: Sequence[int], parent: Turn, turn: Turn, keys: Keys) -> bool:
    length = len(parent.exact)
    if turn.request_length < length:
        return False
    echoed = turn.exact[:length]
    if echoed == parent.exact:
        return True
    return all(map(keys.agree, assembled, echoed))
