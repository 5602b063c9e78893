"""One rollout from its request to what was collected: spawn → ready → run harness → tear down → collect."""

import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.contract.rebuilds import RebuildAnswer
from conformance.contract.rollouts import Collected, Ended, Failure, RolloutRequest, Stage
from conformance.contract.vocabulary import Outcome
from conformance.reference.rollout import asking, attaching, collecting, running, settings
from conformance.reference.rollout.failures import RolloutFailed, unforeseen
from conformance.reference.rollout.spawning import SpawnedProxy, spawn

MOST_OUTPUT = 32_000
"""Of a call, as harnesses ask for: a quarter of the context, and never more than this."""

JSON = Any


@dataclass(frozen=True, slots=True)
class Routed:
    """The proxy that the harness is sent to. ``log_dir`` is null for one that was only attached to."""

    url: str
    host: str
    port: int
    log_dir: Path | None = None


@dataclass
class Rollout:
    """What is known of a rollout so far."""

    request: RolloutRequest
    backend: str | None
    folder: Path
    captured: bool
    session: str | None
    context_length: int | None = None
    proxy_log: str | None = None
    error: Failure | None = None
    harness: Ended | None = None
    evaluation: Ended | None = None
    left: collecting.Left = field(default_factory=collecting.Left)
    reward: float | None = None
    metrics: dict[str, JSON] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    def values(self, routed: Routed | None) -> dict[str, str | None]:
        """What texts may name, for a command that is sent to ``routed``, or to the backend itself."""
        asked, length = self.request, self.context_length
        told = None if asked.settings is None else asked.settings.yaml
        if routed is not None and asked.settings is not None:
            told = settings.routed(asked.settings, routed.host, routed.port)
        return {
            "python": sys.executable,
            "base_url": self.backend if routed is None else routed.url,
            "model": asked.model,
            "session": self.session,
            "settings": told,
            "workspace": str(self.workspace),
            "context_length": None if length is None else str(length),
            "output_length": None if length is None else str(min(MOST_OUTPUT, length // 4)),
        }


def is_captured(request: RolloutRequest) -> bool:
    """Golden patches and harnesses that are never captured get no proxy and no id, whatever is configured."""
    wanted = request.proxy.spawn is not None or request.proxy.attach is not None
    return wanted and not request.golden_patch and request.harness.session != "none"


def run(request: RolloutRequest, backend: str | None) -> Collected:
    """The whole life of a rollout. Only being told to end leaves it as an exception; all else is data."""
    captured = is_captured(request)
    minted = captured and request.harness.session == "minted"
    try:
        _refuse(request)
        Path(request.folder).mkdir(parents=True, exist_ok=True)
        # A folder of this attempt's own: what an earlier one left behind is never collected.
        folder = Path(tempfile.mkdtemp(prefix="attempt-", dir=Path(request.folder).absolute()))
        rollout = Rollout(request, backend, folder, captured, uuid.uuid4().hex if minted else None)
        rollout.workspace.mkdir()
    except RolloutFailed as error:
        return failed(request, error.failure)
    except (OSError, ValueError) as error:  # ValueError: a folder that no path can name
        return failed(request, unforeseen(Stage.REQUEST, error))
    rebuilt = _play(rollout)
    _evaluate(rollout)
    return _told(rollout, rebuilt)


def failed(request: RolloutRequest, failure: Failure) -> Collected:
    """A rollout of which nothing is left: withheld, and without a reward."""
    return Collected(
        id=request.id,
        captured=is_captured(request),
        outcome=Outcome.FAILED,
        withheld=True,
        reason=f"{failure.stage}: {failure.message}",
        error=failure,
    )


def _refuse(request: RolloutRequest) -> None:
    proxy = request.proxy
    if proxy.spawn is not None and proxy.attach is not None:
        raise RolloutFailed(Stage.REQUEST, "proxy: expected spawn or attach, seen both")
    if proxy.attach is not None:
        attaching.address_of(proxy.attach)
        if request.harness.session == "own" and not request.golden_patch:
            why = "harness.session: a proxy that is attached to needs a minted one; with own ids it has to be spawned"
            raise RolloutFailed(Stage.REQUEST, why)


def _play(rollout: Rollout) -> RebuildAnswer | Failure | None:
    """The harness behind its proxy, and then what was captured; None where nothing was to be."""
    routed = None
    try:
        with _proxy(rollout) as routed:
            if routed is not None:
                _ask_limits(rollout, routed)
            log = rollout.folder / "harness.log"
            values = rollout.values(routed)
            rollout.harness = running.run(rollout.request.harness, Stage.HARNESS, rollout.workspace, log, values)
    except RolloutFailed as error:
        rollout.error = error.failure
    except Exception as error:  # a fault of ours is the rollout's failure, never another one's
        rollout.error = unforeseen(Stage.HARNESS, error)
    rollout.left = collecting.from_workspace(rollout.workspace, rollout.request.harness)
    if not rollout.captured or routed is None:
        return None
    if routed.log_dir is not None:
        return collecting.from_disk(routed.log_dir)
    return collecting.from_proxy(routed.url, rollout.session or "")


@contextmanager
def _proxy(rollout: Rollout) -> Iterator[Routed | None]:
    """The proxy while the harness runs; gone, with all it started, when this is left in whatever way."""
    asked = rollout.request.proxy
    if not rollout.captured:
        yield None
    elif asked.attach is not None:
        address = attaching.address_of(asked.attach)
        attaching.reach(address)
        yield Routed(address.url, address.host, address.port)
    elif asked.spawn is not None:
        rollout.proxy_log = str(rollout.folder / "proxy.log")
        sources: dict[str, str | None] = {
            "backend": rollout.backend,
            "model": rollout.request.model or None,
            "tool_parser": asked.spawn.tool_parser,
            "reasoning_parser": asked.spawn.reasoning_parser,
        }
        try:
            proxy = spawn(asked.spawn, rollout.folder, sources)
        except (OSError, ValueError, TypeError) as error:  # a host or a program that nothing can be called
            raise RolloutFailed(Stage.SPAWN, unforeseen(Stage.SPAWN, error).message) from None
        try:
            yield Routed(f"http://{proxy.host}:{proxy.port}", proxy.host, proxy.port, proxy.log_dir)
        finally:
            code = proxy.kept.end()
        if proxy.kept.by_itself:
            raise _ended_under_it(proxy, code)


def _ended_under_it(proxy: SpawnedProxy, code: int | None) -> RolloutFailed:
    """Whatever the harness came to behind a proxy that was gone says nothing."""
    why = f"the proxy ended with exit code {code} while the harness ran; its log is {proxy.kept.log}"
    return RolloutFailed(Stage.HARNESS, why, exit_code=code, tail=proxy.kept.tail())


def _ask_limits(rollout: Rollout, routed: Routed) -> None:
    try:
        rollout.context_length = asking.context_length(routed.url, rollout.request.model)
    except asking.NoAnswer as error:
        rollout.warnings.append(f"the model's limits are not known: {error}")


def _evaluate(rollout: Rollout) -> None:
    """Once the proxy is gone, and never told of it."""
    evaluation = rollout.request.evaluation
    if evaluation is None or (rollout.harness is None and not rollout.request.golden_patch):
        return
    log = rollout.folder / "evaluation.log"
    try:
        log.unlink(missing_ok=True)  # what a harness put there would be read as the verdict
        values = {**rollout.values(None), "session": None}
        rollout.evaluation = running.run(evaluation, Stage.EVALUATION, rollout.workspace, log, values)
        rollout.reward, rollout.metrics, warning = collecting.verdict_of(collecting.end_of(log))
    except RolloutFailed as error:
        warning = f"no reward: {error}"
    except Exception as error:  # a fault of ours costs the reward, never the tokens
        warning = f"no reward: {unforeseen(Stage.EVALUATION, error).message}"
    if warning is not None:
        rollout.warnings.append(warning)


def _told(rollout: Rollout, rebuilt: RebuildAnswer | Failure | None) -> Collected:
    answer = rebuilt if isinstance(rebuilt, RebuildAnswer) else None
    error = rollout.error or (rebuilt if isinstance(rebuilt, Failure) else None)
    outcome = Outcome.FAILED if rollout.captured or error is not None else None
    reason = None if error is None else f"{error.stage}: {error.message}"
    trajectories = [] if answer is None else answer.trajectories
    return Collected(
        id=rollout.request.id,
        captured=rollout.captured,
        outcome=outcome if answer is None else answer.outcome,
        withheld=error is not None or (answer is not None and answer.withheld),
        reason=reason or (None if answer is None else answer.reason),
        reason_code=None if answer is None else answer.reason_code,
        error=error or _trace_error(answer),
        session_id=rollout.session or (trajectories[0].session_id if trajectories else None),
        trajectories=trajectories,
        excluded=[] if answer is None else answer.excluded,
        notes=[] if answer is None else answer.notes,
        reward=rollout.reward,
        patch=rollout.left.patch,
        metrics={**rollout.left.metrics, **rollout.metrics},
        harness=rollout.harness,
        evaluation=rollout.evaluation,
        backend=rollout.backend,
        context_length=rollout.context_length,
        proxy_log=rollout.proxy_log,
        warnings=[*rollout.warnings, *rollout.left.warnings],
    )


def _trace_error(answer: RebuildAnswer | None) -> Failure | None:
    """Where not a single token can be had, the rebuild's own error is why."""
    if answer is None or answer.error is None:
        return None
    return Failure(stage=Stage.COLLECT, message=f"{answer.error.rule}: {answer.error.message}")
