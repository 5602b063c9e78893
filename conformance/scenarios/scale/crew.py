"""Rollouts behind one proxy, each with a run of its own on the engine, all held before their last call."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conformance.gauge.scene import Row, Scene
from conformance.systems.runner import Going, RunnerFailed, RunnerUnderTest

JSON = Any
Answer = dict[str, JSON]

AGENT = Path(__file__).with_name("agent.py")
TURNS = 3
ROUTE = TENANT = "spoken"
"""Where words are rendered again as they were sampled, so that each prompt continues the one before."""
STALLED_SECONDS = 10.0
"""After so long without one more at the gate, the rest are not on their way there."""

AWAITED_SECONDS = 60.0
NO_ANSWER: Answer = {"outcome": None, "trajectories": [], "error": None, "reward": None, "harness": None}


class Crew:
    """Members are scenes, for their runs and ledgers."""

    def __init__(self, runner: RunnerUnderTest, scenes: Sequence[Scene], folder: Path) -> None:
        self.runner = runner
        self.scenes = list(scenes)
        self._folder = folder
        self._gate = f"scale-{scenes[0].run}"

    async def script(self) -> None:
        """Words, and a gate before the last of them."""
        told: list[JSON] = [{"text": f"Step {number} is done. {{tag}}"} for number in range(TURNS - 1)]
        last = {"text": "All is done.", "gate": self._gate}
        playbook = {"about": "Says what it has done.", "scopes": {"main": {"turns": [*told, last]}}}
        await asyncio.gather(*(scene.script(playbook, tenant=TENANT) for scene in self.scenes))

    async def begin(
        self, scene: Scene, reward: float | None = None, *, forgets: bool = False, **changes: JSON
    ) -> Going:
        """One member's rollout, with an evaluation if it is to have a reward; ``forgets`` compacts its history."""
        words = ["{python}", "-I", "-S", str(AGENT), "{base_url}", "{model}", "{session}", scene.task(), str(TURNS)]
        words += ["forgets"] if forgets else []
        verdict = {"command": ["echo", json.dumps({"reward": reward})]}
        asked = {
            "folder": str(self._folder / f"{scene.run}"),
            "model": ROUTE,
            "backends": [scene.engine.address(TENANT)],
            "proxy": {"attach": scene.proxy.url},
            "harness": {"name": "agent", "command": words},
            "evaluation": None if reward is None else verdict,
        }
        return await self.runner.rollout({**asked, **changes})

    async def all_held(self) -> int:
        """How many are before their last call at once; waits until all are, or no more of them come."""
        engine = self.scenes[0].engine
        at_gate = [engine.wait("held", tenant=TENANT, run=one.run, seconds=AWAITED_SECONDS) for one in self.scenes]
        waiting = set(map(asyncio.create_task, at_gate))
        try:
            while waiting:
                came, waiting = await asyncio.wait(
                    waiting, timeout=STALLED_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                for each in came:
                    each.result()
                if not came:
                    break
            return len(self.scenes) - len(waiting)
        finally:
            for each in waiting:
                each.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    async def let_go(self) -> None:
        await self.scenes[0].engine.open_gate(TENANT, self._gate)


async def answer_of(going: Going) -> Answer:
    """What was collected; nothing where no answer came."""
    try:
        return await going.answer()
    except RunnerFailed as failure:
        return {**NO_ANSWER, "error": failure.why}


def sampled(rows: Sequence[Row]) -> list[tuple[int, float]]:
    """Each id that the engine sampled with its log prob, in order."""
    return [pair for row in rows for pair in zip(row["generation_token_ids"], row["generation_log_probs"], strict=True)]


def trained(answer: Answer) -> list[tuple[int, float]]:
    """Each id with mask 1 with its log prob."""
    return [
        (token, probability)
        for each in answer["trajectories"]
        for token, mask, probability in zip(each["tokens"], each["mask"], each["log_probs"], strict=True)
        if mask
    ]
