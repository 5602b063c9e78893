"""A valid record in the form the rebuild links: one model call with its tokens and its comparable messages."""

import json
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from conformance.reference.rebuild.errors import Rule, TraceError
from conformance.reference.rebuild.nesting import too_deep
from conformance.reference.rebuild.rewrites import Message, is_rewrite, normal_form

_letters = json.JSONEncoder(sort_keys=True, allow_nan=False).encode


@dataclass(frozen=True)
class Keys:
    """Small numbers for messages and tool lists, so that whole histories compare as tuples of integers.

    ``exact`` tells JSON values apart to the letter, ``normal`` only where no harness rewrite explains it.
    """

    exact: dict[str, int] = field(default_factory=dict)
    normal: dict[str, int] = field(default_factory=dict)
    normal_of_exact: dict[int, int] = field(default_factory=dict)
    messages: dict[int, Message] = field(default_factory=dict)
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


@dataclass(frozen=True, eq=False)
class Turn:
    """One valid record. The last message is the generated turn, all before it the request.

    ``exact`` and ``normal`` number the messages (``Keys``); ``prompt_bytes`` and ``history_bytes`` are prompt, and
    prompt plus generation, eight bytes a token, so that "starts with" is one comparison of memory.
    """

    uuid: str
    captured_at: str
    session_id: str
    parent_session_id: str | None
    model: str
    messages: list[Message]
    exact: tuple[int, ...]
    normal: tuple[int, ...]
    tools: list[dict[str, Any]]
    tools_key: int
    choice_key: int
    prompt: list[int]
    generation: list[int]
    log_probs: list[float]
    prompt_bytes: bytes
    history_bytes: bytes
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
    def request_length(self) -> int:
        return len(self.messages) - 1

    @property
    def request(self) -> tuple[int, ...]:
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
        return self.normal[:count]


def token_bytes(ids: list[int]) -> bytes:
    """Raises OverflowError for an id no engine has (2^63 and above)."""
    return array("q", ids).tobytes()
