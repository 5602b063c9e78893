"""Random conversations, played for real through the fake engine, a proxy and a rebuild, and held against the law.

What may be asserted comes from the engine's ledger, from the records and from what the client of this machine did;
nothing is asked of the reference's code.
"""

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from conformance.shapes.play import Head, Play
from conformance.shapes.stage import CONTINUED, KEPT, SPLICED, STRIPPED, Stage
from conformance.shapes.tongues import TONGUES, Answer, Results, Said
from tests.law.holding import CHAINED, UNORDERED, Holding
from tests.law.manners import MANNERS, Manner
from tests.law.turns import WILD, Script, scripts

MOST_CALLS = 12
MOST_CHILDREN = 2
WHO = st.integers(0, MOST_CHILDREN)


class Conversations(Holding):
    """Clients of one rollout, each with its history, who speak ``dialect`` on ``stage``. What they do."""

    @initialize(
        script=scripts(),
        tenant=st.sampled_from([KEPT, KEPT, STRIPPED, CONTINUED, SPLICED]),
        split=st.sampled_from([(), (), ("segments",), ("branches",), ("segments", "branches")]),
        marked=st.sampled_from([True, True, False]),
        turns=st.integers(0, 2),
    )
    def begin(self, script: Script, tenant: str, split: tuple[str, ...], marked: bool, turns: int) -> None:
        playbook, self.mood = script
        self.marked = marked
        self.split = tuple(part for part in split if part in self.stage.rebuild.capabilities)
        self.play = Play(self.stage, TONGUES[self.dialect], playbook, tenant=tenant)
        self.heads.append(self.play.begin())
        self.tasks.append(self.heads[0].steps[0])
        self.go_on(0, turns)

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

    @rule(who=WHO, turns=st.integers(0, 2))
    @precondition(lambda self: self.may("lose") and self.may_ask())
    def lose(self, who: int, turns: int) -> None:
        """The answer is whole and never used: what is asked next is a retry."""
        head = self.head(who)
        self.tell("lose an answer", head)
        self.lost.add(head.ask().number)
        self.go_on(who, turns)

    @rule(who=WHO, turns=st.integers(0, 2))
    @precondition(lambda self: self.may("nudge") and self.may_ask())
    def nudge(self, who: int, turns: int) -> None:
        head = self.head(who)
        self.tell("nudge", head)
        self.lost.add(head.ask().number)
        head.say("Use a tool.")
        self.go_on(who, turns)

    @rule(who=WHO, first=st.booleans())
    @precondition(lambda self: self.may("ask_twice_at_once") and self.may_ask(2))
    def ask_twice_at_once(self, who: int, first: bool) -> None:
        head = self.head(who)
        self.tell(f"ask twice at once and take the {'first' if first else 'second'}", head)
        self.play.send(head, head.steps, self.stage.first)
        self.play.send(head, head.steps, self.stage.second)
        both = [self.play.heard(head, head.steps, line) for line in (self.stage.first, self.stage.second)]
        taken, dropped = both if first else reversed(both)
        self.damage.append(UNORDERED)
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
            keeps_a_turn = any(isinstance(step, Answer) for step in head.steps)
            self.compacted.append(((head.session, head.agent), len(self.play.calls), keeps_a_turn))
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

    @rule(who=WHO, manner=st.sampled_from((*MANNERS, None)), turns=st.integers(0, 2))
    @precondition(lambda self: self.may("tell_otherwise"))
    def tell_otherwise(self, who: int, manner: Manner | None, turns: int) -> None:
        """From now on the client tells the model's answers in another form, as a harness does."""
        head = self.head(who)
        self.tell(f"tell answers {'as they came' if manner is None else manner.__name__}", head)
        head.manner = manner
        if self.play.tenant not in CHAINED:
            self.damage.append("told otherwise")
        self.go_on(who, turns)

    @rule(who=WHO, turns=st.integers(0, 2))
    @precondition(lambda self: self.may("move"))
    def move(self, who: int, turns: int) -> None:
        """The next calls go through another process on the same records."""
        head = self.head(who)
        head.elsewhere = not head.elsewhere
        self.tell(f"move to the {'other' if head.elsewhere else 'first'} proxy", head)
        self.go_on(who, turns)

    @rule(who=WHO, turns=st.integers(0, 2))
    @precondition(lambda self: self.mood == "kill" and not self.killed and bool(self.play.calls))
    def kill(self, who: int, turns: int) -> None:
        self.killed = True
        self.acts.append(f"kill the proxy and start it again · calls so far {len(self.play.calls)}")
        self.stage.kill_the_proxy()
        self.go_on(who, turns)

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


def on(stage: Stage, dialect: str) -> type[Conversations]:
    """The machine for a stage that runs already."""
    return type("ConversationsHere", (Conversations,), {"stage": stage, "dialect": dialect})
