"""The JSON lines a rollout runner reads and writes: one rollout a request, what was collected of it as the answer.

A runner takes one task through ``spawn → ready → run harness → tear down → collect``. All it has to know stands in the
request, since the task may run in another process, on another node, with another environment and directory.
"""

from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from conformance.contract.rebuilds import ExcludedRecord, Note, Trajectory
from conformance.contract.vocabulary import Outcome

PROTOCOL_VERSION = 1

JSON = Any


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Stage(StrEnum):
    """Where in its life a rollout failed. ``task`` is the process as a whole: killed, lost with its node, cancelled."""

    REQUEST = "request"
    ATTACH = "attach"
    SPAWN = "spawn"
    READY = "ready"
    HARNESS = "harness"
    EVALUATION = "evaluation"
    TEARDOWN = "teardown"
    COLLECT = "collect"
    TASK = "task"


class Spawn(_Line):
    """A capture proxy of this rollout's own.

    ``command`` is what stands before the contract's arguments; a first word without a slash is looked for beside the
    interpreter that runs the task, never on ``PATH``. ``variables`` are exported for the ``${NAME}`` of the routing
    profile; ``{backend}``, ``{model}``, ``{tool_parser}`` and ``{reasoning_parser}`` in a value are filled in, and a
    variable whose own value cannot be had is left out, which touches no other. ``python_path`` goes before an
    inherited ``PYTHONPATH``. Of all rollouts on a node at most ``starts_in_flight`` are between spawn and ready.
    """

    command: list[str] = Field(min_length=1)
    profile: str
    variables: dict[str, str] = Field(default_factory=dict)
    tool_parser: str | None = None
    reasoning_parser: str | None = None
    python_path: list[str] = Field(default_factory=list)
    host: str = "127.0.0.1"
    deadline_seconds: float = Field(default=240.0, gt=0)
    grace_seconds: float = Field(default=10.0, ge=0)
    starts_in_flight: int = Field(default=16, ge=1)


class Proxy(_Line):
    """At most one of the two; neither means that the harness speaks to the backend itself, and nothing is captured.

    ``attach`` is exactly ``http://host:port`` of a proxy that runs already (a slash at its end is accepted).
    """

    spawn: Spawn | None = None
    attach: str | None = None


class FileText(_Line):
    """A file of the workspace. ``unlimited`` stands for ``text`` where the model's context length is not known."""

    text: str
    unlimited: str | None = None


class Settings(_Line):
    """A YAML text of which ``server`` (keys joined by dots) is a mapping with ``host`` and ``port`` of the model.

    Routed, the harness's ``{settings}`` is this text with the proxy's host and port, all else as it was; the
    evaluation's is always this text to the byte.
    """

    yaml: str
    server: str


class Command(_Line):
    """What is run in the workspace: words, or one line for ``bash -c`` into which values are filled shell-quoted.

    Filled into command, environment and files: ``{python} {base_url} {model} {session} {settings} {workspace}
    {context_length} {output_length}``. ``base_url`` is ``http://host:port`` of the proxy for a routed harness, and of
    the backend for everybody else; what is not known is the empty text.
    """

    command: list[str] | str = Field(min_length=1)
    env: dict[str, str] = Field(default_factory=dict)
    files: dict[str, FileText] = Field(default_factory=dict)
    timeout_seconds: float = Field(default=3600.0, gt=0)
    grace_seconds: float = Field(default=10.0, ge=0)


class Harness(Command):
    """``session``: ``minted`` is a fresh id of the runner's, ``own`` the harness's own, ``none`` is never captured.

    ``patch`` and ``metrics`` name files of the workspace that it leaves behind: text, and a JSON object.
    """

    name: str
    session: Literal["minted", "own", "none"] = "minted"
    patch: str | None = None
    metrics: str | None = None


class Evaluation(Command):
    """Runs after the harness and says ``{"reward": number, "metrics": {…}}`` in the last line of its output."""


class RolloutRequest(_Line):
    """``folder`` is this rollout's own: logs, records and workspace; it is made where it is missing."""

    v: int = PROTOCOL_VERSION
    id: str
    op: Literal["rollout"] = "rollout"
    folder: str
    model: str
    backends: str | list[str] = Field(default_factory=list)
    proxy: Proxy = Proxy()
    harness: Harness
    evaluation: Evaluation | None = None
    settings: Settings | None = None
    golden_patch: bool = False


class CancelRequest(_Line):
    """Ends the rollout of that id; its answer still comes."""

    v: int = PROTOCOL_VERSION
    id: str
    op: Literal["cancel"]


class TaskStarted(_Line):
    """A line before the answer: which process of which node runs the rollout, for whoever has to watch or end it."""

    id: str
    event: Literal["task"] = "task"
    pid: int
    node: str
    attempt: int = 0


class Failure(_Line):
    """What went wrong, as data. ``message`` is one line; ``exit_code`` is that of the process it speaks of."""

    stage: Stage
    message: str
    exit_code: int | None = None
    tail: str = ""


class Ended(_Line):
    """How the harness or the evaluation ended. ``exit_code`` is null where it was ended by the runner."""

    exit_code: int | None
    timed_out: StrictBool = False
    log: str = ""


class Collected(_Line):
    """What a runner hands over of one rollout, whatever became of it.

    ``outcome`` is null where nothing was to be captured; ``failed`` where no token can be had. ``reward`` is null
    unless the evaluation said one: a rollout that broke is not a rollout of reward 0. ``session_id`` is the id that
    was minted, else the root's. ``trajectories`` have the root first, as a rebuild gives them.
    """

    id: str
    captured: StrictBool
    outcome: Outcome | None
    withheld: StrictBool
    reason: str | None = None
    reason_code: str | None = None
    error: Failure | None = None
    session_id: str | None = None
    trajectories: list[Trajectory] = Field(default_factory=list)
    excluded: list[ExcludedRecord] = Field(default_factory=list)
    notes: list[Note] = Field(default_factory=list)
    reward: float | None = None
    patch: str | None = None
    metrics: dict[str, JSON] = Field(default_factory=dict)
    harness: Ended | None = None
    evaluation: Ended | None = None
    backend: str | None = None
    context_length: int | None = None
    proxy_log: str | None = None
    warnings: list[str] = Field(default_factory=list)
