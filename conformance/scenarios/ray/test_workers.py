"""A rollout on a worker: with the runner's interpreter, nothing of the driver's environment, and data both ways."""

import hashlib
import os
from pathlib import Path
from typing import Any

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.oracle import triples
from conformance.scenarios.ray.driver import DRIVER_ONLY
from conformance.scenarios.rebuild.sessions import Session, says, user
from conformance.scenarios.spawn.rollouts import MODEL, VARIABLES, rollouts, text_of, verdict
from conformance.scenarios.spawn.test_agents import LOOPS, agent, play, sampled
from conformance.scenarios.spawn.test_agents import VARIABLES as SERVED
from conformance.systems.routing import CLOSED_ADDRESS
from conformance.systems.runner import RunnerUnderTest

JSON = Any

LONG = 60.0
ODD = "größe ⟦1⟧ \U0001f600 \u2028 \x7f " * 8
MEGABYTE = 1 << 20
TOKENS = 60_000


@covers("RAY-001", "RAY-002", "RAY-004")
async def test_an_agent_on_a_worker_is_collected_as_it_was_sampled(
    ray_runner: RunnerUnderTest, scene: Scene, tmp_path: Path, check: Check
) -> None:
    await play(scene)
    scope = list(LOOPS).index("opencode")
    async with rollouts(ray_runner, tmp_path) as asked:
        command = ray_runner.proxy_command
        look = {"name": "shell", "command": f"command -v {command[0]} > on-path; printf %s {{python}} > python"}
        answer = await (await asked.begin(proxy={}, harness=look)).answer(LONG)
        place = Path((answer["harness"] or {}).get("log") or "none").parent / "workspace"
        found = text_of(str(place / "on-path"))
        check.equal("RAY-004", expected=ray_runner.profile.python, seen=text_of(str(place / "python")))
        going = await asked.begin(
            proxy=asked.spawn(command=command, variables=SERVED),
            harness=agent("opencode", scene.task(scope=scope), session="own"),
            backends=f"{scene.engine.url}/t/main",
            evaluation=verdict(),
        )
        answer = await going.answer(LONG)
        check.that("RAY-001", triples.one_clean_chain(answer, await sampled(scene, scope)))
        check.equal("RAY-001", expected=1.0, seen=answer["reward"], where="reward")
        if os.sep in command[0] or found != "":
            raise Inconclusive(f"the worker finds {command[0]} on its PATH, or nobody has to look for it: {found!r}")
        check("RAY-002", answer["error"] is None, expected="a proxy that is not on PATH", seen=answer["error"])


@covers("RAY-003")
async def test_what_a_proxy_needs_comes_with_the_request(
    ray_runner: RunnerUnderTest, tmp_path: Path, check: Check
) -> None:
    async with rollouts(ray_runner, tmp_path) as asked:
        going = await asked.begin()
        proxy = await asked.come("proxy", going, LONG)
        check.need("RAY-003", proxy is not None, expected="a proxy", seen="none was started")
        env = {} if proxy is None else proxy.env
        seen = {name: env.get(name) for name in VARIABLES}
        due = {"GAUGE_TARGET": MODEL, "GAUGE_ENGINE": f"{CLOSED_ADDRESS}/v1"}
        check.equal("RAY-003", expected=due, seen=seen, where="a proxy's environment")
        if any(name in env for name in DRIVER_ONLY):
            raise Inconclusive("the worker has inherited the driver's environment")


@covers("RAY-005", "RAY-006", "RAY-007")
async def test_large_and_odd_data_comes_through_both_ways(
    ray_runner: RunnerUnderTest, tmp_path: Path, check: Check
) -> None:
    async with rollouts(ray_runner, tmp_path) as asked:
        text = ODD * (4 * MEGABYTE // len(ODD))
        going, proxy, harness = await asked.raised(
            harness=asked.harness(files={"large.txt": {"text": text}}), evaluation=verdict()
        )
        written = text_of(f"{harness.told['cwd']}/large.txt") or ""
        due, seen = (hashlib.sha256(each.encode()).hexdigest() for each in (text, written))
        check.equal("RAY-005", expected=due, seen=seen, where=f"{len(text)} characters, as sha256")
        session = Session(harness.told["arguments"][1])
        context = session.begin(user("Go on."), tokens=TOKENS)
        numbers = [-1 / (3 + number) for number in range(TOKENS)]
        made = session.call(context, says("It is repaired."), generation=TOKENS, log_probs=numbers)
        session.write(Path(proxy.log_dir))
        await harness.do("leave")
        answer = await going.answer(LONG)
        check.that("RAY-006", triples.one_clean_chain(answer, [made.truth]))
        going, proxy, harness = await asked.raised(evaluation=verdict())
        session = Session(harness.told["arguments"][1])
        turns = session.turns(3)
        turns[2].broken(prompt_token_ids=list(reversed(turns[2].truth.prompt)))
        session.write(Path(proxy.log_dir))
        await harness.do("leave")
        answer = await going.answer(LONG)
        check.that("RAY-007", triples.withheld(answer))
        check.that("RAY-007", triples.delivers(answer, [turn.truth for turn in turns[:2]]))
        check.equal("RAY-007", expected=1.0, seen=answer["reward"], where="the reward of a withheld rollout")
