"""What the OpenHands SDK sends of its history: all of it, or, once condensed, a summary and the newest turns.

The counting is read off the recorded runs: every call and every result is an event, as are the system prompt, the first
message and a summary; ``max_size`` 10 condenses at the eleventh event and keeps two of the tail; a forced condensation
halves the view.
"""

from dataclasses import dataclass, field

from fakes.harnesses.chat_answers import Message
from fakes.harnesses.conversation import text_of, text_parts

_KEPT_FIRST = 2
CONDENSER_SYSTEM = "You shorten the record of an agent's work so that the agent can go on from it."


@dataclass(frozen=True)
class Unit:
    """Messages that stay or go together: a turn with its results, or a single message. ``events`` as the SDK counts."""

    messages: tuple[Message, ...]
    events: int


@dataclass
class History:
    """Everything between the first message and now, minus what was condensed away."""

    system: Message
    task: str
    units: list[Unit] = field(default_factory=list)
    summary: str | None = None

    @property
    def size(self) -> int:
        return _KEPT_FIRST + (self.summary is not None) + sum(unit.events for unit in self.units)

    def messages(self) -> list[Message]:
        """The view that is sent: a summary stands as a second text part inside the first user message."""
        texts = [self.task] if self.summary is None else [self.task, self.summary]
        first: Message = {"content": text_parts(*texts), "role": "user"}
        return [self.system, first, *(message for unit in self.units for message in unit.messages)]

    def to_forget(self, target: int) -> int:
        """How many of the oldest units go when the view shall shrink to ``target`` events; units are never split."""
        room, keep = target - _KEPT_FIRST - 1, 0
        for unit in reversed(self.units):
            room -= unit.events
            if room < 0:
                break
            keep += 1
        return len(self.units) - keep

    def forget(self, count: int, summary: str) -> None:
        self.units = self.units[count:]
        self.summary = summary

    def summary_request(self, count: int) -> list[Message]:
        """The condenser's own prompt: an instruction, and what will be forgotten as text, the last summary included."""
        forgotten = [message for unit in self.units[:count] for message in unit.messages]
        lines = [f"{message['role']}: {_shown(message)}" for message in forgotten]
        text = "\n".join(["Summarise:", self.task, *([self.summary] if self.summary else []), *lines])
        return [
            {"content": text_parts(CONDENSER_SYSTEM), "role": "system"},
            {"content": text_parts(text), "role": "user"},
        ]


def _shown(message: Message) -> str:
    calls = [f"{call['function']['name']}({call['function']['arguments']})" for call in message.get("tool_calls", [])]
    return " ".join([text_of(message.get("content")), *calls]).strip()
