"""Random conversations, played for real through the fake engine, a proxy and a rebuild, and held against the law.

What may be asserted comes from the engine's ledger, from the records and from what the client of this machine did;
nothing is asked of the reference's code.
"""

from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from conformance.oracle import records, rollouts
from conformance.oracle.judgement import Judgement
from conformance.oracle.law import Account, account
from conformance.shapes.play import Asked, Head, Play
from conformance.shapes.stage import CONTINUED, KEPT, STRIPPED, Stage
from conformance.shapes.tongues import TONGUES, Results, Said, Step
from tests.law.telling import told
from tests.law.turns import CALM, WILD, Script, scripts

JSON = Any

MOST_CALLS = 12
MOST_CHILDREN = 2
WHO = st.integers(0, MOST_CHILDREN)


class Conversations(RuleBasedStateMachine):
    """Clients of one rollout, each with its history, who speak ``dialect`` on ``stage``.

    ``acts`` tells what was done, for whoever has to repeat it.

    ``mood`` says what may go wrong. ``damage`` names what a client or the engine did that may cost tokens; without any,
    all that was taken is trained. ``split`` is what the rebuild is asked to tell apart.
    """

    stage: Stage
    dialect: str

    def __init__(self) -> None:
        super().__init__()
        self.heads: list[Head] = []
        self.acts: list[str] = []
        self.damage: list[str] = []
        self.lost: set[int] = set()
        self.compacted: list[tuple[tuple[str, str | None], int]] = []
        self.tasks: list[Step] = []
        self.titled: list[Head] = []
        self.mood = CALM
        self.split: tuple[str, ...] = ()
        self.asked: tuple[JSON, JSON] | None = None
        self.play: Play

    @initialize(
        script=scripts(),
        tenant=st.sampled_from([KEPT, KEPT, STRIPPED, CONTINUED]),
        split=st.sampled_from([(), (), ("segments",), ("branches",), ("segments", "branches")]),
    )
    def begin(self, script: Script, tenant: str, split: tuple[str, ...]) -> None:
        playbook, self.mood = script
        self.split = tuple(part for part in split if part in self.stage.rebuild.capabilities)
        self.play = Play(self.stage, TONGUES[self.dialect], playbook, tenant=tenant)
        self.heads.append(self.play.begin())
        self.tasks.append(self.heads[0].steps[0])

    def head(self, who: int) -> Head:
        return self.heads[who % len(self.heads)]

    def tell(self, act: str, head: Head) -> None:
        self.acts.append(f"{act} · {head.session} · calls so far {len(self.play.calls)}")

    def may(self, act: str) -> bool:
        return self.mood in (WILD, act)

    def may_ask(self, calls: int = 1) -> bool:
        return len(self.play.calls) + calls <= MOST_CALLS

    # What a client does

    @rule(who=WHO, stream=st.booleans(), turns=st.integers(1, 3))
    @precondition(lambda self: self.may_ask())
    def turn(self, who: int, stream: bool, turns: int) -> None:
        self.go_on(who, turns, stream=stream)

    def go_on(self, who: int, turns: int, *, stream: bool = False) -> None:
        head = self.head(who)
        for _ in range(turns):
            if self.may_ask():
                self.tell("turn" + (", streamed" if stream else ""), head)
                asked = head.turn(stream=stream)
                if not asked.ok:
                    self.lost.add(asked.number)

    @rule(who=WHO)
    @precondition(lambda self: self.may("lose") and self.may_ask())
    def lose(self, who: int) -> None:
        """The answer is whole and never used: what is asked next is a retry."""
        head = self.head(who)
        self.tell("lose an answer", head)
        self.lost.add(head.ask().number)

    @rule(who=WHO)
    @precondition(lambda self: self.may("nudge") and self.may_ask())
    def nudge(self, who: int) -> None:
        head = self.head(who)
        self.tell("nudge", head)
        self.lost.add(head.ask().number)
        head.say("Use a tool.")

    @rule(who=WHO, first=st.booleans())
    @precondition(lambda self: self.may("ask_twice_at_once") and self.may_ask(2))
    def ask_twice_at_once(self, who: int, first: bool) -> None:
        head = self.head(who)
        self.tell(f"ask twice at once and take the {'first' if first else 'second'}", head)
        self.play.send(head, head.steps, self.stage.first)
        self.play.send(head, head.steps, self.stage.second)
        both = [self.play.heard(head, head.steps, line) for line in (self.stage.first, self.stage.second)]
        taken, dropped = both if first else reversed(both)
        self.damage.append("nobody knows in which order the engine saw two calls")
        self.lost.add(dropped.number)
        if taken.ok:
            head.take(taken)

    @rule(who=WHO, point=st.integers(0, 3), turns=st.integers(0, 2))
    @precondition(lambda self: self.may("back") and any(head.points for head in self.heads))
    def back(self, who: int, point: int, turns: int) -> None:
        """What comes after is a fork, once both sides have been gone on with."""
        head = self.head(who)
        if head.points:
            self.tell(f"back to before turn {point % len(head.points)}", head)
            head.back(point % len(head.points))
            self.damage.append("went back")
            self.go_on(who, turns)

    @rule(who=WHO, kept=st.integers(0, 2), turns=st.integers(0, 2))
    @precondition(lambda self: self.may("compact"))
    def compact(self, who: int, kept: int, turns: int) -> None:
        head = self.head(who)
        if head.points:
            self.tell(f"compact, the last {kept} turns kept", head)
            head.compact(kept=kept)
            self.damage.append("compacted")
            self.compacted.append(((head.session, head.agent), len(self.play.calls)))
            self.tasks.append(head.steps[0])
            self.go_on(who, turns)

    @rule(who=WHO, which=st.integers(0, 7))
    @precondition(lambda self: self.may("edit"))
    def edit(self, who: int, which: int) -> None:
        head = self.head(who)
        places = [n for n, step in enumerate(head.steps) if isinstance(step, Said | Results)]
        place = places[which % len(places)]
        step = head.steps[place]
        self.tell(f"edit step {place}", head)
        if isinstance(step, Said):
            head.retell(place, Said(f"{step.text} Really.", step.role))
            self.tasks.append(head.steps[0])
        elif isinstance(step, Results):
            head.retell(place, Results([(id_, f"{text}, cut") for id_, text in step.of]))
        self.damage.append("edited")

    @rule(who=WHO)
    def remind(self, who: int) -> None:
        head = self.head(who)
        self.tell("system reminder", head)
        head.say("Mind the time.", role="system")

    @rule(who=WHO)
    @precondition(lambda self: self.may_ask())
    def title(self, who: int) -> None:
        head = self.head(who)
        if self.mood != WILD and head in self.titled:
            return  # a conversation is named once
        self.titled.append(head)
        self.tell("title", head)
        system, tools = head.system, head.tools
        head.system, head.tools = "You name things.", ()
        task = head.steps[0]
        assert isinstance(task, Said)
        self.play.call(head, (Said(f"Name this: {task.text}"),))
        head.system, head.tools = system, tools

    @rule(who=WHO, same_session=st.booleans())
    @precondition(lambda self: len(self.heads) <= MOST_CHILDREN)
    def delegate(self, who: int, same_session: bool) -> None:
        """A sub-agent, in a session of its own or told apart by its id."""
        above, number = self.head(who), len(self.heads)
        if self.mood != WILD and not above.points:
            return  # nobody delegates before a first turn
        child = self.play.begin(number, session=f"child-{number}", task="Look into it.")
        child.parent = above.session
        if same_session:
            child.session, child.parent, child.agent = above.session, above.parent, f"agent-{number}"
        self.heads.append(child)
        self.tasks.append(child.steps[0])
        self.tell("begin as a sub-agent" + (" in its parent's session" if same_session else ""), child)

    @rule(who=WHO)
    @precondition(lambda self: self.may("change_tools"))
    def change_tools(self, who: int) -> None:
        head = self.head(who)
        self.tell("change tools", head)
        head.tools = (*head.tools, f"tool_{len(head.tools)}")
        self.damage.append("changed tools")

    @rule(who=WHO)
    @precondition(lambda self: self.may("change_model"))
    def change_model(self, who: int) -> None:
        head = self.head(who)
        self.tell("change model", head)
        head.model = self.play.tenant if head.model.endswith("-small") else f"{self.play.tenant}-small"
        self.damage.append("changed model")

    # What has to hold of all that

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
        source = {"envelope": envelopes[0]} if len(envelopes) == 1 else {"sessions": envelopes}
        self.asked = source, self.stage.rebuild.ask_now(source, split=self.split)
        answer = self.asked[1]
        found = account(answer, kept, rows)
        self.hold(found.law)
        self.hold(rollouts.conserved(answer, rollouts.sampled(kept)))
        self.hold_what_was_taken(answer, found, rows)
        if len(rows) == len(self.play.calls) and "nobody knows" not in "".join(self.damage):
            self.hold_what_was_lost(answer, found, rows)
            if not self.split:
                self.hold_that_a_compaction_is_told(answer, kept, rows)

    def hold_what_was_lost(self, answer: JSON, found: Account, rows: list[JSON]) -> None:
        """An answer that its client lost before it asked again is not trained, unless a call with equal tokens is."""
        all_ids = [row["generation_token_ids"] for row in rows]
        asked_last = {asked.speaker: asked.number for asked in self.play.calls if asked.steps[0] in self.tasks}
        for row, asked in self.pairs(rows):
            if asked.number in self.lost and asked.number < asked_last[asked.speaker]:
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
        """Calls on both sides of a compaction are never one clean rollout."""
        valid = {record["request_id"] for record in kept if record["is_valid"]}
        sound = [asked for row, asked in self.pairs(rows) if row["request_id"] in valid and asked.taken]
        for speaker, number in self.compacted:
            numbers = [asked.number for asked in sound if asked.speaker == speaker]
            if any(one < number for one in numbers) and any(one >= number for one in numbers):
                told = [answer, *(one for one in answer["trajectories"] if one["session_id"] == speaker[0])]
                clean = all(one["outcome"] == "clean" for one in told)
                self.hold(Judgement(not clean, "a compaction is told", "clean", f"compacted before call {number}"))

    def pairs(self, rows: list[JSON]) -> Iterator[tuple[JSON, Asked]]:
        return zip(rows, self.play.calls, strict=True)

    def hold_what_was_taken(self, answer: JSON, found: Account, rows: list[JSON]) -> None:
        """Without damage, the trained calls are those that the clients went on with."""
        if len(rows) != len(self.play.calls) or self.damage or self.lost:
            return
        told = [row for row, asked in self.pairs(rows) if asked.taken]
        in_its_own_tokens = self.play.tenant == CONTINUED or all(row["faithful"] for row in told)
        if not in_its_own_tokens or any(row["fault"] for row in rows):
            return
        speakers = {asked.speaker for asked in self.play.calls}
        if speakers != {asked.speaker for asked in self.play.calls if asked.taken}:
            return  # a title that stands alone is all that there is of its agent
        expected = sorted(row["seq"] for row in told)
        self.hold(Judgement(sorted(found.trained) == expected, expected, sorted(found.trained), answer["reason"]))

    def hold(self, judged: Judgement) -> None:
        if not judged:
            raise AssertionError(told(judged, self.play, self.acts, self.asked))


def on(stage: Stage, dialect: str) -> type[Conversations]:
    """The machine for a stage that runs already."""
    return type("ConversationsHere", (Conversations,), {"stage": stage, "dialect": dialect})
