"""What a capture proxy keeps of one model call, and how it hands the calls of a session out."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 1
"""The only record and envelope version this contract knows."""

JSON = Any
"""A value of JSON. The message, tool and argument trees are the client's and are kept as they came."""


class _Open(BaseModel):
    """Readers of the contract ignore keys they do not know."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class TokenCount(_Open):
    """Token counts as the engine's usage reported them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0


class Extras(_Open):
    """``x_trackgauge``: what this project keeps beyond the public record (a decision of ours)."""

    invalid_reason: str | None = None
    started_at: str | None = None
    sampling: dict[str, JSON] = Field(default_factory=dict)
    stop_reason: str | int | None = None
    reasoning: str | None = None
    agent_id: str | None = None
    parent_agent_id: str | None = None
    native_session_id: str | None = None
    native_parent_id: str | None = None
    weight_version: str | None = None
    injected: bool = False
    plain_reason: str | None = None
    rendering: str | None = None


class Record(_Open):
    """One captured model call.

    ``prompt_token_ids``, ``generation_token_ids`` and ``generation_log_probs`` are the engine's own, the last two
    of equal length; they are null or odd only where ``is_valid`` is false. ``messages`` is the request in chat
    form followed by the generated assistant turn. ``captured_at`` is UTC with microseconds, of fixed width.
    """

    schema_version: int = SCHEMA_VERSION
    uuid: str
    session_id: str
    parent_session_id: str | None = None
    captured_at: str
    request_id: JSON = None
    model: JSON = None
    messages: list[JSON]
    tools: list[JSON] = Field(default_factory=list)
    tool_choice: str = "auto"
    token_count: TokenCount = TokenCount()
    prompt_token_ids: JSON = None
    generation_token_ids: JSON = None
    generation_log_probs: JSON = None
    finish_reason: JSON = None
    is_valid: bool
    x_trackgauge: Extras | None = None


class SessionRow(_Open):
    """One session in the proxy's list."""

    session_id: str
    parent_session_id: str | None = None
    incomplete: bool = False


class SessionList(_Open):
    """``GET /v1/sessions``."""

    schema_version: int = SCHEMA_VERSION
    sessions: list[SessionRow]


class Envelope(_Open):
    """``GET /v1/sessions/{id}/completions``: the records by (captured_at, uuid).

    ``undelivered`` are the uuids of records whose answers did not reach their client.
    """

    schema_version: int = SCHEMA_VERSION
    session_id: str
    completions: list[Record]
    incomplete: bool = False
    undelivered: list[str] = Field(default_factory=list)
