"""The runs of ``side_calls/live``: which agent plays a scope, and what stands beside its turns."""

import asyncio
from typing import Any

from conformance.gauge.scene import Scene
from conformance.scenarios.retries.wire import Loss, Wire
from fakes.harnesses.opencode_texts import BUILD, SUMMARY_REQUEST, TITLE_REQUEST, TITLE_SYSTEM

JSON = Any

MODEL = "spoken"
SMALL = "spoken-small"
SCOPES = (
    *("before", "after", "asked_again", "failed", "left", "small", "search", "decoy"),
    *("asks_for_a_title", "asks_for_a_summary", "is_a_title_generator", "single"),
)
TITLES = ("before", "after", "asked_again", "failed", "left", "small")
ASKS_FOR_A_TITLE = TITLE_REQUEST + SUMMARY_REQUEST
ASKS_FOR_A_SUMMARY = "Write a summary of this conversation so that the work can go on from it. Call no tool."
READERS = {
    "asks_for_a_title": ASKS_FOR_A_TITLE,
    "asks_for_a_summary": ASKS_FOR_A_SUMMARY,
    "is_a_title_generator": TITLE_SYSTEM,
}
PLAIN = "Find out why the build fails."


async def titles(scene: Scene) -> None:
    """opencode in each scope of ``TITLES``. The first two go by the order in which their records are there."""
    await asyncio.gather(titled(scene, "before"), _open_once(scene, "before", 1, "turn"))
    await asyncio.gather(titled(scene, "after"), _open_once(scene, "after", 2, "title"))
    await asyncio.gather(
        _asked_again(scene),
        titled(scene, "failed"),
        titled(scene, "left", title_grace=0.0),
        titled(scene, "small", small_model=SMALL),
    )
    await scene.engine.open_gate("spoken", f"left-{scene.run:06d}")


async def titled(scene: Scene, name: str, **agent: JSON) -> None:
    await scene.opencode(task(scene, name), session=scene.session(name), model=MODEL, title=True, **agent)


async def search(scene: Scene) -> None:
    await scene.claude_code(task(scene, "search"), session=scene.session("search"), model=MODEL)


async def decoy(scene: Scene) -> None:
    """Calls of a harness yet to come, in the same session: the task itself, without tools."""
    session = scene.session("decoy")
    await scene.opencode(task(scene, "decoy"), session=session, model=MODEL)
    by = "session-opencode" if "session-opencode" in scene.proxy.capabilities else None
    for system in (BUILD.system, "You look for what is missing in a build."):
        messages = [{"role": "system", "content": system}, {"role": "user", "content": task(scene, "decoy")}]
        await scene.ask(messages, session=session, by=by, model=MODEL)


async def readers(scene: Scene) -> None:
    """Runs with tools whose task or system text is that of a side call."""
    by_system, session = task(scene, "is_a_title_generator"), scene.session("is_a_title_generator")
    await asyncio.gather(
        scene.opencode(
            task(scene, "asks_for_a_title", ASKS_FOR_A_TITLE),
            session=scene.session("asks_for_a_title"),
            model=MODEL,
        ),
        scene.claude_code(
            task(scene, "asks_for_a_summary", ASKS_FOR_A_SUMMARY),
            session=scene.session("asks_for_a_summary"),
            model=MODEL,
        ),
        scene.openhands_nv(by_system, session=session, model=MODEL, system=TITLE_SYSTEM),
    )


async def single(scene: Scene) -> None:
    await scene.ask(task(scene, "single"), session=scene.session("single"), model=MODEL)


def task(scene: Scene, name: str, text: str = PLAIN) -> str:
    return scene.task(text, scope=SCOPES.index(name))


async def _asked_again(scene: Scene) -> None:
    lost = Wire(scene.proxy.url, [Loss(late=True)], mark=TITLE_REQUEST.strip().encode())
    async with lost as wire:
        agents = scene.over(wire.url)
        session = scene.session("asked_again")
        await agents.opencode(task(scene, "asked_again"), session=session, model=MODEL, title=True)
        await wire.deliver()


async def _open_once(scene: Scene, name: str, recorded: int, gate: str) -> None:
    await scene.until_recorded(scene.session(name), recorded)
    await scene.engine.open_gate("spoken", f"{gate}-{scene.run:06d}")
