"""Sessions built by hand, call by call, so that what was sampled is known without asking any system.

    session = Session()
    first = session.call(session.begin(user("Fix the build.")), says("I look.", call("ls")))
    second = session.call(first.then(result("a.py")), says("Done."))
    answer = await rebuild.ask({"envelope": session.envelope()})

A ``Context`` is what a harness sends: messages, and the ids the engine makes of them. Whatever is added to it gets ids
that occur nowhere else in the session. A retry is a second call with one context, a fork is two that are both gone on
with, a rewrite changes the words of a context and keeps its ids, a compaction or a side call begins a new context.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

from conformance.oracle.rollouts import Sampled

JSON = Any
Message = dict[str, JSON]
Record = dict[str, JSON]

MODEL = "policy-model"
TOOLS: tuple[JSON, ...] = (
    {
        "id": "execute_bash",
        "description": "Runs a command.",
        "inputSchema": {"jsonSchema": {"type": "object", "properties": {"command": {"type": "string"}}}},
    },
)

_session_numbers = count(1)

# Messages


def system(text: str) -> Message:
    return {"role": "system", "content": text}


def user(content: str | list[JSON]) -> Message:
    return {"role": "user", "content": content}


def says(content: JSON = "", *calls: JSON, **keys: JSON) -> Message:
    """An assistant turn. ``keys`` go into it as they are, such as ``reasoning_content``."""
    message: Message = {"role": "assistant", "content": content, **keys}
    return message | ({"tool_calls": list(calls)} if calls else {})


def call(command: str = "ls", *, id: str = "call_1", name: str = "execute_bash", arguments: str | None = None) -> JSON:
    """A tool call; ``arguments`` is the raw string, by default the command as JSON."""
    text = json.dumps({"command": command}) if arguments is None else arguments
    return {"id": id, "type": "function", "function": {"name": name, "arguments": text}}


def result(content: JSON = "done", id: str = "call_1") -> Message:
    return {"role": "tool", "tool_call_id": id, "content": content}


# What a harness sends


@dataclass(frozen=True)
class Context:
    """The messages of a request and the ids of its prompt, with what else the record keeps of the request."""

    session: "Session"
    messages: tuple[Message, ...]
    tokens: tuple[int, ...]
    tools: tuple[JSON, ...] = TOOLS
    tool_choice: str = "auto"
    model: str = MODEL

    def then(self, *messages: Message, tokens: int = 3) -> "Context":
        """With more messages; ``tokens`` new ids for each of them."""
        added = self.session.fresh(tokens * len(messages))
        return replace(self, messages=(*self.messages, *messages), tokens=(*self.tokens, *added))

    def retold(self, index: int, message: Message | None) -> "Context":
        """The message at ``index`` in other words, or gone (None); the ids stay as they are."""
        place = range(len(self.messages))[index]
        instead = () if message is None else (message,)
        return replace(self, messages=(*self.messages[:place], *instead, *self.messages[place + 1 :]))

    def retokenised(self, at: int) -> "Context":
        """The same words, but other ids from ``at`` on, as when a template renders its history anew."""
        kept = self.tokens[:at]
        return replace(self, tokens=(*kept, *self.session.fresh(len(self.tokens) - len(kept))))

    def without_token(self, at: int) -> "Context":
        """The same words, with one id fewer."""
        place = range(len(self.tokens))[at]
        return replace(self, tokens=(*self.tokens[:place], *self.tokens[place + 1 :]))

    def served(
        self, *, model: str | None = None, tools: Sequence[JSON] | None = None, choice: str | None = None
    ) -> "Context":
        """Sent to another model, with other tools, or with another tool choice; the ids stay as they are."""
        return replace(
            self,
            model=self.model if model is None else model,
            tools=self.tools if tools is None else tuple(tools),
            tool_choice=self.tool_choice if choice is None else choice,
        )


@dataclass(frozen=True)
class Made:
    """One call that was made: its record, which a scenario may break, and the context that goes on from it."""

    record: Record
    after: Context
    truth: Sampled

    @property
    def uuid(self) -> str:
        return self.truth.key

    def then(self, *messages: Message, tokens: int = 3) -> Context:
        return self.after.then(*messages, tokens=tokens)

    def broken(self, **fields: JSON) -> "Made":
        """Its record with these fields; the ellipsis takes a field out. From now on it must not be trained."""
        for key, value in fields.items():
            if value is ...:
                self.record.pop(key, None)
            else:
                self.record[key] = value
        self.after.session.unsound.add(self.uuid)
        return self


class Session:
    """The records of one session in the order of their calls, and the truth about them.

    Its ids count up from ``first_id``: sessions whose tokens are to be told apart begin far from one another.
    """

    def __init__(self, session_id: str | None = None, parent: str | None = None, *, first_id: int = 1000) -> None:
        self.session_id = session_id or f"built-{next(_session_numbers):03}"
        self.parent = parent
        self.made: list[Made] = []
        self.unsound: set[str] = set()
        self._ids = count(first_id)

    def fresh(self, length: int) -> tuple[int, ...]:
        return tuple(next(self._ids) for _ in range(length))

    def begin(self, *messages: Message, tools: Sequence[JSON] = TOOLS, tokens: int = 4) -> Context:
        """A new conversation, with ids of its own from the first one on."""
        return Context(self, (), (), tools=tuple(tools)).then(*messages, tokens=tokens)

    def call(
        self,
        context: Context,
        answer: Message,
        *,
        generation: int | Sequence[int] = 4,
        log_probs: Sequence[float] | None = None,
        extras: Mapping[str, JSON] | None = None,
        **fields: JSON,
    ) -> Made:
        """A call and its record. ``generation`` is a number of new ids, or the ids themselves.

        ``extras`` goes into ``x_trackgauge``; ``fields`` are other fields of the record, none of which breaks it.
        """
        number = len(self.made) + 1
        ids = self.fresh(generation) if isinstance(generation, int) else tuple(generation)
        numbers = tuple(map(_log_prob, ids)) if log_probs is None else tuple(log_probs)
        record: Record = {
            "schema_version": 1,
            "uuid": f"{self.session_id}-call-{number:03}",
            "session_id": self.session_id,
            "parent_session_id": self.parent,
            "captured_at": f"2026-12-01T08:00:00.{number:06}+00:00",
            "request_id": f"chatcmpl-{self.session_id}-{number:03}",
            "model": context.model,
            "messages": _copy([*context.messages, answer]),
            "tools": _copy(context.tools),
            "tool_choice": context.tool_choice,
            "token_count": {
                "prompt_tokens": len(context.tokens),
                "completion_tokens": len(ids),
                "total_tokens": len(context.tokens) + len(ids),
            },
            "prompt_token_ids": list(context.tokens),
            "generation_token_ids": list(ids),
            "generation_log_probs": list(numbers),
            "finish_reason": "tool_calls" if answer.get("tool_calls") else "stop",
            "is_valid": True,
            **({"x_trackgauge": dict(extras)} if extras else {}),
            **fields,
        }
        after = replace(context, messages=(*context.messages, answer), tokens=(*context.tokens, *ids))
        made = Made(record, after, Sampled(record["uuid"], context.tokens, ids, numbers))
        self.made.append(made)
        return made

    def turns(self, number: int, context: Context | None = None) -> list[Made]:
        """``number`` turns of a plain agent: calls answered by results, and a last word."""
        at = context or self.begin(system("You are an agent."), user("Find out why the build fails."))
        found: list[Made] = []
        for turn in range(1, number + 1):
            name = f"call_{len(self.made) + 1}"
            last = turn == number
            answer = says("It is repaired.") if last else says(f"Step {turn}.", call(f"cat {turn}.py", id=name))
            found.append(self.call(at, answer))
            at = found[-1].then(result(f"file {turn}", id=name))
        return found

    # What a rebuild is given

    @property
    def records(self) -> list[Record]:
        return [made.record for made in self.made]

    def envelope(self, records: Iterable[JSON] | None = None, **keys: JSON) -> JSON:
        """As ``GET /v1/sessions/{id}/completions`` answers; ``records`` in another order, fewer or more."""
        completions = self.records if records is None else list(records)
        return {"schema_version": 1, "session_id": self.session_id, "completions": completions, **keys}

    def folder(self, log_dir: Path) -> Path:
        return log_dir / "sessions" / sha256(self.session_id.encode()).hexdigest()

    def write(
        self,
        log_dir: Path,
        *,
        folder: Path | None = None,
        incomplete: bool = False,
        undelivered: Iterable[str] = (),
    ) -> Path:
        """The records as a capture proxy's log directory holds them. Returns the directory as a source names it.

        ``undelivered`` are uuids of records whose answers did not reach their client.
        """
        place = folder or self.folder(log_dir)
        place.mkdir(parents=True, exist_ok=True)
        for number, record in enumerate(self.records):
            (place / f"{number:04}.json").write_text(json.dumps(record), encoding="utf-8")
        if incomplete:
            (place / "incomplete").touch()
        for uuid in undelivered:
            (place / f"{uuid}.undelivered").touch()
        return log_dir

    # The truth

    def truth(self) -> dict[str, Sampled]:
        """Everything that was sampled, by the uuid its record was made with."""
        return {made.uuid: made.truth for made in self.made}

    def sound(self) -> dict[str, Sampled]:
        """What of it may be trained, if its place in a chain allows."""
        return {uuid: one for uuid, one in self.truth().items() if uuid not in self.unsound}


Bend = Callable[[Context], Context]
"""What a harness or a template does to a context between two calls."""


def three_calls(bend: Bend, *, answer: Message | None = None) -> tuple[Session, list[Made]]:
    """Three calls of one conversation, in which something happens before the third."""
    session = Session()
    opening = session.begin(system("You are an agent."), user("Fix the build."))
    first = session.call(opening, says("I look.", call("ls", id="call_1")))
    second = session.call(
        first.then(result("a.py b.py", id="call_1")),
        answer or says("Both.", call("cat a.py", id="call_2"), call("cat b.py", id="call_3")),
    )
    context = second.then(result("aaa", id="call_2"), result("bbb", id="call_3"))
    third = session.call(bend(context), says("It is repaired."))
    return session, [first, second, third]


def truth_of(*sessions: Session) -> dict[str, Sampled]:
    """The truth of a tree of sessions."""
    return {uuid: one for session in sessions for uuid, one in session.truth().items()}


def _log_prob(token: int) -> float:
    """A different one for each id, with all the bits a float has."""
    return -(1 + token * 7919 % 1_000_003) / 1_000_003


def _copy(value: JSON) -> JSON:
    return json.loads(json.dumps(value))
