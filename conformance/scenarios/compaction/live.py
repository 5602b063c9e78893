"""The runs of ``compaction/live``: which agent plays a scope, and with what room."""

from dataclasses import dataclass
from typing import Any

from conformance.gauge.agents import Agents
from conformance.gauge.check import Inconclusive
from conformance.gauge.scene import Scene
from conformance.scenarios.retries.wire import Wire
from fakes.harnesses.claude_code import Environment
from fakes.harnesses.conversation import Conversation

MODEL = "spoken"
SCOPES = ("opencode", "claude", "by_hand", "sdk", "spelling", "directory", "reread", "resumed")

WINDOW: dict[str, Any] = {"context": 3_256, "output": 256}
"""opencode's: at 3,000 tokens in all it compacts."""
MUCH = "\n".join(str(number) for number in range(1, 2_000))
"""About 9,000 characters: no room for it among the steps that opencode keeps."""


async def opencode(scene: Scene) -> Conversation:
    """Compacts by the usage that it is told."""
    task, session = _of(scene, "opencode")
    return _done(await scene.opencode(task, session=session, model=MODEL, tool_results={"read": MUCH}, **WINDOW))


async def claude(scene: Scene) -> Conversation:
    """Compacts before its next request, as soon as there is an answer to leave out."""
    task, session = _of(scene, "claude")
    env = Environment(auto_compact_window=100)
    return _done(await scene.claude_code(task, session=session, model=MODEL, env=env))


async def by_hand(scene: Scene) -> Conversation:
    task, session = _of(scene, "by_hand")
    return _done(
        await scene.claude_code(task, session=session, model=MODEL, run={"follow_ups": ("/compact", "Mend it.")})
    )


async def sdk(scene: Scene, name: str = "sdk", condense_at: int | None = 10) -> Conversation:
    task, session = _of(scene, name)
    return _done(await scene.openhands_sdk(task, session=session, model=MODEL, condense_at=condense_at))


async def directory(scene: Scene) -> Conversation:
    task, session = _of(scene, "directory")
    return _done(await scene.claude_code(task, session=session, model=MODEL))


async def reread(scene: Scene) -> Conversation:
    """A file that goes into the first message appears between two processes."""
    task, session = _of(scene, "reread")
    async with Wire(scene.proxy.url, edit=_Reread()) as wire:
        agents: Agents = scene.over(wire.url)
        return _done(await agents.claude_code(task, session=session, model=MODEL, run={"follow_ups": ("Mend it.",)}))


async def resumed(scene: Scene) -> Conversation:
    task, session = _of(scene, "resumed")
    before = _done(await scene.opencode(task, session=session, model=MODEL))
    return _done(await scene.opencode("Mend it.", session=session, model=MODEL, run={"before": before}))


@dataclass
class _Reread:
    """From the second process of Claude Code on, its first message says more. A process begins with an empty body."""

    processes: int = 0

    def __call__(self, body: bytes) -> bytes:
        self.processes += not body
        return body if self.processes < 2 else body.replace(b"# currentDate", b"# claudeMd: use tabs. # currentDate")


def _of(scene: Scene, name: str) -> tuple[str, str]:
    """The task and the session of a scope."""
    return scene.task(scope=SCOPES.index(name)), scene.session(name)


def _done(talk: Conversation) -> Conversation:
    if talk.ended not in ("answered", "finished"):
        raise Inconclusive(f"{talk.harness} ended {talk.ended}: {talk.error}")
    return talk
