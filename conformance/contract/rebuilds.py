"""The JSON lines a rebuild system reads and writes: one request a line in, one answer a line out."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from conformance.contract.vocabulary import ExcludedWhy, Outcome, Part

PROTOCOL_VERSION = 1

JSON = Any


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Source(_Line):
    """Where the records are. Exactly one of the four is given.

    ``sessions`` is a list of envelopes (a session tree); ``log_dir`` a capture proxy's log directory; ``url`` a
    capture proxy's base address.
    """

    envelope: JSON = None
    sessions: list[JSON] | None = None
    log_dir: str | None = None
    url: str | None = None


class RebuildRequest(_Line):
    """``split`` names what the caller takes as trajectories of their own: the segments of a compacted session, the
    branches of a fork. What is not named is withheld whole, and a system without that capability withholds it anyway.
    """

    v: int = PROTOCOL_VERSION
    id: str
    op: Literal["rebuild"] = "rebuild"
    source: Source
    allow_partial: bool = True
    split: list[Part] = Field(default_factory=list)


class TraceErrorShape(_Line):
    """A typed trace error: the rule that broke and the record that broke it."""

    rule: str
    record_uuid: str | None = None
    message: str


class ExcludedRecord(_Line):
    """A record that stands in no trajectory; ``error`` is the rule an invalid one broke, where the system tells."""

    record_uuid: str
    why: ExcludedWhy
    error: TraceErrorShape | None = None


class Note(_Line):
    """What is worth telling of a record that stays; ``code`` is one of the contract's where it has one."""

    record_uuid: str
    code: str


class Trajectory(_Line):
    """One training sequence.

    ``tokens``, ``mask`` and ``log_probs`` are of equal length; ``mask`` is 1 exactly on sampled tokens of this
    trajectory, and ``log_probs`` is null exactly where ``mask`` is 0. ``items`` are Responses API items; the last
    item of a generated turn carries ``prompt_token_ids``, ``generation_token_ids``, ``generation_log_probs``.
    """

    session_id: str
    parent: str | None = None
    agent: str | None = None
    outcome: Outcome
    withheld: StrictBool
    reason_code: str | None = None
    model: str | None = None
    tools: list[JSON] = Field(default_factory=list)
    items: list[JSON] = Field(default_factory=list)
    record_uuids: list[str] = Field(default_factory=list)
    tokens: list[int] = Field(default_factory=list)
    mask: list[int] = Field(default_factory=list)
    log_probs: list[float | None] = Field(default_factory=list)


class RebuildAnswer(_Line):
    """``withheld`` says that no token of the rollout may be trained, whatever its trajectories hold."""

    id: str
    outcome: Outcome
    withheld: StrictBool
    reason: str | None = None
    reason_code: str | None = None
    error: TraceErrorShape | None = None
    excluded: list[ExcludedRecord] = Field(default_factory=list)
    notes: list[Note] = Field(default_factory=list)
    trajectories: list[Trajectory] = Field(default_factory=list)
