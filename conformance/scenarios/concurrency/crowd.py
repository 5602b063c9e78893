"""Many agents at work at once, each in a session and a scope of its own."""

import asyncio
from dataclasses import dataclass
from typing import Any

from conformance.gauge.scene import Scene
from fakes.harnesses.conversation import Conversation

TURNS = 4
SCOPES = 64
"""Agents of a run; a run may have a hundred scopes."""


@dataclass(frozen=True, slots=True)
class Talk:
    """One agent's work, in scope ``scope`` of its scene's run."""

    scene: Scene
    scope: int
    session: str
    conversation: Conversation

    @property
    def name(self) -> str:
        return f"run {self.scene.run}, scope {self.scope}"


async def play(scene: Scene) -> list[Talk]:
    """``SCOPES`` agents at once: even scopes buffered, odd ones streamed where the system takes that."""
    await scene.script(playbook())
    return await asyncio.gather(*(_talk(scene, scope) for scope in range(SCOPES)))


def playbook() -> dict[str, Any]:
    """Three thoughts and the finish: tools that both kinds of agent have."""
    thoughts = [
        {"calls": [{"name": "think", "arguments": {"thought": f"{{tag}} I look at part {part} of the build."}}]}
        for part in range(1, TURNS)
    ]
    last = {"calls": [{"name": "finish", "arguments": {"message": "{tag} The header was missing."}}]}
    scopes = {f"agent_{scope}": {"turns": [*thoughts, last]} for scope in range(SCOPES)}
    return {"about": "Agents that think and finish.", "sampling": "faithful", "scopes": scopes}


async def _talk(scene: Scene, scope: int) -> Talk:
    session, task = scene.session(f"agent-{scope}"), scene.task(scope=scope)
    if scope % 2:
        stream = scene.takes(stream=True)
        told = await scene.openhands_sdk(task, session=session, stream=stream, max_turns=TURNS)
    else:
        told = await scene.openhands_nv(task, session=session, max_turns=TURNS)
    return Talk(scene, scope, session, told)
