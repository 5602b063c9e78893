"""What a session of opencode sends of its history: all of it, or, once compacted, a summary and the newest steps.

The rule of what is kept agrees with both recorded compactions: the newest turns that fit a budget, the oldest of them
cut between two steps, and nothing at all when everything would fit. Recorded is one compaction a session; a second one
is a guess.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from fakes.harnesses.chat_answers import Message
from fakes.harnesses.claude_code_json import js_dump
from fakes.harnesses.conversation import text_of
from fakes.harnesses.opencode_texts import COMPACTED, SUMMARY_REQUEST, SUMMARY_SYSTEM

_LEAST_KEPT, _MOST_KEPT = 2_000, 8_000
_SHOWN_OF_A_RESULT = 2_000

Step = tuple[Message, ...]
"""One user message, or one answer with its tool results: what stays or goes together."""


@dataclass
class History:
    """``steps`` are everything since the beginning, or since ``summary`` replaced what was before."""

    system: str
    steps: list[Step] = field(default_factory=list)
    summary: Message | None = None

    def messages(self) -> list[Message]:
        opening: list[Message] = [{"role": "system", "content": self.system}]
        if self.summary is not None:
            opening += [{"role": "user", "content": COMPACTED}, self.summary]
        return [*opening, *_flat(self.steps)]

    def summary_request(self, steps: Iterable[Step]) -> list[Message]:
        """The compaction's own prompt: these steps, and a former summary before them, as one text."""
        before = [] if self.summary is None else [self.summary]
        lines = [_shown(message) for message in (*before, *_flat(steps))]
        return [
            {"role": "system", "content": SUMMARY_SYSTEM},
            {"role": "user", "content": "\n\n".join([SUMMARY_REQUEST, *lines])},
        ]


def kept_from(steps: Sequence[Step], budget: int) -> int:
    """The number of the first step that survives a compaction, their count if none does; ``budget`` in tokens."""
    kept, room = len(steps), budget
    for at in reversed(range(len(steps))):
        room -= tokens_in(steps[at])
        if room < 0:
            break
        kept = at
    return kept or len(steps)


def budget_for(usable: int) -> int:
    """How many tokens of the newest steps survive where ``usable`` tokens fit the context."""
    return min(_MOST_KEPT, max(_LEAST_KEPT, usable // 4))


def tokens_in(step: Step) -> int:
    """An estimate at four characters each, over the wire form; the real one looks at a longer form of its own."""
    return round(len(js_dump(step)) / 4)


def last_asked(steps: Sequence[Step]) -> int | None:
    """The number of the newest user message."""
    return next((at for at in reversed(range(len(steps))) if steps[at][0]["role"] == "user"), None)


def history_of(messages: list[Message]) -> History:
    """A history read back from what was sent of it."""
    system, *rest = messages
    summary = rest[1] if len(rest) > 1 and rest[0]["content"] == COMPACTED else None
    steps: list[Step] = []
    for message in rest if summary is None else rest[2:]:
        steps = [*steps[:-1], (*steps[-1], message)] if message["role"] == "tool" else [*steps, (message,)]
    return History(system["content"], steps, summary)


def _flat(steps: Iterable[Step]) -> list[Message]:
    return [message for step in steps for message in step]


def _shown(message: Message) -> str:
    text = text_of(message.get("content"))
    if message["role"] == "tool" and len(text) > _SHOWN_OF_A_RESULT:
        text = f"{text[:_SHOWN_OF_A_RESULT]}\n[cut]"
    calls = [f"{call['function']['name']}({call['function']['arguments']})" for call in message.get("tool_calls", [])]
    return "\n".join([f"[{message['role']}] {text}", *calls])
