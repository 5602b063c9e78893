"""A node that is lost: its rollouts fail, never with reward 0, leave nothing behind, and cost no others."""

import asyncio
from pathlib import Path

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.scenarios.spawn.puppets import Puppet
from conformance.scenarios.spawn.rollouts import Rollouts, all_gone, is_lost, rollouts, verdict
from conformance.systems.cluster import Cluster
from conformance.systems.guard import Started
from conformance.systems.runner import Going, RunnerUnderTest

LONG = 90.0
ON_TWO_NODES = 8


@covers("RAY-013", "RAY-014", "RAY-015", "RAY-016")
async def test_a_node_that_is_lost_takes_its_own_rollouts_and_no_others(
    ray_runner: RunnerUnderTest, cluster: Cluster, node: Started, tmp_path: Path, check: Check
) -> None:
    async with rollouts(ray_runner, tmp_path) as asked:
        going = [await asked.begin(evaluation=verdict(0.5)) for _ in range(ON_TWO_NODES)]
        cast: dict[str, list[Puppet]] = {}
        for _ in going:
            proxy = await asked.next("proxy", LONG)
            await proxy.do("listen")
            harness = await asked.next("harness", LONG)
            cast[proxy.told["cwd"]] = [proxy, harness, *[await child_of(asked, each) for each in (proxy, harness)]]
        nodes = {(await one.task(LONG))["node"] for one in going}
        check.equal("RAY-016", expected=2, seen=len(nodes), where=f"nodes of {len(going)} rollouts")
        if len(nodes) != 2:
            raise Inconclusive("no rollout runs on the node that is to be lost")
        there = set(cluster.processes(node))
        lost = [one for one in going if one.tasks[0]["pid"] in there]
        kept = [one for one in going if one not in lost]
        await asyncio.to_thread(cluster.lose, node)
        for one in lost:
            answer = await one.answer(LONG)
            seen = {key: answer[key] for key in ("outcome", "withheld", "reward")}
            check("RAY-013", is_lost(answer), expected="failed, withheld, no reward", seen=seen)
        gone = [puppet for one in lost for puppet in _cast_of(one, cast)]
        check.equal("RAY-014", expected=[], seen=await all_gone(gone), where="still on the lost node")
        for one in kept:
            harness = _cast_of(one, cast)[1]
            await harness.do("leave")
            reward = (await one.answer(LONG))["reward"]
            check.equal("RAY-015", expected=0.5, seen=reward, where="on the other node")


async def child_of(asked: Rollouts, parent: Puppet) -> Puppet:
    """One that has left its parent's session."""
    await parent.do("fork", session=True)
    return await asked.next(f"{parent.told['role']}'s child")


def _cast_of(going: Going, cast: dict[str, list[Puppet]]) -> list[Puppet]:
    """Proxy, harness and a child of each of a rollout, by the folder that it was given."""
    return next(puppets for place, puppets in cast.items() if Path(place).is_relative_to(going.folder))
