"""Which conversation of an agent is the rollout, and which calls only stood beside it: by structure, never by text."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from conformance.contract.vocabulary import ReasonCode
from conformance.reference.rebuild.siblings import Family
from conformance.reference.rebuild.turns import Turn


@dataclass(frozen=True)
class Segment:
    """What grew from one start without a rewrite: ``roots`` (several are a fork) and all turns below them, in order."""

    roots: list[Turn]
    turns: list[Turn]


@dataclass(eq=False)
class Line:
    """Segments of one conversation, each starting after the one before had ended (compaction)."""

    segments: list[Segment]

    @property
    def turns(self) -> list[Turn]:
        return [turn for segment in self.segments for turn in segment.turns]

    @property
    def start(self) -> Turn:
        return self.segments[0].turns[0]

    @property
    def end(self) -> tuple[str, str]:
        """Where its last turn sorts."""
        return self.segments[-1].turns[-1].place

    @property
    def longest(self) -> int:
        return max(len(segment.turns) for segment in self.segments)


@dataclass(frozen=True)
class Choice:
    """The lines to deliver, the main one first; ``reason`` is null where the main one stands alone."""

    lines: list[Line]
    side_calls: list[Turn]
    reason: ReasonCode | None


def segments(family: Family) -> list[Segment]:
    found = []
    for roots in family.roots:
        turns, open_turns = [], list(roots)
        while open_turns:
            turn = open_turns.pop()
            turns.append(turn)
            open_turns.extend(family.children.get(turn.uuid, []))
        found.append(Segment(roots, sorted(turns, key=lambda turn: turn.place)))
    return sorted(found, key=lambda segment: segment.turns[0].place)


def lines(parts: Sequence[Segment]) -> list[Line]:
    """The segments as conversations. They come in order of their first turn."""
    found: list[Line] = []
    with_its_tools: dict[int, list[Line]] = defaultdict(list)
    for segment in parts:
        start = segment.turns[0]
        near = reversed(with_its_tools[start.tools_key])
        home = next((line for line in near if line.end < start.place and is_alike(line, start)), None)
        if home is not None:
            home.segments.append(segment)
            continue
        found.append(Line([segment]))
        with_its_tools[start.tools_key].append(found[-1])
    return found


def is_alike(line: Line, start: Turn) -> bool:
    """Whether a conversation that starts with ``start`` may be the line's own, rewritten."""
    if start.tools_key != line.start.tools_key:
        return False
    if start.system == line.start.system:
        return True
    return holds_a_turn(line, start)


def holds_a_turn(line: Line, turn: Turn) -> bool:
    said = {turn.normal[i] for i in range(turn.request_length) if turn.messages[i]["role"] == "assistant"}
    return any(other.answer in said for other in line.turns)


def choose(found: Sequence[Line]) -> Choice:
    """The main line, the side calls, and why the rest cannot be told apart."""
    main = main_line(found)
    if main is None:
        return Choice(list(found), [], ReasonCode.AMBIGUOUS_MAIN)
    others = [line for line in found if line is not main]
    beside = [line for line in others if is_side_call(line, main)]
    aside = set(beside)
    rest = [line for line in others if line not in aside]
    side_calls = [turn for line in beside for turn in line.turns]
    return Choice([main, *rest], side_calls, ReasonCode.SEVERAL_CHAINS if rest else None)


def main_line(found: Sequence[Line]) -> Line | None:
    """The only line with tools, else the one with strictly most records, else null."""
    with_tools = [line for line in found if line.start.tools]
    if len(with_tools) == 1:
        return with_tools[0]
    by_length = sorted(found, key=lambda line: line.longest, reverse=True)
    if len(by_length) > 1 and by_length[0].longest == by_length[1].longest:
        return None
    return by_length[0]


def is_side_call(line: Line, main: Line) -> bool:
    """A call that extends nothing and that nothing extends, with tools or system unlike the main line's."""
    if line.longest > 1:
        return False
    starts = [segment.turns[0] for segment in line.segments]
    return not any(is_alike(main, start) or may_go_on(main, start) for start in starts)


def may_go_on(main: Line, start: Turn) -> bool:
    """Whether a call may be the main line after a compaction that changed the system too, as Claude Code's does, or the
    tools, with a turn of the line kept.
    """
    if not start.tools or start.place < main.end:
        return False
    return start.tools_key == main.start.tools_key or holds_a_turn(main, start)
