"""A valid record in the form the rebuild links: one model call with its tokens and its comparable messages."""

import json
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from conformance.reference.rebuild.errors import Rule, TraceError
from conformance.reference.rebuild.nesting import too_deep
from conformance.reference.rebuild.rewrites import Message, is_rewrite, normal_form
from conformance.reference.rebuild.tokens import Node, Tokens

_letters = json.JSONEncoder(sort_keys=True, allow_nan=False).encode


@dataclass(frozen=True)
class Keys:
    """Small numbers for messages and tool lists, so that whole histories compare as arrays of integers, and each
    message is kept once, however many records repeat it.

    ``exact`` tells JSON values apart to the letter, ``normal`` only where no harness rewrite explains it.
    """

    exact: dict[str, int] = field(default_factory=dict)
    normal: dict[str, int] = field(default_factory=dict)
    normal_of_exact: dict[int, int] = field(default_factory=dict)
    messages: dict[int, Message] = field(default_factory=dict)
    tools: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    explained: dict[tuple[int, int], bool] = field(default_factory=dict)

    def of_value(self, value: Any) -> int:
        """Raises TraceError where the value nests too deep or is no JSON."""
        try:
            text = _letters(value)
        except (ValueError, RecursionError):
            raise TraceError(Rule.NESTING, "a value nests too deep or holds a number JSON does not know") from None
        if text not in self.exact and too_deep(value):
            raise TraceError(Rule.NESTING, "a value nests more than 100 levels deep")
        return self.exact.setdefault(text, len(self.exact))

    def of_message(self, message: Any, check: Callable[[Any], None]) -> tuple[int, int]:
        """The exact and the normal number of a message. ``check`` raises where a new one is not as it must be."""
        exact = self.of_value(message)
        if exact not in self.normal_of_exact:
            check(message)
            text = json.dumps(normal_form(message), sort_keys=True)
            self.normal_of_exact[exact] = self.normal.setdefault(text, len(self.normal))
            self.messages[exact] = message
        return exact, self.normal_of_exact[exact]

    def agree(self, emitted: int, echoed: int) -> bool:
        """Whether two messages, by their exact numbers, are one message up to what harnesses declare."""
        if self.normal_of_exact[emitted] == self.normal_of_exact[echoed]:
            return True
        pair = (emitted, echoed)
        if pair not in self.explained:
            self.explained[pair] = is_rewrite(self.messages[emitted], self.messages[echoed])
        return self.explained[pair]


class Messages(Sequence[Message]):
    """The messages that some exact numbers stand for."""

    def __init__(self, keys: Keys, numbers: Sequence[int]) -> None:
        self._known = keys.messages
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> Message: ...
    @overload
    def __getitem__(self, place: slice) -> list[Message]: ...
    def __getitem__(self, place: int | slice) -> Message | list[Message]:
        if isinstance(place, slice):
            return [self._known[number] for number in self._numbers[place]]
        return self._known[self._numbers[place]]


@dataclass(frozen=True, eq=False)
class Turn:
    """One valid record. The last message is the generated turn, all before it the request.

    ``exact`` and ``normal`` number the messages (``Keys``); ``prompt_end`` and ``history_end`` are the places in the
    tree of tokens to which the prompt, and prompt plus generation, lead.
    """

    uuid: str
    captured_at: str
    session_id: str
    parent_session_id: str | None
    request_id: str
    model: str
    messages: Messages
    exact: "array[int]"
    normal: "array[int]"
    tools: list[dict[str, Any]]
    tools_key: int
    choice_key: int
    prompt_end: Node
    history_end: Node
    generation: list[int]
    log_probs: list[float]
    finish_reason: str | None
    reasoning: str | None
    agent_id: str | None
    parent_agent_id: str | None
    native_session_id: str | None
    native_parent_id: str | None

    @property
    def place(self) -> tuple[str, str]:
        """Where the contract sorts the record."""
        return self.captured_at, self.uuid

    @property
    def prompt(self) -> Tokens:
        return Tokens(self.prompt_end)

    @property
    def request_length(self) -> int:
        return len(self.exact) - 1

    @property
    def request(self) -> "array[int]":
        """The normal numbers of the request's messages."""
        return self.normal[:-1]

    @property
    def answer(self) -> int:
        """The normal number of the generated turn."""
        return self.normal[-1]

    @property
    def system(self) -> tuple[int, ...]:
        """The normal numbers of the system messages the request opens with."""
        count = 0
        while count < self.request_length and self.messages[count]["role"] in ("system", "developer"):
            count += 1
        return tuple(self.normal[:count])
