"""The fake agents at work behind a real proxy: what is collected is what the engine sampled."""

import asyncio
from pathlib import Path
from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.oracle import records, triples
from conformance.oracle.rollouts import Sampled, conserved
from conformance.oracle.rollouts import sampled as truths
from conformance.scenarios.harnesses.loops import loop
from conformance.scenarios.spawn.rollouts import rollouts, verdict
from conformance.systems import routing
from conformance.systems.runner import RunnerUnderTest

JSON = Any

VARIABLES = {"GAUGE_TARGET": routing.SERVED, "GAUGE_ENGINE": "{backend}/v1"}
FINISH = {"name": "finish", "arguments": {"message": "{tag} Done."}}
LOOPS = {
    "openhands-nv": loop({"name": "execute_bash", "arguments": {"command": "ls  # {tag}"}}, end=FINISH),
    "opencode": loop({"name": "bash", "arguments": {"command": "ls  # {tag}", "description": "Look"}}),
    "claude-code": loop({"name": "Bash", "arguments": {"command": "ls  # {tag}", "description": "Look"}}),
    "codex": loop({"name": "exec_command", "arguments": {"cmd": "ls  # {tag}"}}),
}


def agent(name: str, task: str, *, session: str = "minted") -> JSON:
    """A fake agent as the harness of a rollout."""
    words = ["--base-url", "{base_url}", "--model", "{model}", "--session", "{session}", "--task", task]
    return {"name": name, "session": session, "command": ["{python}", "-m", "fakes.harnesses", name, *words]}


async def sampled(scene: Scene, scope: int) -> list[Sampled]:
    """What the engine sampled in a scope of this run, in order."""
    rows = sorted((row for row in await scene.ledger() if row["scope"] == scope), key=lambda row: int(row["turn"]))
    return [
        Sampled(
            f"turn {row['turn']}",
            row["prompt_token_ids"],
            row["generation_token_ids"],
            row["generation_log_probs"],
        )
        for row in rows
    ]


async def play(scene: Scene) -> None:
    """A scope for each agent, of which everything can be trained."""
    scopes = {name.replace("-", "_"): {"turns": turns} for name, turns in LOOPS.items()}
    await scene.script({"about": "Agents behind proxies.", "sampling": "faithful", "scopes": scopes})


@covers("SPN-001")
async def test_an_agent_behind_a_proxy_of_its_own_is_collected_as_it_was_sampled(
    runner: RunnerUnderTest, scene: Scene, tmp_path: Path, check: Check
) -> None:
    await play(scene)
    async with rollouts(runner, tmp_path) as asked:
        spawn = asked.spawn(command=runner.proxy_command, variables=VARIABLES)
        scope = list(LOOPS).index("opencode")
        going = await asked.begin(
            proxy=spawn,
            harness=agent("opencode", scene.task(scope=scope), session="own"),
            backends=f"{scene.engine.url}/t/main",
            evaluation=verdict(),
        )
        answer = await going.answer()
        truth = await sampled(scene, scope)
        if scene.renders_as_sampled():
            check.that("SPN-001", triples.one_clean_chain(answer, truth))
        seen = [(answer["harness"] or {}).get("exit_code"), answer["reward"], answer["context_length"]]
        check.equal("SPN-001", expected=[0, 1.0, routing.LONG_LENGTH], seen=seen, where="exit, reward, context length")


@covers("SPN-003")
async def test_each_agent_works_under_the_id_it_is_given_behind_a_proxy_that_is_there(
    runner: RunnerUnderTest, scene: Scene, tmp_path: Path, check: Check
) -> None:
    await play(scene)
    async with rollouts(runner, tmp_path) as asked:
        going = [
            await asked.begin(proxy={"attach": scene.proxy.url}, harness=agent(name, scene.task(scope=scope)))
            for scope, name in enumerate(LOOPS)
        ]
        answers = await asyncio.gather(*(one.answer() for one in going))
        for scope, (name, answer) in enumerate(zip(LOOPS, answers, strict=True)):
            rows = [row for row in await scene.ledger() if row["scope"] == scope]
            captured = await scene.records(answer["session_id"] or "none")
            check.that("SPN-003", records.law(captured, rows), where=name)
            check.that("SPN-003", records.none_lost(captured, rows), where=name)
            truth = truths(captured)
            check.that("SPN-003", conserved(answer, truth), where=name)
            check.that("SPN-003", triples.only_sampled(answer, truth), where=name)
            held = sorted({one["session_id"] for one in answer["trajectories"]})
            check.equal("SPN-003", expected=[answer["session_id"]], seen=held, where=f"{name}: its session")
