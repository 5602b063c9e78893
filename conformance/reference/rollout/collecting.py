"""What a rollout left behind, read once its proxy is gone: the records as a rebuild, patch, metrics, reward.

Nothing here raises: what cannot be had is said in the answer, and costs nothing else.
"""

import json
import math
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.contract.rebuilds import RebuildAnswer, RebuildRequest, Source
from conformance.contract.rollouts import Failure, Harness, Stage
from conformance.reference.rebuild.rollout import rebuild
from conformance.reference.rollout import asking
from conformance.reference.rollout.failures import unforeseen

JSON = Any

MOST_BYTES = 1 << 28
MOST_VERDICT_BYTES = 1 << 22


@dataclass(frozen=True)
class Left:
    """What the harness left in its workspace."""

    patch: str | None = None
    metrics: dict[str, JSON] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def from_disk(log_dir: Path) -> RebuildAnswer | Failure:
    """The rollout of a proxy that was this rollout's own, from its directory alone."""
    return _rebuilt(Source(log_dir=str(log_dir)))


def from_proxy(base_url: str, session: str) -> RebuildAnswer | Failure:
    """The rollout's one session of a proxy that others use too."""
    try:
        found = asking.envelope(base_url, session)
    except asking.NoAnswer as error:
        return Failure(stage=Stage.COLLECT, message=f"session {session}: {error}")
    if isinstance(found, dict) and found.get("session_id") != session:
        why = f"session {session}: the proxy answered with session {found.get('session_id')!r}"
        return Failure(stage=Stage.COLLECT, message=" ".join(why.split()))
    return _rebuilt(Source(sessions=[]) if found is None else Source(envelope=found))


def _rebuilt(source: Source) -> RebuildAnswer | Failure:
    try:
        return rebuild(RebuildRequest(id="", source=source))
    except Exception as error:  # whatever the records hold, reward and patch of the rollout are kept
        return unforeseen(Stage.COLLECT, error)


def from_workspace(workspace: Path, harness: Harness) -> Left:
    patch, metrics, warnings = None, {}, []
    if harness.patch is not None:
        try:
            patch = _contents(workspace, harness.patch).decode("utf-8", "surrogateescape")
        except (OSError, ValueError) as error:
            warnings.append(f"no patch: {harness.patch}: {error}")
    if harness.metrics is not None:
        try:
            metrics = _object(_contents(workspace, harness.metrics))
        except (OSError, ValueError, RecursionError) as error:
            warnings.append(f"no metrics: {harness.metrics}: {error}")
    return Left(patch, metrics, tuple(warnings))


def _contents(workspace: Path, name: str) -> bytes:
    """Of a file of reasonable size. Raises OSError, and ValueError for what else a harness left there.

    That is a pipe, a device, or a link that leads out of the workspace, to what the agent could not have read.
    """
    path = workspace / name
    # realpath, since Path.resolve raises for a link to itself.
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(workspace)):
        raise ValueError("expected a file below the workspace")
    # Not blocking: a pipe that nobody writes to is opened at once, and then refused.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise ValueError("expected a file, seen a pipe, device or folder")
        if about.st_size > MOST_BYTES:
            raise ValueError(f"expected at most {MOST_BYTES} bytes, seen {about.st_size}")
        return file.read(MOST_BYTES)


def end_of(log: Path) -> bytes:
    """As much of it as a verdict may take. Raises OSError."""
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - MOST_VERDICT_BYTES))
        return file.read(MOST_VERDICT_BYTES)


def verdict_of(output: bytes) -> tuple[float | None, dict[str, JSON], str | None]:
    """Reward, metrics and a warning from the last line of an evaluation's output; no reward where it says none."""
    lines = output.strip().splitlines()
    try:
        said = _object(lines[-1] if lines else b"")
        reward, metrics = said.get("reward"), said.get("metrics", {})
        if isinstance(reward, bool) or not isinstance(reward, int | float) or not math.isfinite(reward):
            raise ValueError(f"reward is {reward!r}")
        if not isinstance(metrics, dict):
            raise ValueError(f"metrics is {type(metrics).__name__}")
    except (ValueError, RecursionError, OverflowError) as error:
        return None, {}, f"no reward: the evaluation's last line is no verdict: {error}"
    return float(reward), metrics, None


def _object(text: bytes) -> dict[str, JSON]:
    found = json.loads(text, parse_constant=lambda _: None)  # NaN and infinities are no JSON, here nor in the answer
    if not isinstance(found, dict):
        raise ValueError(f"expected an object, seen {type(found).__name__}")
    return found
