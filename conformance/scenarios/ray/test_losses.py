"""Workers that are lost, and rollouts that are cancelled: failed, never reward 0, and nothing left behind."""

import asyncio
import os
import signal
from pathlib import Path

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.scenarios.spawn.puppets import Puppet
from conformance.scenarios.spawn.rollouts import SHELL, Rollouts, all_gone, is_lost, rollouts, verdict
from conformance.systems.runner import Going, RunnerUnderTest

LONG = 90.0


async def raised(asked: Rollouts) -> tuple[Going, list[Puppet]]:
    """A rollout under way, with its proxy, its harness and a child of each."""
    going, proxy, harness = await asked.raised(evaluation=verdict(0.0))
    cast = [proxy, harness]
    for parent in (proxy, harness):
        await parent.do("fork", session=True)
        cast.append(await asked.next(f"{parent.told['role']}'s child"))
    return going, cast


@covers("RAY-008", "RAY-009", "RAY-010", "RAY-011")
async def test_a_worker_that_is_killed_is_a_failed_rollout_and_no_second_try(
    ray_runner: RunnerUnderTest, tmp_path: Path, check: Check
) -> None:
    async with rollouts(ray_runner, tmp_path) as asked:
        going, cast = await raised(asked)
        task = await going.task(LONG)
        os.kill(task["pid"], signal.SIGKILL)
        again = asyncio.create_task(asked.next("proxy", LONG))
        answering = asyncio.create_task(going.answer(LONG))
        await asyncio.wait((again, answering), return_when=asyncio.FIRST_COMPLETED)
        second = again.result() if again.done() else None
        check("RAY-010", second is None, expected="one try", seen="a second proxy was started")
        if second is not None:
            answering.cancel()
            await going.cancel()
            raise Inconclusive("Ray runs the rollout again, so that its loss is not told")
        again.cancel()
        answer = await answering
        seen = {key: answer[key] for key in ("outcome", "withheld", "reward")}
        check("RAY-008", is_lost(answer), expected="failed, withheld, no reward", seen=seen)
        check.equal("RAY-009", expected=[], seen=await all_gone(cast), where="still there")
        other = await asked.begin(proxy={}, harness=SHELL, evaluation=verdict(0.5))
        check.equal("RAY-011", expected=0.5, seen=(await other.answer(LONG))["reward"], where="the next rollout")


@covers("RAY-012")
async def test_a_rollout_that_is_cancelled_tears_down_on_its_worker(
    ray_runner: RunnerUnderTest, tmp_path: Path, check: Check
) -> None:
    async with rollouts(ray_runner, tmp_path) as asked:
        going, cast = await raised(asked)
        await going.cancel()
        answer = await going.answer(LONG)
        seen = {key: answer[key] for key in ("outcome", "withheld", "reward")}
        check("RAY-012", is_lost(answer), expected="failed, withheld, no reward", seen=seen)
        check.equal("RAY-012", expected=[], seen=await all_gone(cast), where="still there")
