"""What every fake agent has in common: how a conversation is told and how its exchanges are kept in order."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from fakes.harnesses.chat_answers import Message
from fakes.harnesses.exchanges import Ended, Exchange, Exchanges, Received, Sent

HowItEnded = Literal["finished", "answered", "error", "max_turns", "gave_up"]


@dataclass(frozen=True)
class Conversation:
    """What one run of a fake agent came to.

    ``ended``: ``finished`` by its finish tool; ``answered`` with plain text that ends the run; ``error`` as the real
    harness errors out (``error`` says why); ``max_turns`` as the scenario asked; ``gave_up`` where the real client
    would go on for ever. ``exchanges`` are this agent's own, ``children`` its sub-agents; ``n`` counts over all of
    them in order of sending.
    """

    harness: str
    version: str
    session: str | None
    conversation: str
    ended: HowItEnded
    error: str | None
    messages: list[Message]
    exchanges: list[Exchange]
    children: list["Conversation"] = field(default_factory=list)

    @property
    def all_exchanges(self) -> list[Exchange]:
        """This agent's and its sub-agents' exchanges, in order of sending."""
        found = [*self.exchanges, *(exchange for child in self.children for exchange in child.all_exchanges)]
        return sorted(found, key=lambda exchange: exchange.n)

    @property
    def answers(self) -> list[Message]:
        """The assistant messages this agent got, in order."""
        return [exchange.answer for exchange in self.exchanges if exchange.answer is not None]

    @property
    def last(self) -> Exchange:
        return self.exchanges[-1]

    def told(self) -> Exchanges:
        """The versioned form, sub-agents included."""
        return Exchanges(
            harness=self.harness,
            version=self.version,
            session=self.session,
            conversation=self.conversation,
            exchanges=tuple(self.all_exchanges),
        )


class Account:
    """Numbers the exchanges of a conversation and its sub-agents in the order they are *sent*."""

    def __init__(self) -> None:
        self._next = 0

    def number(self) -> int:
        self._next += 1
        return self._next - 1


@dataclass(frozen=True)
class Outcome:
    """What the wire made of one request."""

    sent: Sent
    received: Received | None
    ended: Ended
    error: str | None = None

    def exchange(self, n: int, *, streamed: bool, planned_wait: float | None = None, attempt: int = 0) -> Exchange:
        return Exchange(
            n=n,
            request=self.sent,
            response=self.received,
            ended=self.ended,
            streamed=streamed,
            planned_wait=planned_wait,
            attempt=attempt,
            error=self.error,
        )


def with_answer(exchange: Exchange, answer: Message | None, error: str | None = None) -> Exchange:
    return exchange.model_copy(update={"answer": answer, "error": exchange.error or error})


def new_id() -> str:
    """A conversation id, random so that two scenarios in one proxy never meet."""
    return str(uuid.uuid4())


def text_of(content: Any, between: str = "\n") -> str:
    """The text of a message's content, whether a string, text parts, or nothing."""
    if isinstance(content, str):
        return content
    if isinstance(content, Iterable):
        return between.join(
            part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    return ""


def text_parts(*texts: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text} for text in texts]
