"""Many rollouts at once behind one proxy; a thousand of them are played by the benchmark ``rollouts``."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.gauge.world import World
from conformance.scenarios.groups.groups import trained as trained_by
from conformance.scenarios.masking.collected import collected, question, trajectory
from conformance.scenarios.scale.crew import TURNS, Answer, Crew, answer_of, sampled, trained
from conformance.systems.runner import RunnerFailed, RunnerUnderTest

ROLLOUTS = 32
GROUP = 4
"""How many of them make a group, with a reward each."""


@covers("SCL-001", "SCL-002", "SCL-003", "SCL-004", "SCL-005")
async def test_32_rollouts_at_once_lose_and_mix_nothing(
    runner: RunnerUnderTest, recording: Callable[..., Scene], world: World, check: Check, tmp_path: Path
) -> None:
    first = recording("session-header", "retrieval-http", "records-disk")
    scenes = [first, *(Scene(first.engine, first.proxy, world.next_run()) for _ in range(1, ROLLOUTS))]
    crew = Crew(runner, scenes, tmp_path)
    await crew.script()
    begun = [await crew.begin(scene, reward=float(n % 2) if n < GROUP else None) for n, scene in enumerate(scenes)]
    lame = await crew.begin(scenes[0], harness={"name": "none", "command": ["no-such-program-anywhere"]})
    held = await crew.all_held()
    check("SCL-002", held == ROLLOUTS, expected=f"{ROLLOUTS} before their last call", seen=held)
    await _ask_meanwhile(runner, check)
    await crew.let_go()
    answers = await asyncio.gather(*map(answer_of, begun))
    failed = await answer_of(lame)
    check("SCL-004", failed["outcome"] == "failed", expected="failed", seen=failed["outcome"], where="the lame one")
    for scene, answer in zip(scenes, answers, strict=True):
        where = f"run {scene.run}"
        whole = answer["outcome"] == "clean" and not answer["error"]
        check("SCL-004", whole, expected="clean", seen=[answer["outcome"], answer["error"]], where=where)
        rows = await scene.ledger()
        check("SCL-001", len(rows) == TURNS, expected=f"{TURNS} calls", seen=len(rows), where=where)
        check.equal("SCL-001", expected=sampled(rows), seen=trained(answer), where=where)
    await _train(runner, check, scenes[:GROUP], answers[:GROUP])


async def _ask_meanwhile(runner: RunnerUnderTest, check: Check) -> None:
    try:
        answer = await question(runner, "verify", collected=collected(trajectory()))
        check("SCL-003", "mask_sample" in answer, expected="a verify response", seen=answer)
    except RunnerFailed as failure:
        check("SCL-003", False, expected="an answer while rollouts are under way", seen=failure.why)


async def _train(runner: RunnerUnderTest, check: Check, scenes: list[Scene], answers: list[Answer]) -> None:
    """The whole way: what the trainer trains of a group is what the ledger has."""
    try:
        responses = [
            await question(runner, "verify", collected=answer, group={"task": "t", "rollout": number})
            for number, answer in enumerate(answers)
        ]
        members = [{"rollout": number, "response": told} for number, told in enumerate(responses)]
        judged = await question(runner, "group", task="t", size=len(members), members=members)
        seen = [trained_by(verdict) for verdict in judged["members"]]
    except (RunnerFailed, KeyError) as failure:
        check("SCL-005", False, expected="a group that is trained", seen=repr(failure))
        return
    expected = [sampled(await scene.ledger()) for scene in scenes]
    check.equal("SCL-005", expected=expected, seen=seen)
    check.equal("SCL-005", expected=0.5, seen=judged["baseline"], where="the baseline of two successes in four")
