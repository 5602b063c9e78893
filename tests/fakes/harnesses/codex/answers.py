"""A scripted model that speaks the Responses dialect, and one that answers each agent by itself and in order."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from tests.fakes.harnesses.conftest import Reply, ScriptedServer, Seen

Item = dict[str, Any]


def text(said: str, id_: str = "msg_srv") -> Item:
    content = [{"type": "output_text", "text": said, "annotations": []}]
    return {"type": "message", "id": id_, "role": "assistant", "status": "completed", "content": content}


def call(name: str, arguments: Any, call_id: str, **more: Any) -> Item:
    raw = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
    told = {"type": "function_call", "id": f"fc_{call_id}", "status": "completed", "call_id": call_id, "name": name}
    return {**told, "arguments": raw, **more}


def execute(command: str, call_id: str) -> Item:
    return call("exec_command", {"cmd": command}, call_id)


def frame(kind: str, **data: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), orjson.dumps({"type": kind, **data}))


def frames(*items: Item, end: str | None = "completed", tokens: int = 100, **head: Any) -> tuple[bytes, ...]:
    """The events of a response with these items; without ``end`` its last event is missing."""
    usage = {"input_tokens": tokens - 10, "output_tokens": 10, "total_tokens": tokens}
    whole = {"id": "resp_1", "status": end, "output": list(items), "usage": usage, **head}
    return (
        frame("response.created", response={"id": "resp_1", "status": "in_progress", "output": []}),
        *(frame("response.output_item.done", output_index=n, item=item) for n, item in enumerate(items)),
        *((frame(f"response.{end}", response=whole),) if end else ()),
    )


def streamed(*items: Item, how: Any = "whole", **more: Any) -> Reply:
    return Reply(content_type="text/event-stream", chunks=frames(*items, **more), how=how)


def agents_in(seen: Seen) -> list[str]:
    """The ids of the sub-agents that a request's history tells of, in order of spawning."""
    outputs = [item["output"] for item in seen.json()["input"] if item["type"] == "function_call_output"]
    return [orjson.loads(one)["agent_id"] for one in outputs if one.startswith('{"agent_id"')]


@dataclass(frozen=True)
class Turn:
    """One answer of one agent. It is held until every agent of ``after`` has asked so often, or is ``gone``.

    ``reply`` may be made from the ids of the sub-agents, as far as the asking agent knows them.
    """

    reply: Reply | Callable[[list[str]], Reply]
    after: Sequence[tuple[str, int]] = ()
    gone: Sequence[str] = ()
    last: bool = False


@dataclass
class Agents(ScriptedServer):
    """Answers ``root`` and each sub-agent, told apart by the end of its task, from a script of its own.

    An answer marked ``last`` closes its connection; its agent counts as gone once the client has closed it too, and has
    so taken the answer in.
    """

    replies: Sequence[Reply] = (Reply(),)
    scripts: dict[str, list[Turn]] = field(default_factory=dict)
    _asked: dict[str, int] = field(default_factory=dict)
    _gone: set[str] = field(default_factory=set)
    _moved: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def _answer(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        seen = self.seen[-1]
        agent = self._agent(seen)
        place = self._asked.get(agent, 0)
        turn = self.scripts[agent][place]
        async with self._moved:
            self._asked[agent] = place + 1
            self._moved.notify_all()
            await self._moved.wait_for(lambda: self._may_go(turn))
        reply = turn.reply if isinstance(turn.reply, Reply) else turn.reply(agents_in(seen))
        if not turn.last:
            return await super()._answer(reply, reader, writer)
        closing = Reply(reply.status, reply.body, reply.headers, reply.content_type, "close", reply.chunks)
        await super()._answer(closing, reader, writer)
        await reader.read()
        async with self._moved:
            self._gone.add(agent)
            self._moved.notify_all()
        return False

    def _agent(self, seen: Seen) -> str:
        if "x-codex-parent-thread-id" not in dict(seen.headers):
            return "root"
        said = [item["content"][0]["text"] for item in seen.json()["input"] if item.get("role") == "user"]
        return next(name for name in self.scripts if any(name in one for one in said))

    def _may_go(self, turn: Turn) -> bool:
        asked = all(self._asked.get(agent, 0) >= often for agent, often in turn.after)
        return asked and set(turn.gone) <= self._gone
