"""Every way out of a rollout: whatever was started is gone, children included, and what became of it is told."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.world import World
from conformance.scenarios.rebuild.sessions import Session
from conformance.scenarios.spawn.puppets import Puppet
from conformance.scenarios.spawn.rollouts import (
    Rollouts,
    all_gone,
    answer_soon,
    is_lost,
    records_of,
    rollouts,
    stage_of,
    verdict,
)
from conformance.systems.runner import Going, RunnerUnderTest

JSON = Any

AT_ONCE_SECONDS = 2.0
"""For what has happened already, until this process has heard of it."""


async def with_children(asked: Rollouts, going: Going) -> list[Puppet]:
    """Proxy and harness of a rollout under way, each with a child and with one that left its session."""
    proxy = await asked.next("proxy")
    await proxy.do("listen")
    harness = await asked.next("harness")
    cast = [harness, proxy]
    for parent in (proxy, harness):
        for session in (False, True):
            await parent.do("fork", session=session)
            cast.append(await asked.next(f"{parent.told['role']}'s child"))
    return cast


@covers("SPN-018", "SPN-019", "SPN-020")
async def test_proxy_and_children_are_gone_before_the_answer_comes(
    runner: RunnerUnderTest, tmp_path: Path, check: Check
) -> None:
    async with rollouts(runner, tmp_path) as asked:
        for code, requirement in ((0, "SPN-018"), (3, "SPN-020")):
            going = await asked.begin(evaluation=verdict())
            cast = await with_children(asked, going)
            await cast[0].do("leave", code=code)
            answer = await going.answer()
            left = await all_gone(cast, AT_ONCE_SECONDS)
            check.equal(requirement, expected=[], seen=left, where="still there after the answer")
            seen = [(answer["harness"] or {}).get("exit_code"), answer["reward"]]
            check.equal(requirement, expected=[code, 1.0], seen=seen, where="exit code of the harness, reward")
        stubborn = await asked.begin(proxy=asked.spawn(grace_seconds=0.1))
        proxy = await asked.next("proxy")
        await proxy.do("ignore")
        await proxy.do("listen")
        await (await asked.next("harness")).do("leave")
        await stubborn.answer()
        check(
            "SPN-019",
            await proxy.is_gone(AT_ONCE_SECONDS),
            expected="a proxy that ignores TERM is killed",
            seen="it is there",
        )


@covers("SPN-020", "SPN-021")
async def test_a_harness_that_fails_or_overruns_costs_nothing_else(
    runner: RunnerUnderTest, tmp_path: Path, check: Check
) -> None:
    async with rollouts(runner, tmp_path) as asked:
        nowhere = {"name": "none", "command": [str(tmp_path / "not-there")]}
        going = await asked.begin(harness=nowhere)
        proxy = await asked.next("proxy")
        await proxy.do("listen")
        answer = await going.answer()
        seen: JSON = [stage_of(answer), is_lost(answer), await proxy.is_gone()]
        check.equal("SPN-020", expected=["harness", True, True], seen=seen, where="a harness that cannot be run")
        going = await asked.begin(harness=asked.harness(timeout_seconds=0.5, grace_seconds=0.1), evaluation=verdict())
        proxy = await asked.next("proxy")
        await proxy.do("listen")
        # On a slow machine its time is over before it has come.
        harness = await asked.come("harness", going)
        if harness is not None:
            await harness.do("ignore")
        answer = await going.answer()
        cast = [proxy] if harness is None else [proxy, harness]
        seen = [(answer["harness"] or {}).get("timed_out"), *await all_gone(cast)]
        check.equal("SPN-021", expected=[True], seen=seen, where="timed out, and what is left")


async def _kill(going: Going) -> None:
    os.kill((await going.task())["pid"], signal.SIGKILL)


async def _cancel(going: Going) -> None:
    await going.cancel()


@pytest.mark.parametrize(
    ("end", "requirement"),
    [
        pytest.param(_kill, "SPN-022", marks=pytest.mark.covers("SPN-022"), id="killed"),
        pytest.param(_cancel, "SPN-023", marks=pytest.mark.covers("SPN-023"), id="cancelled"),
    ],
)
async def test_a_rollout_that_is_ended_from_outside_leaves_nothing_and_is_no_reward_0(
    end: Callable[[Going], Awaitable[None]], requirement: str, runner: RunnerUnderTest, tmp_path: Path, check: Check
) -> None:
    async with rollouts(runner, tmp_path) as asked:
        going = await asked.begin(evaluation=verdict())
        cast = await with_children(asked, going)
        await end(going)
        answer = await going.answer()
        check.equal(requirement, expected=[], seen=await all_gone(cast), where="still there")
        seen = {key: answer[key] for key in ("outcome", "withheld", "reward")}
        check(requirement, is_lost(answer), expected="failed, withheld, no reward", seen=seen)
        # Whoever shares the runner is served all the same.
        other, _, harness = await asked.raised(evaluation=verdict(0.5))
        await harness.do("leave")
        check.equal(requirement, expected=0.5, seen=(await other.answer())["reward"], where="the next rollout")


@covers("SPN-024")
async def test_a_runner_that_is_told_to_end_tears_down_and_answers(world: World, tmp_path: Path, check: Check) -> None:
    runner = await asyncio.to_thread(world.start_runner)
    try:
        async with rollouts(runner, tmp_path) as asked:
            going = await asked.begin()
            cast = await with_children(asked, going)
            runner.send_signal(signal.SIGTERM)
            answer = await answer_soon(going)
            check.equal("SPN-024", expected=[], seen=await all_gone(cast), where="still there")
            check("SPN-024", is_lost(answer), expected="failed, withheld, no reward", seen=answer["outcome"])
    finally:
        await asyncio.to_thread(runner.close)


@covers("SPN-039")
async def test_a_proxy_that_ends_under_its_harness_takes_the_sample_from_training(
    runner: RunnerUnderTest, tmp_path: Path, check: Check
) -> None:
    async with rollouts(runner, tmp_path) as asked:
        for where, code in (("killed", 1), ("killed, and the harness thinks nothing of it", 0), ("ended by itself", 1)):
            going, proxy, harness = await asked.raised(evaluation=verdict(0.0))
            session = Session(harness.told["arguments"][1])
            session.turns(2)
            await proxy.do("write", files=records_of(session, proxy.log_dir))
            if where == "ended by itself":
                await proxy.do("leave")
            else:
                os.kill(proxy.told["pid"], signal.SIGKILL)
            await proxy.is_gone()
            await harness.do("leave", code=code)
            answer = await going.answer()
            seen = [answer["withheld"], bool(answer["error"] and answer["reason"])]
            check.equal("SPN-039", expected=[True, True], seen=seen, where=f"{where}: withheld, a reason")
