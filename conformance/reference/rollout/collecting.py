"""What a rollout left behind, read once its proxy is gone: the records as a rebuild, patch, metrics, reward.

Nothing here raises: what cannot be had is said in the answer, and costs nothing else.
"""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.contract.rebuilds import RebuildAnswer, RebuildRequest, Source
from conformance.contract.rollouts import Failure, Harness, Stage
from conformance.reference.rebuild.rollout import rebuild
from conformance.reference.rollout import asking
from conformance.reference.rollout.failures import unforeseen

JSON = Any


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
            patch = (workspace / harness.patch).read_text(encoding="utf-8", errors="surrogateescape")
        except OSError as error:
            warnings.append(f"no patch: {harness.patch}: {error.strerror}")
    if harness.metrics is not None:
        try:
            metrics = _object((workspace / harness.metrics).read_bytes())
        except (OSError, ValueError, RecursionError) as error:
            warnings.append(f"no metrics: {harness.metrics}: {error}")
    return Left(patch, metrics, tuple(warnings))


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
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f"expected an object, seen {type(found).__name__}")
    return found
