"""The kept calls as runs of certified turns: where a chain breaks or branches, the next run starts."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from conformance.contract.rebuilds import Note
from conformance.contract.vocabulary import NoteCode, Part, ReasonCode
from conformance.reference.rebuild.chain import Link, judge, roles_added
from conformance.reference.rebuild.errors import TraceError
from conformance.reference.rebuild.segments import carries_on
from conformance.reference.rebuild.siblings import Family
from conformance.reference.rebuild.side_calls import Line, Segment
from conformance.reference.rebuild.turns import Keys, Turn


@dataclass(frozen=True)
class Finding:
    """Why a rollout is not clean, at which turn that shows, and the trace error it follows from."""

    reason: ReasonCode
    detail: str
    turn: Turn | None = None
    error: TraceError | None = None


@dataclass(eq=False)
class Piece:
    """Turns whose tokens and messages continue one another; one training sequence."""

    turns: list[Turn]
    assembled: list[int]


@dataclass
class Walk:
    """The runs of an agent's lines, with what was found on the way.

    ``answers`` are the generated turns of all valid records; ``invalid_answers`` those of the others, with the
    error that made them invalid. What ``split`` names is cut into pieces without being a finding.
    """

    links: dict[str, Link]
    family: Family
    keys: Keys
    answers: Set[int]
    invalid_answers: Mapping[int, TraceError]
    split: Set[Part] = frozenset()
    pieces: list[Piece] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def add_line(self, line: Line, beside: Sequence[Turn] = ()) -> None:
        """Cuts a conversation into pieces. ``beside`` are calls that may have written a summary for it."""
        self._add(line.segments[0])
        earlier = list(line.segments[0].turns)
        for segment in line.segments[1:]:
            start = segment.turns[0]
            if Part.SEGMENTS in self.split and carries_on(earlier, beside, start):
                self._note(start, NoteCode.SEGMENT)
            else:
                self.findings.append(Finding(ReasonCode.HISTORY_REWRITTEN, "a rewritten history starts here", start))
            if start.model != earlier[-1].model:
                self._change_model(earlier[-1], start)
            self._add(segment, known=self.answers)
            earlier += segment.turns

    def _add(self, segment: Segment, known: Set[int] = frozenset()) -> None:
        """Cuts one segment into pieces. Its first history may hold the ``known`` turns of segments before."""
        weights = _weights(segment, self.family)
        if len(segment.roots) > 1:
            self._fork("several first calls are continued", segment.roots[-1], segment.roots[1:])
        open_turns: list[Turn] = []
        homes: dict[str, Piece] = {}
        if len({root.model for root in segment.roots}) > 1:
            self._change_model(segment.roots[0], segment.roots[-1])
        for root in segment.roots:
            self._look_for_uncaptured(None, root, known)
            homes[root.uuid] = self._start(root, list(root.exact))
            open_turns.append(root)
        while open_turns:
            turn = open_turns.pop()
            children = sorted(self.family.children.get(turn.uuid, []), key=lambda child: weights[child.uuid])
            if len(children) > 1:
                self._fork("several calls after this one are continued", turn, children[:-1])
            for child in children:
                heaviest = child is children[-1]
                homes[child.uuid] = self._place(child, homes[turn.uuid], goes_on=heaviest)
                open_turns.append(child)

    def _change_model(self, before: Turn, turn: Turn) -> None:
        detail = f"the served model changed from {before.model} to {turn.model}"
        self.findings.append(Finding(ReasonCode.MODEL_CHANGED, detail, turn))

    def _fork(self, detail: str, turn: Turn, branches: Sequence[Turn]) -> None:
        if Part.BRANCHES not in self.split:
            self.findings.append(Finding(ReasonCode.FORK, detail, turn))
            return
        for branch in branches:
            self._note(branch, NoteCode.BRANCH)

    def _place(self, turn: Turn, home: Piece, goes_on: bool) -> Piece:
        link = self.links[turn.uuid]
        upto = len(link.parent.exact)
        assembled = home.assembled[:upto]
        judgement = judge(link, turn, assembled, self.keys)
        self._note(turn, *judgement.notes)
        if judgement.reason is not None:
            self.findings.append(Finding(judgement.reason, judgement.detail, turn))
            return self._start(turn, list(turn.exact))
        self._look_for_uncaptured(link.parent, turn)
        if not goes_on:
            return self._start(turn, [*assembled, *turn.exact[upto:]])
        home.turns.append(turn)
        home.assembled.extend(turn.exact[upto:])
        return home

    def _start(self, turn: Turn, assembled: list[int]) -> Piece:
        piece = Piece([turn], assembled)
        self.pieces.append(piece)
        return piece

    def _look_for_uncaptured(self, parent: Turn | None, turn: Turn, known: Set[int] = frozenset()) -> None:
        added = roles_added(parent, turn)
        start = turn.request_length - len(added)
        said = {turn.normal[start + i] for i, role in enumerate(added) if role == "assistant"} - known
        if not said:
            return
        self._note(turn, NoteCode.UNCAPTURED_TURN)
        error = next((self.invalid_answers[one] for one in sorted(said) if one in self.invalid_answers), None)
        if error is None:
            detail = "its history holds an assistant turn without a record"
            self.findings.append(Finding(ReasonCode.UNCAPTURED_TURN, detail, turn))
        else:
            detail = f"its history holds the turn of record {error.record_uuid}, which is invalid: {error.message}"
            self.findings.append(Finding(ReasonCode.INVALID_RECORD, detail, turn, error))

    def _note(self, turn: Turn, *codes: NoteCode) -> None:
        self.notes.extend(Note(record_uuid=turn.uuid, code=code) for code in codes)


def _weights(segment: Segment, family: Family) -> Counter[str]:
    """How many turns stand at or below each turn."""
    order, open_turns = [], list(segment.roots)
    while open_turns:
        turn = open_turns.pop()
        order.append(turn)
        open_turns.extend(family.children.get(turn.uuid, []))
    weights: Counter[str] = Counter()
    for turn in reversed(order):
        weights[turn.uuid] = 1 + sum(weights[child.uuid] for child in family.children.get(turn.uuid, []))
    return weights
