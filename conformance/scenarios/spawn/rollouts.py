"""What scenarios ask a runner for: rollouts with puppets as proxy and harness, and records whose truth is known."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from conformance.gauge.check import Inconclusive
from conformance.scenarios.rebuild.sessions import Session
from conformance.scenarios.spawn.puppets import PATIENCE_SECONDS, Puppet, Puppets, stage
from conformance.systems.routing import CLOSED_ADDRESS
from conformance.systems.runner import Going, RunnerFailed, RunnerUnderTest

JSON = Any

MODEL = "policy-model"
PROFILE = """\
routes:
  policy-model:
    type: model
    target: ${GAUGE_TARGET}
    base_url: ${GAUGE_ENGINE}
    token_capture_engine: vllm
"""
VARIABLES = {"GAUGE_TARGET": "{model}", "GAUGE_ENGINE": "{backend}/v1"}
SOON_SECONDS = 10.0
"""For what has to come at once: far more than it takes, far less than any deadline that could stand for it."""


ASK_AGAIN_SECONDS = 0.1
OVER_TIMES = 5
"""How often in a row all rollouts are found to be over before nobody is waited for any more."""


class Rollouts:
    """One scenario's rollouts, each in a folder of its own below ``folder``."""

    def __init__(self, runner: RunnerUnderTest, puppets: Puppets, folder: Path) -> None:
        self.runner = runner
        self.puppets = puppets
        self.folder = folder
        self.profile = folder / "routes.yaml"
        self.profile.write_text(PROFILE, encoding="utf-8")
        self._begun: list[Going] = []

    def spawn(self, **changes: JSON) -> JSON:
        """A ``proxy`` that is a puppet."""
        asked = {
            "command": self.puppets.command("proxy", sys.executable),
            "profile": str(self.profile),
            "variables": VARIABLES,
            "grace_seconds": 5,
        }
        return {"spawn": {**asked, **changes}}

    def harness(self, *words: str, **changes: JSON) -> JSON:
        """A puppet, told what a harness may be told."""
        told = ("{base_url}", "{session}", "{context_length}")
        command = [*self.puppets.command("harness", "{python}"), *(words or told)]
        return {"name": "puppet", "command": command, "grace_seconds": 5, **changes}

    async def begin(self, **changes: JSON) -> Going:
        """A rollout under way, with puppets unless ``changes`` say otherwise."""
        asked = {
            "folder": str(self.folder / f"rollout-{len(self._begun)}"),
            "model": MODEL,
            "backends": [CLOSED_ADDRESS],
            "proxy": self.spawn(),
            "harness": self.harness(),
        }
        going = await self.runner.rollout({**asked, **changes})
        self._begun.append(going)
        return going

    async def raised(self, **changes: JSON) -> tuple[Going, Puppet, Puppet]:
        """A rollout whose harness runs behind its proxy: both as puppets."""
        going = await self.begin(**changes)
        proxy = await self.next("proxy")
        await proxy.do("listen")
        return going, proxy, await self.next("harness")

    async def next(self, role: str, seconds: float = PATIENCE_SECONDS) -> Puppet:
        """The next puppet of that role. Raises Inconclusive where none comes, or nothing is left to start it."""
        coming = asyncio.create_task(self.puppets.next(role, seconds))
        over = 0
        try:
            while not coming.done():
                await asyncio.wait((coming,), timeout=ASK_AGAIN_SECONDS)
                over = over + 1 if all(going.answered for going in self._begun) else 0
                if over > OVER_TIMES and not coming.done():
                    raise Inconclusive(f"all rollouts were over, and no {role} had come")
        finally:
            coming.cancel()  # left alone it would take a puppet that somebody else waits for
        return coming.result()

    async def come(self, role: str, going: Going, seconds: float = PATIENCE_SECONDS) -> Puppet | None:
        """The puppet that comes in that role; None where the rollout is answered before any does."""
        answer = asyncio.create_task(going.answer(2 * seconds))
        coming = asyncio.create_task(self.puppets.next(role, seconds))
        await asyncio.wait((answer, coming), return_when=asyncio.FIRST_COMPLETED)
        for task in (answer, coming):
            task.cancel()
        return coming.result() if coming.done() and not coming.cancelled() else None

    async def another_goes_by(self) -> None:
        """A whole rollout without a proxy, for what would have happened meanwhile."""
        await (await self.begin(proxy={}, harness=SHELL)).answer()

    async def answer_behind_any_proxy(self, going: Going) -> JSON:
        """The answer of a rollout that needs nobody's help; a proxy that comes all the same is let up."""
        answer = asyncio.create_task(going.answer())
        coming = asyncio.create_task(self.puppets.next("proxy"))
        await asyncio.wait((answer, coming), return_when=asyncio.FIRST_COMPLETED)
        if coming.done():
            await coming.result().do("listen")
        coming.cancel()
        return await answer


@asynccontextmanager
async def rollouts(runner: RunnerUnderTest, folder: Path) -> AsyncIterator[Rollouts]:
    """For one scenario; what it left under way is cancelled at its end."""
    async with stage() as puppets:
        asked = Rollouts(runner, puppets, folder)
        try:
            yield asked
        finally:
            for going in asked._begun:
                if not going.answered and runner.is_alive():
                    await going.cancel()


def records_of(session: Session, log_dir: str) -> dict[str, str]:
    """The files of a session's records, for a puppet to write."""
    place = session.folder(Path(log_dir))
    return {str(place / f"{number:04}.json"): json.dumps(record) for number, record in enumerate(session.records)}


SHELL: JSON = {"name": "shell", "command": "true"}
"""A harness that is over at once."""


def verdict(reward: float = 1.0, **metrics: JSON) -> JSON:
    """An evaluation that says so."""
    return {"command": ["echo", json.dumps({"reward": reward, "metrics": metrics})]}


async def all_gone(puppets: Iterable[Puppet], seconds: float = SOON_SECONDS) -> list[str]:
    """The roles of those that are still there after that time."""
    watched = list(puppets)
    gone = await asyncio.gather(*(puppet.is_gone(seconds) for puppet in watched))
    return [puppet.told["role"] for puppet, is_gone in zip(watched, gone, strict=True) if not is_gone]


async def answer_soon(going: Going, seconds: float = SOON_SECONDS) -> JSON:
    """The answer of a rollout that has to end by itself; one of nulls where it is late or the runner gone."""
    try:
        return await going.answer(seconds)
    except RunnerFailed:
        return dict.fromkeys(("outcome", "withheld", "error", "reward", "reason", "harness", "trajectories"))


def stage_of(answer: JSON) -> str | None:
    """Where a rollout failed, or None."""
    return None if answer["error"] is None else answer["error"]["stage"]


def is_lost(answer: JSON) -> bool:
    """Failed and withheld, with nothing to train and no reward that could be taken for evidence."""
    return (
        answer["outcome"] == "failed"
        and answer["withheld"] is True
        and answer["reward"] is None
        and not answer["trajectories"]
    )


def text_of(path: str | None) -> str | None:
    """What a file that an answer names holds, None where there is none."""
    file = None if path is None else Path(path)
    return file.read_text(encoding="utf-8") if file is not None and file.is_file() else None
