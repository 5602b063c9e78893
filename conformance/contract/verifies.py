"""What a trainer gets of a rollout, and what it makes of a group of them: two questions a rollout runner may answer.

``verify`` turns what was collected of one rollout into the response that an environment gives its trainer. ``group``
takes all that came back for one task and says who votes in the baseline, who is trained, and who is asked for again.
Both are JSON lines, as :mod:`conformance.contract.rollouts` has them.
"""

from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from conformance.contract.rollouts import PROTOCOL_VERSION, Collected
from conformance.contract.vocabulary import Outcome, ReasonCode

JSON = Any


class MaskReason(StrEnum):
    """Why a sample is masked. The first four speak of its tokens, the others of its reward."""

    TRACE_WITHHELD = "trace_withheld"
    TRACE_FAILED = "trace_failed"
    NO_GENERATION = "no_generation"
    NOT_THE_ROOT = "not_the_root"
    ABORTED = "aborted"
    AGENT_TIMED_OUT = "agent_timed_out"
    EVAL_TIMED_OUT = "eval_timed_out"
    OOM_KILLED = "oom_killed"
    EVAL_OOM_KILLED = "eval_oom_killed"
    MAX_ITERATION = "max_iteration"
    CONTEXT_WINDOW = "context_window"
    NO_REWARD = "no_reward"


OF_TOKENS = frozenset(
    {MaskReason.TRACE_WITHHELD, MaskReason.TRACE_FAILED, MaskReason.NO_GENERATION, MaskReason.NOT_THE_ROOT}
)


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Told(BaseModel):
    """What a system says: it may say more."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class GroupIdentity(_Line):
    """Which member of which group a rollout is: the task, the rollout's number in it, and the attempt at it."""

    task: str
    rollout: int = Field(ge=0)
    attempt: int = Field(default=0, ge=0)


class VerifyRequest(_Line):
    """``instance_config`` and ``responses_create_params`` are handed through; the response says what was changed.

    Read of ``collected.metrics``: the flags ``resolved``, ``agent_timed_out``, ``eval_timed_out``, ``oom_killed``,
    ``eval_oom_killed``, and ``agent_error_kind`` (text).
    """

    v: int = PROTOCOL_VERSION
    id: str
    op: Literal["verify"]
    collected: Collected
    group: GroupIdentity | None = None
    instance_config: dict[str, JSON] = Field(default_factory=dict)
    responses_create_params: dict[str, JSON] = Field(default_factory=dict)


class SubagentTrajectory(_Told):
    """A trajectory beside the main one, whole or broken; ``mask_sample`` is its own."""

    session_id: str
    parent_session_id: str | None = None
    agent: str | None = None
    model: str | None = None
    outcome: Outcome
    mask_sample: StrictBool
    reason_code: ReasonCode | str | None = None
    record_uuids: list[str] = Field(default_factory=list)
    tools: list[JSON] = Field(default_factory=list)
    input: list[JSON] = Field(default_factory=list)
    output: list[JSON] = Field(default_factory=list)


class Response(_Told):
    """``output`` are Responses API items, the triple on the last one of each generated turn.

    ``metadata`` is null where nothing was captured; else text only: ``switchyard_source`` (always ``switchyard``),
    ``switchyard_session_id``, ``switchyard_record_uuids`` (a JSON list), ``switchyard_model``.
    """

    output: list[JSON] = Field(default_factory=list)
    metadata: dict[str, str] | None = None


class VerifyResponse(_Told):
    """One sample, as a trainer gets it.

    ``mask_sample`` stands in ``instance_config`` too, equal: trainers read either. It is the trainer's only way to
    know that a sample must not count; ``tokens_trainable`` and ``reward_is_evidence`` say which half of it is bad.
    ``reward`` is null where nobody said one. ``switchyard_trace_error`` is one line, also for a broken subagent.
    ``subagent_trajectories`` is null where nothing was captured.
    """

    id: str
    group: GroupIdentity | None = None
    reward: float | None
    reward_is_evidence: StrictBool
    tokens_trainable: StrictBool
    mask_sample: StrictBool
    mask_reasons: list[MaskReason] = Field(default_factory=list)
    instance_config: dict[str, JSON]
    switchyard_trace_error: str | None = None
    subagent_trajectories: list[SubagentTrajectory] | None = None
    responses_create_params: dict[str, JSON] = Field(default_factory=dict)
    response: Response
    patch: str | None = None
    metrics: dict[str, JSON] = Field(default_factory=dict)


class Member(_Line):
    """What came back for one rollout of a group: a verify response as it was received, or null and why."""

    rollout: int = Field(ge=0)
    attempt: int = Field(default=0, ge=0)
    response: dict[str, JSON] | None = None
    error: str | None = None


class GroupRequest(_Line):
    """``size`` is how many rollouts the task has; ``most_attempts`` how often one is tried, the first time included."""

    v: int = PROTOCOL_VERSION
    id: str
    op: Literal["group"]
    task: str
    size: int = Field(ge=1, le=65_536)
    members: list[Member]
    most_attempts: int = Field(default=2, ge=1)


class Sequence(_Told):
    """What is trained: as in a trajectory, the three lists are of equal length."""

    session_id: str | None = None
    tokens: list[int] = Field(default_factory=list)
    mask: list[int] = Field(default_factory=list)
    log_probs: list[float | None] = Field(default_factory=list)


class MemberVerdict(_Told):
    """``advantage`` is null for a member that is not trained; ``why`` says why it is not, null for one that is."""

    rollout: int
    votes: StrictBool
    advantage: float | None = None
    why: str | None = None
    sequences: list[Sequence] = Field(default_factory=list)


class GroupAnswer(_Told):
    """``baseline`` is the mean reward of those that vote; null where fewer than two do, and then nobody is trained.

    ``retries`` are rollouts to be run again, each by itself. ``trained_tokens`` is the number of sampled tokens that
    the loss is divided by.
    """

    id: str
    baseline: float | None = None
    members: list[MemberVerdict] = Field(default_factory=list)
    retries: list[int] = Field(default_factory=list)
    trained_tokens: int = 0
