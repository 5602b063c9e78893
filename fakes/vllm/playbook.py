"""Playbooks: what the model does, turn by turn. ``reading`` reads them, ``promises`` checks what they promise."""

import difflib
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, model_validator

from fakes.vllm.fault_names import FAULT_NAMES

Sampling = Literal["faithful", "drifting"]

TAG = "{tag}"


class PlaybookError(ValueError):
    """Raised when a playbook cannot be played; the message is one line for its author."""


def _known_fault(name: str) -> str:
    if name in FAULT_NAMES:
        return name
    near = difflib.get_close_matches(name, FAULT_NAMES, 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ValueError(f"no fault is named {name!r}; {hint}allowed: {', '.join(FAULT_NAMES)}")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=True)


class FaultSpec(_Strict):
    """A misbehaviour of the server for this turn.

    ``on_attempts``: attempt numbers, or ``all``; only the first when left out. ``at_token`` counts generated tokens.
    """

    name: Annotated[str, AfterValidator(_known_fault)]
    on_attempts: Literal["all"] | list[int] = [0]
    at_token: int | None = Field(default=None, ge=0)
    status: int | None = Field(default=None, ge=100, le=599)
    headers: dict[str, str] = {}
    raw: str | None = None
    options: dict[str, JsonValue] = {}

    @model_validator(mode="after")
    def _an_odd_value_says_where(self) -> "FaultSpec":
        if self.name == "odd_value":
            at = self.options.get("at")
            if set(self.options) != {"at", "value"} or not (isinstance(at, str) and at.startswith("/")):
                raise ValueError('odd_value needs options: {at: "/choices/0/…", value: …}')
        return self


class Call(_Strict):
    """A tool call. ``arguments`` as a mapping is written in the template's own form; as a string it stands raw."""

    name: str = Field(pattern=r'^[^"\\\x00-\x1f]+$')
    arguments: dict[str, JsonValue] | str = {}


class Content(_Strict):
    """What one generation says.

    ``finish``: ``stop`` ends with the end-of-turn token, ``endoftext`` with the second end token, ``length`` with none.
    ``ids`` are the generation as it stands, strings in it are encoded; ``log_probs`` then has one value for each id.
    ``message`` is a parsed answer that no parser would give. ``returns: false``: the tag cannot come back.
    ``sampling`` overrules the playbook's.
    """

    text: str | None = None
    reasoning: str | None = None
    calls: list[Call] = []
    finish: Literal["stop", "length", "endoftext"] | None = None
    ids: list[int | str] | None = None
    log_probs: list[float] | None = None
    message: dict[str, JsonValue] | None = None
    chunking: list[Annotated[int, Field(ge=1)]] = []
    returns: bool = True
    sampling: Sampling | None = None

    @property
    def says_something(self) -> bool:
        """Whether any content was given, be it empty text."""
        return bool(self.calls) or any(
            value is not None for value in (self.text, self.reasoning, self.ids, self.message)
        )

    def tagged_strings(self) -> Iterator[str]:
        """Every string that reaches the client and that it may send back."""
        if self.message is not None:
            yield from strings_in(self.message)
            return
        yield self.text or ""
        for call in self.calls:
            yield from strings_in(call.arguments)
        for item in self.ids or ():
            if isinstance(item, str):
                yield item

    @model_validator(mode="after")
    def _ids_go_with_their_log_probs(self) -> "Content":
        if self.log_probs is not None:
            if self.ids is None:
                raise ValueError("log_probs need ids beside them")
            if len(self.log_probs) != len(self.ids) or any(isinstance(item, str) for item in self.ids):
                raise ValueError("log_probs need as many ids, all of them numbers")
        if self.ids is not None and (self.text is not None or self.reasoning is not None or self.calls):
            raise ValueError("ids replace text, reasoning and calls: give one or the other")
        return self


class Attempt(Content):
    """One attempt of a list: its own content; nothing is inherited from the turn."""


class Answer(Content):
    """What turns and side calls have in common.

    ``attempts``: ``same`` serves attempt 0 again to the bit; ``fresh`` the same text in another split with other log
    probs; a list gives the attempts that follow the answer's own content, or all of them when it has none, and the last
    repeats. ``gate``: the answer waits until that gate is opened; ``{run}`` in it stands for the run's six digits.
    """

    attempts: Literal["same", "fresh"] | list[Attempt] = "same"
    gate: str | None = None
    fault: FaultSpec | None = None

    def contents(self) -> list[Content]:
        """Content by attempt; the last one repeats."""
        if not isinstance(self.attempts, list):
            return [self]
        return [self, *self.attempts] if self.says_something else list(self.attempts)


class Turn(Answer):
    """One turn of a scope."""


class When(_Strict):
    """Which requests a side call answers; every condition given must hold.

    ``tools``: ``none``, ``any`` or how many are offered. ``roles``: the exact row of roles; ``messages``: how many.
    ``…_contains``: a text in the last user message, the first system message, the last message, or anywhere.
    """

    tools: Literal["none", "any"] | int | None = None
    roles: list[str] | None = None
    messages: int | None = None
    last_user_contains: str | None = None
    first_system_contains: str | None = None
    last_contains: str | None = None
    any_contains: str | None = None

    @model_validator(mode="after")
    def _says_when(self) -> "When":
        if not self.model_fields_set:
            raise ValueError(f"needs at least one condition of {', '.join(type(self).model_fields)}")
        return self


class SideCall(Answer):
    """A call beside the turns; ``{tag}`` in it is the highest tag of the prompt, as a summary must repeat it."""

    name: str = Field(min_length=1)
    when: When


class Scope(_Strict):
    """The turns of one conversation."""

    turns: list[Turn] = Field(min_length=1)


class Playbook(_Strict):
    """Everything the model does in one run. The first scope is number 0, the next 1, …"""

    about: str
    sampling: Sampling = "faithful"
    tools: list[str] = []
    scopes: dict[str, Scope] = Field(min_length=1, max_length=100)
    side_calls: list[SideCall] = []

    def turns_of(self, scope: int) -> list[Turn] | None:
        """The turns of a scope by number, or None."""
        scopes = list(self.scopes.values())
        return scopes[scope].turns if scope < len(scopes) else None


def playbook_schema() -> dict[str, Any]:
    """JSON Schema of a playbook."""
    schema = Playbook.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["$defs"]["FaultSpec"]["properties"]["name"]["enum"] = list(FAULT_NAMES)
    return schema


def contents_of(playbook: Playbook) -> Iterator[tuple[str, Answer, Content]]:
    """Every content of a playbook: the place where it is written, the turn or side call it belongs to, itself."""
    for name, scope in playbook.scopes.items():
        for number, turn in enumerate(scope.turns):
            yield from _contents_at(f"scopes.{name}.turns[{number}]", turn)
    for number, side_call in enumerate(playbook.side_calls):
        yield from _contents_at(f"side_calls[{number}]", side_call)


def _contents_at(place: str, answer: Answer) -> Iterator[tuple[str, Answer, Content]]:
    listed = answer.attempts if isinstance(answer.attempts, list) else []
    if answer.says_something or not listed:
        yield place, answer, answer
    for number, attempt in enumerate(listed):
        yield f"{place}.attempts[{number}]", answer, attempt


def strings_in(value: object) -> Iterator[str]:
    """Every string inside a JSON value; keys are not looked at."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings_in(item)
