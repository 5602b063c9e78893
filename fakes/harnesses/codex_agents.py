"""How a Codex agent handles sub-agents: spawned beside it, waited for, written to, closed; their end is told to it."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fakes.harnesses.codex_agent import Agent, End
from fakes.harnesses.codex_history import NOTIFICATION, user
from fakes.harnesses.codex_ids import new_thread_id
from fakes.harnesses.codex_tools import BadArguments, arguments_of

_NICKNAMES = ("Ampere", "Bohr", "Curie", "Dirac", "Euler", "Fermi")
_LONGEST_WAIT = 30_000


@dataclass
class _Child:
    """A sub-agent, the task that runs it and what became of it: ``completed`` or ``errored``, or None while it runs."""

    agent: Agent
    said: list[tuple[str, str]] = field(default_factory=list)
    task: asyncio.Task[None] | None = None
    status: dict[str, str | None] | None = None
    end: End = ("answered", None)
    told: bool = False


class SubAgents:
    """The sub-agents of ``parent``. ``new_agent`` makes one in a thread of its own; ``ended`` hears of each end."""

    def __init__(self, parent: Agent, new_agent: Callable[[], Agent], ended: Callable[[], None]) -> None:
        self._parent = parent
        self._new_agent = new_agent
        self._ended = ended
        self._children: dict[str, _Child] = {}
        self._changed = asyncio.Event()

    async def run(self, name: str, raw: str) -> str:
        """The output of a call of an agent tool."""
        try:
            arguments = arguments_of(raw)
            match name:
                case "spawn_agent":
                    return self._spawn(arguments)
                case "wait_agent":
                    return await self._wait(arguments)
                case "send_input":
                    return self._send(arguments)
                case "close_agent":
                    return await self._close(arguments)
        except BadArguments as bad:
            return str(bad)
        return f"unsupported call: {name}"

    async def close(self) -> list[tuple[Agent, End]]:
        """Leave what still runs, and say how each sub-agent ended, in order of spawning."""
        for child in self._children.values():
            child.agent.client.close()
        await asyncio.gather(*(child.task for child in self._children.values() if child.task))
        return [(child.agent, child.end) for child in self._children.values()]

    def _spawn(self, arguments: dict[str, Any]) -> str:
        message = _message(arguments)
        if arguments.get("fork_context"):
            # A forked child's first tag would be its parent's: it could not be told apart.
            raise NotImplementedError("fork_context is not played; spawn the sub-agent without it")
        child = _Child(self._new_agent())
        id_ = child.agent.thread.thread
        self._children[id_] = child
        self._start(child, message, new_thread_id())
        return _json({"agent_id": id_, "nickname": _NICKNAMES[(len(self._children) - 1) % len(_NICKNAMES)]})

    async def _wait(self, arguments: dict[str, Any]) -> str:
        """Until one of the targets has ended, or the time is over: real seconds, for a child must not seem slow."""
        targets = arguments.get("targets")
        if not isinstance(targets, list) or not targets:
            raise BadArguments("agent ids must be non-empty")
        children = {target: self._child(target) for target in targets}
        longest = float(arguments.get("timeout_ms", _LONGEST_WAIT)) / 1000
        timed_out = False
        try:
            async with asyncio.timeout(longest):
                while not any(child.status for child in children.values()):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            timed_out = True
        ended = {target: child.status for target, child in children.items() if child.status}
        return _json({"status": ended, "timed_out": timed_out})

    def _send(self, arguments: dict[str, Any]) -> str:
        child, message, turn = self._child(arguments.get("target")), _message(arguments), new_thread_id()
        self._start(child, message, turn)
        return _json({"submission_id": turn})

    async def _close(self, arguments: dict[str, Any]) -> str:
        child = self._child(arguments.get("target"))
        before = child.status or "running"
        child.agent.client.close()
        if child.task is not None:
            await child.task
        return _json({"previous_status": before})

    def _start(self, child: _Child, message: str, turn: str) -> None:
        child.said.append((message, turn))
        child.status = None
        if child.task is None or child.task.done():
            child.task = asyncio.create_task(self._work(child))

    async def _work(self, child: _Child) -> None:
        while child.said:
            message, turn = child.said.pop(0)
            child.end = await child.agent.work_on(message, turn)
        ended, error = child.end
        child.status = {"completed": child.agent.last_said} if ended != "error" else {"errored": error}
        if not child.told:
            # Only its first end is told to the parent unasked.
            child.told = True
            end = _json({"agent_path": child.agent.thread.thread, "status": child.status})
            self._parent.inbox.append(user(f"{NOTIFICATION}\n{end}\n</subagent_notification>"))
        self._changed.set()
        self._ended()

    def _child(self, target: object) -> _Child:
        if not isinstance(target, str) or target not in self._children:
            raise BadArguments(f"invalid agent id {target}")
        return self._children[target]


def _message(arguments: dict[str, Any]) -> str:
    message = arguments.get("message")
    if not isinstance(message, str) or not message:
        raise BadArguments("Provide one of: message or items")
    return message


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
