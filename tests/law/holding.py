"""What has to hold of a random conversation, whatever happened in it."""

from collections.abc import Iterable, Iterator
from typing import Any

from hypothesis.stateful import RuleBasedStateMachine

from conformance.oracle import records, rollouts
from conformance.oracle.judgement import Judgement
from conformance.oracle.law import Account, account
from conformance.shapes.play import Asked, Head, Play
from conformance.shapes.stage import CONTINUED, SPLICED, Stage
from conformance.shapes.tongues import Step
from tests.law.telling import told
from tests.law.turns import CALM

JSON = Any

CHAINED = (CONTINUED, SPLICED)
"""Tenants behind which a chain is continued in its own tokens, however its client tells the history."""
UNORDERED = "nobody knows in which order the engine saw two calls"


class Holding(RuleBasedStateMachine):
    """Judged when all was done.

    ``acts`` tells what was done, for whoever has to repeat it. ``mood`` says what may go wrong. ``damage`` names what a
    client or the engine did that may cost tokens; without any, all that was taken is trained. ``lost`` are numbers of
    calls whose answers no client went on with; where they are ``marked``, the proxy is taken to have noticed.
    ``split`` is what the rebuild is asked to tell apart.
    """

    stage: Stage
    dialect: str

    def __init__(self) -> None:
        super().__init__()
        self.heads: list[Head] = []
        self.acts: list[str] = []
        self.damage: list[str] = []
        self.lost: set[int] = set()
        self.compacted: list[tuple[tuple[str, str | None], int, bool]] = []
        self.tasks: list[Step] = []
        self.titled: list[Head] = []
        self.mood = CALM
        self.killed = False
        self.marked = False
        self.split: tuple[str, ...] = ()
        self.asked: tuple[JSON, JSON] | None = None
        self.play: Play

    def teardown(self) -> None:
        if not self.heads or not self.play.calls:
            return
        rows, envelopes = self.play.rows(), self.play.envelopes()
        self.play.forget()
        kept = [record for envelope in envelopes for record in envelope["completions"]]
        self.hold(records.law(kept, rows))
        self.hold(records.none_lost(kept, rows))
        if not kept:
            return
        is_paired = len(rows) == len(self.play.calls) and UNORDERED not in self.damage
        self.marked = self.marked and is_paired and bool(self.lost)
        if self.marked:
            self.mark(kept, rows)
            envelopes = self.play.envelopes()
        source = {"envelope": envelopes[0]} if len(envelopes) == 1 else {"sessions": envelopes}
        self.asked = source, self.stage.rebuild.ask_now(source, split=self.split)
        answer = self.asked[1]
        found = account(answer, kept, rows)
        self.hold(found.law)
        self.hold(rollouts.conserved(answer, rollouts.sampled(kept)))
        self.hold(rollouts.never_wrong(answer, rollouts.sampled(one for one in kept if one["is_valid"])))
        self.hold_what_was_taken(answer, found, rows)
        if is_paired:
            self.hold_what_was_lost(answer, found, rows)
            if not self.split:
                self.hold_that_a_compaction_is_told(answer, kept, rows)

    def mark(self, kept: Iterable[JSON], rows: list[JSON]) -> None:
        """What was lost is marked as undelivered, as the proxy would have if the connection had told it."""
        lost = {row["request_id"] for row, asked in self.pairs(rows) if asked.number in self.lost}
        for record in kept:
            if record["request_id"] in lost:
                self.stage.mark_undelivered(record["session_id"], record["uuid"])

    def hold_what_was_lost(self, answer: JSON, found: Account, rows: list[JSON]) -> None:
        """An answer that its client lost is not trained, unless a call with equal tokens is.

        Where nothing marks it, only if its client has asked again: a last answer that nobody had looks like any other.
        """
        all_ids = [row["generation_token_ids"] for row in rows]
        asked_last = {asked.speaker: asked.number for asked in self.play.calls if asked.steps[0] in self.tasks}
        for row, asked in self.pairs(rows):
            if asked.number in self.lost and (self.marked or asked.number < asked_last[asked.speaker]):
                twin = all_ids.count(row["generation_token_ids"]) > 1
                self.hold(
                    Judgement(
                        twin or row["seq"] not in found.trained,
                        "not trained",
                        f"call {asked.number} is trained",
                        answer["reason"],
                    )
                )

    def hold_that_a_compaction_is_told(self, answer: JSON, kept: list[JSON], rows: list[JSON]) -> None:
        """Calls on both sides of a compaction are never one clean rollout.

        A call with other tools and nothing of the conversation in it looks like one beside it.
        """
        valid = {record["request_id"] for record in kept if record["is_valid"]}
        sound = [asked for row, asked in self.pairs(rows) if row["request_id"] in valid and asked.taken]
        for speaker, number, keeps_a_turn in self.compacted:
            if "changed tools" in self.damage and not keeps_a_turn:
                continue
            numbers = [asked.number for asked in sound if asked.speaker == speaker]
            if any(one < number for one in numbers) and any(one >= number for one in numbers):
                told = [answer, *(one for one in answer["trajectories"] if one["session_id"] == speaker[0])]
                clean = all(one["outcome"] == "clean" for one in told)
                self.hold(Judgement(not clean, "a compaction is told", "clean", f"compacted before call {number}"))

    def pairs(self, rows: list[JSON]) -> Iterator[tuple[JSON, Asked]]:
        return zip(rows, self.play.calls, strict=True)

    def hold_what_was_taken(self, answer: JSON, found: Account, rows: list[JSON]) -> None:
        """Without damage, the trained calls are those that the clients went on with, up to equal ones."""
        if len(rows) != len(self.play.calls) or self.damage or (self.lost and not self.marked):
            return
        taken = [row for row, asked in self.pairs(rows) if asked.taken]
        in_its_own_tokens = self.play.tenant in CHAINED or all(row["faithful"] for row in taken)
        if not in_its_own_tokens or any(row["fault"] for row in rows):
            return
        speakers = {asked.speaker for asked in self.play.calls}
        if speakers != {asked.speaker for asked in self.play.calls if asked.taken}:
            return  # a title that stands alone is all that there is of its agent
        expected = sorted(map(_sampled, taken))
        seen = sorted(_sampled(row) for row in rows if row["seq"] in found.trained)
        numbers = [row["seq"] for row in taken]
        self.hold(Judgement(seen == expected, numbers, sorted(found.trained), answer["reason"]))

    def hold(self, judged: Judgement) -> None:
        if not judged:
            raise AssertionError(told(judged, self.play, self.acts, self.asked))


def _sampled(row: JSON) -> tuple[list[int], list[int]]:
    return row["prompt_token_ids"], row["generation_token_ids"]
