"""What a bench of rollouts says in the end."""

import statistics
from collections.abc import Iterator

from ci.benches.parts.runner import Watch
from ci.benches.parts.sampled import Verdict

NO_OP_SECONDS = 0.1
"""Within which the runner is to answer what costs nothing."""


def told(name: str, watch: Watch, verdict: Verdict) -> Iterator[str]:
    count = len(watch.answers)
    ready = sorted(
        answer["metrics"]["began"] - watch.started[key]
        for key, answer in watch.answers.items()
        if "began" in answer["metrics"] and key in watch.started
    )
    yield f"{name}: {count} rollouts in {watch.wall:.1f} s, {watch.held} of them at once before their last call"
    yield (
        f"  calls {verdict.calls}, {verdict.calls / watch.wall:.0f} a second; lost {verdict.lost}, "
        f"mixed {verdict.mixed}, rollouts not as the ledger has them {len(verdict.broken)}"
    )
    if ready:
        yield (
            f"  from task to harness p50 {statistics.median(ready):.2f} s, p90 {ready[int(len(ready) * 0.9)]:.2f} s "
            "(waiting for one of 8 starts in flight included)"
        )
    if watch.proxies:
        yield f"  memory a proxy {statistics.median(watch.proxies):.1f} MB (PSS, median of {len(watch.proxies)} looks)"
    yield _lateness("while rollouts are begun", watch.no_ops_at_begin)
    yield _lateness("while they run and are collected", watch.no_ops)
    yield (
        f"  descriptors of the runner at most {watch.most_files}; memory of all with {watch.held} at once "
        f"{watch.memory / 1000:.1f} GB, {watch.memory / max(1, watch.held):.0f} MB a rollout"
    )
    yield from (f"  ! {each}" for each in verdict.broken[:10])


def _lateness(when: str, asked: list[float]) -> str:
    if not asked:
        return f"  no-op of the runner {when}: none asked"
    taken = sorted(each * 1e3 for each in asked)
    p50, p99 = statistics.median(taken), taken[int(len(taken) * 0.99)]
    late = sum(each > NO_OP_SECONDS * 1e3 for each in taken)
    return (
        f"  no-op of the runner {when}: p50 {p50:.1f} ms, p99 {p99:.1f}, worst {taken[-1]:.1f}; "
        f"{late} of {len(taken)} later than {NO_OP_SECONDS * 1e3:.0f} ms"
    )
