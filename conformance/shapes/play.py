"""One run played on a stage: clients with their histories, every call they made, and what was taken of the answers."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conformance.oracle.matching import GENERATING
from conformance.shapes.stage import KEPT, Line, Stage
from conformance.shapes.tongues import Answer, Results, Said, Step, Steps, Tongue
from fakes.vllm.tags import find_tags, format_tag

JSON = Any

SESSION_HEADER = "proxy_x_session_id"
PARENT_HEADER = "X-Parent-Session-Id"
AGENT_HEADER = "X-Claude-Code-Agent-Id"
SYSTEM = "You are an agent."
TOOLS = ("look", "note")


@dataclass(eq=False)
class Asked:
    """One call. ``status`` is None where its answer broke off; ``taken`` where the client went on with it."""

    number: int
    session: str
    agent: str | None
    steps: Steps
    status: int | None
    answer: Answer
    taken: bool = False
    label: str = ""

    @property
    def speaker(self) -> tuple[str, str | None]:
        return self.session, self.agent

    @property
    def ok(self) -> bool:
        """An answer that a client can go on with."""
        return self.status == 200 and bool(self.answer.again)


@dataclass(eq=False)
class Head:
    """A client in the middle of its conversation. What it sends is ``system``, ``steps`` and ``tools``.

    ``manner`` is how it tells the model's answers again, where not as it had them; ``elsewhere`` that it calls the
    stage's other proxy.
    """

    play: "Play"
    session: str
    parent: str | None
    scope: int
    steps: Steps
    system: str | None = SYSTEM
    tools: Sequence[str] = TOOLS
    model: str = ""
    agent: str | None = None
    points: list[Steps] = field(default_factory=list)
    manner: Callable[[Answer], Answer] | None = None
    elsewhere: bool = False

    def ask(self, *, stream: bool = False, line: Line | None = None, label: str = "") -> Asked:
        """A call whose answer the client hears, and may yet lose."""
        return self.play.call(self, self.steps, stream=stream, line=line, label=label)

    def take(self, asked: Asked, *, then: str | None = "Go on.", result: str = "done") -> None:
        """Go on with an answer: its tools are run, or the user says ``then``; nothing more is said where it is None."""
        asked.taken = True
        self.points.append(self.steps)
        self.steps = (*self.steps, asked.answer)
        if asked.answer.calls:
            self.steps += (Results([(id_, f"{result} {name}") for id_, name in asked.answer.calls]),)
        elif then is not None:
            self.steps += (Said(then),)

    def turn(self, *, stream: bool = False, label: str = "") -> Asked:
        """A call whose answer is taken."""
        asked = self.ask(stream=stream, label=label)
        if asked.ok:
            self.take(asked)
        return asked

    def turns(self, labels: str, *, stream: bool = False) -> None:
        """A turn for each label, separated by blanks."""
        for label in labels.split():
            self.turn(stream=stream, label=label)

    def lose(self, label: str) -> Asked:
        """A call whose answer never reaches the client."""
        return self.ask(label=label)

    def say(self, text: str, role: str = "user") -> None:
        self.steps += (Said(text, role),)

    def back(self, point: int) -> None:
        """The client returns to where it stood before its turn ``point``."""
        self.steps = self.points[point]
        del self.points[point:]

    def compact(self, *, kept: int = 0, text: str = "So far all went well.") -> None:
        """The history is replaced by a summary, which repeats the highest tag, and the last ``kept`` answers on."""
        answers = [index for index, step in enumerate(self.steps) if isinstance(step, Answer)]
        tail = self.steps[answers[-kept] :] if 0 < kept <= len(answers) else ()
        self.steps = (Said(f"{self._highest_tag()} {text}"), *tail)
        self.points.clear()

    def retell(self, index: int, step: Step) -> None:
        self.steps = (*self.steps[:index], step, *self.steps[index + 1 :])

    def _highest_tag(self) -> str:
        told = json.dumps(self.play.tongue.tell(self.system, self.steps, ()), ensure_ascii=False)
        tags = [tag.turn for tag in find_tags(told) if tag.scope == self.scope]
        return format_tag(self.play.run, self.scope, max(tags, default=0))


class Play:
    """One run: the playbook is registered at once, and each call stands in ``calls`` in the order of asking."""

    def __init__(self, stage: Stage, tongue: Tongue, playbook: Mapping[str, JSON], *, tenant: str = KEPT) -> None:
        self.stage = stage
        self.tongue = tongue
        self.playbook = playbook
        self.tenant = tenant
        self.run = next(stage.runs)
        self.calls: list[Asked] = []
        self.sessions: dict[str, str | None] = {}
        stage.administer("PUT", f"/tenants/{tenant}/runs/{self.run}", dict(playbook))

    def begin(
        self, scope: int = 0, *, session: str = "root", parent: str | None = None, task: str = "Repair the build."
    ) -> Head:
        """A client with its first task. ``session`` and ``parent`` are names in this run."""
        named = self.session(session)
        above = None if parent is None else self.session(parent)
        return Head(self, named, above, scope, (Said(f"{format_tag(self.run, scope, 0)} {task}"),))

    def session(self, name: str) -> str:
        return f"run-{self.run}-{name}"

    def call(
        self, head: Head, steps: Steps, *, stream: bool = False, line: Line | None = None, label: str = ""
    ) -> Asked:
        """Any steps sent as the client's own, such as a side call."""
        line = line or (self.stage.elsewhere if head.elsewhere else self.stage.first)
        self.send(head, steps, line, stream=stream)
        return self.heard(head, steps, line, stream=stream, label=label)

    def send(self, head: Head, steps: Steps, line: Line, *, stream: bool = False) -> None:
        retold = tuple(head.manner(step) if head.manner and isinstance(step, Answer) else step for step in steps)
        body = self.tongue.tell(head.system, retold, head.tools)
        headers = {SESSION_HEADER: head.session}
        if head.parent is not None:
            headers[PARENT_HEADER] = head.parent
        if head.agent is not None:
            headers[AGENT_HEADER] = head.agent
        self.sessions.setdefault(head.session, head.parent)
        streaming = {"stream": True} if stream else {}
        line.send("POST", self.tongue.path, {"model": head.model or self.tenant, **body, **streaming}, headers)

    def heard(self, head: Head, steps: Steps, line: Line, *, stream: bool = False, label: str = "") -> Asked:
        status, text = line.answer()
        whole = self.tongue.is_whole(status, text, stream)
        answer = self.tongue.hear(text, stream) if whole else Answer([])
        told = None if status == 200 and not whole else status
        asked = Asked(len(self.calls), head.session, head.agent, steps, told, answer, label=label)
        self.calls.append(asked)
        return asked

    def at_once(self, head: Head, labels: tuple[str, str]) -> list[Asked]:
        """The client's next call, made twice at the same time; the answers in the order in which the engine saw them.

        The second goes out once the engine holds the first one.
        """
        lines = (self.stage.first, self.stage.second)
        before = len(self.rows())
        self.send(head, head.steps, lines[0])
        while len(self.rows()) == before:
            pass  # the engine's own account is what tells that the first call has arrived
        self.send(head, head.steps, lines[1])
        return [self.heard(head, head.steps, line, label=label) for line, label in zip(lines, labels, strict=True)]

    def abandon(self, head: Head, steps: Steps, label: str = "left") -> None:
        """A stream that its client leaves while the engine is held at it by a gate that nobody opens."""
        self.send(head, steps, self.stage.second, stream=True)
        self._wait("held")
        self.stage.second.close()
        self._wait("aborted")
        self.calls.append(Asked(len(self.calls), head.session, head.agent, steps, None, Answer([]), label=label))

    def _wait(self, state: str) -> None:
        self.stage.administer("GET", f"/wait?tenant={self.tenant}&run={self.run}&state={state}&count=1&timeout=20")

    # What came of it

    def rows(self) -> list[dict[str, JSON]]:
        """The engine's own account of what it sampled in this run, in order of arrival."""
        rows = self.stage.ledger(self.tenant, self.run)
        return [row for row in rows if row["endpoint"] in GENERATING]

    def envelopes(self) -> list[dict[str, JSON]]:
        """All sessions that were spoken in, as the proxy hands them out."""
        found = [self.stage.envelope(session) for session in self.sessions]
        return [envelope for envelope in found if envelope is not None]

    def forget(self) -> None:
        """The ledger's rows of this run, so that a long series stays quick."""
        self.stage.administer("DELETE", f"/ledger?tenant={self.tenant}&run={self.run}")
