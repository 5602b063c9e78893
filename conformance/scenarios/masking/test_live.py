"""From an agent that compacts its history to what a trainer makes of it."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.gauge.world import World
from conformance.scenarios.groups.groups import trained
from conformance.scenarios.masking.collected import pairs, question, verified
from conformance.scenarios.scale.crew import TENANT, Crew, answer_of, sampled
from conformance.systems.runner import RunnerFailed, RunnerUnderTest


@covers("MSK-002", "MSK-005", "MSK-007", "MSK-009", "MSK-021", "MSK-022")
async def test_a_compacted_rollout_among_whole_ones_is_masked_alone(
    runner: RunnerUnderTest, recording: Callable[..., Scene], world: World, check: Check, tmp_path: Path
) -> None:
    first = recording("session-header", "retrieval-http", "records-disk")
    scenes = [first, *(Scene(first.engine, first.proxy, world.next_run()) for _ in range(2))]
    crew = Crew(runner, scenes, tmp_path)
    await crew.script()
    await crew.let_go()
    begun = [await crew.begin(scene, reward=1.0, forgets=scene is first) for scene in scenes]
    answers = await asyncio.gather(*map(answer_of, begun))
    if [answer["outcome"] for answer in answers] != ["partial", "clean", "clean"]:
        raise Inconclusive(f"the rollouts came out {[answer['outcome'] for answer in answers]}")
    responses = [
        await verified(runner, check, answer, f"rollout {number}", group={"task": "t", "rollout": number})
        for number, answer in enumerate(answers)
    ]
    compacted = responses[0]
    masked = [response["mask_sample"] for response in responses]
    check("MSK-002", masked[0] is True, expected="the compacted one is masked", seen=masked)
    check("MSK-007", masked[1:] == [False, False], expected="the others are not", seen=masked)
    delivered, known = pairs(compacted["response"]["output"]), sampled(await first.ledger())
    check("MSK-005", bool(delivered), expected="tokens of one side of the compaction", seen=delivered)
    check("MSK-009", compacted["reward_is_evidence"], expected="its reward stays evidence", seen=False)
    strange = [pair for pair in delivered if pair not in known]
    check("MSK-022", not strange, expected="only what the engine sampled", seen=strange, where="delivered")
    try:
        members = [{"rollout": number, "response": response} for number, response in enumerate(responses)]
        judged = await question(runner, "group", task="t", size=3, members=members)
        seen = [trained(verdict) for verdict in judged["members"]]
    except (RunnerFailed, KeyError) as failure:
        check("MSK-022", False, expected="a group that is trained", seen=repr(failure))
        return
    expected = [[], *[sampled(await scene.ledger()) for scene in scenes[1:]]]
    check.equal("MSK-022", expected=expected, seen=seen, where="trained")


@covers("MSK-021", "MSK-023")
async def test_a_rollout_whose_engine_fails_on_the_way(
    runner: RunnerUnderTest, recording: Callable[..., Scene], check: Check, tmp_path: Path
) -> None:
    scene = recording("session-header", "retrieval-http", "records-disk")
    fails = {"name": "http_error", "status": 500, "on_attempts": "all"}
    turns = [{"text": "Step 0 is done. {tag}"}, {"text": "This is never told. {tag}", "fault": fails}]
    await scene.script({"about": "Fails after a turn.", "scopes": {"main": {"turns": turns}}}, tenant=TENANT)
    answer = await answer_of(await Crew(runner, [scene], tmp_path).begin(scene, reward=0.0))
    if (answer["harness"] or {}).get("exit_code") in (0, None) or answer["reward"] != 0.0:
        raise Inconclusive("the agent did not give up, or was not evaluated")
    response = await verified(runner, check, answer, "an engine that fails")
    seen = [response["mask_sample"], response["reward_is_evidence"]]
    check("MSK-023", seen == [True, False], expected="masked, no evidence", seen=seen)
