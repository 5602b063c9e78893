"""Calls of the Messages dialect: one by one, or many of one run at once, and what the engine was asked for each."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conformance.gauge.scene import MODEL, Scene
from conformance.oracle.messages_answers import MessagesAnswer, buffered, reassemble
from conformance.scenarios.upstream.asking import Asked
from fakes.harnesses.plain import Call, Reply

JSON = Any
Block = dict[str, JSON]
Message = dict[str, JSON]

PATH = "/messages"
LIMIT = 4096
"""The output limit of a call that says nothing else: the dialect demands one."""


def ask(scene: Scene, said: str | list[Message], *, model: str = MODEL, path: str = PATH, **body: JSON) -> Call:
    """One call under way; ``said`` is the user's text or all messages, further keywords go into the body as they are.

    ``max_tokens=None`` leaves the limit out.
    """
    messages = [user(said)] if isinstance(said, str) else said
    whole = {"model": model, "max_tokens": LIMIT, "messages": messages, **body}
    return scene.post(path, {key: value for key, value in whole.items() if value is not None})


def tool(name: str, *arguments: str) -> Block:
    """A tool as clients declare it."""
    schema = {"type": "object", "properties": {one: {"type": "string"} for one in arguments}, "required": [*arguments]}
    return {"name": name, "description": f"The tool {name}.", "input_schema": schema}


def user(content: str | list[Block]) -> Message:
    return {"role": "user", "content": content}


def assistant(*blocks: Block) -> Message:
    return {"role": "assistant", "content": list(blocks)}


def text(said: str) -> Block:
    return {"type": "text", "text": said}


def thinking(thought: str) -> Block:
    return {"type": "thinking", "thinking": thought, "signature": "c2lnbmVk"}


def use(call_id: str, name: str, given: Mapping[str, JSON]) -> Block:
    return {"type": "tool_use", "id": call_id, "name": name, "input": dict(given)}


def result(call_id: str, **keys: JSON) -> Block:
    """A tool result; without ``content`` it has none."""
    return {"type": "tool_result", "tool_use_id": call_id, **keys}


@dataclass(frozen=True)
class Ask:
    """A call to make: ``before`` are the messages in front of the user's task, ``beside`` blocks in front of its text.

    With ``as_block`` the task is a list of one text block. ``turn`` changes what the model does.
    """

    before: tuple[Message, ...] = ()
    beside: tuple[Block, ...] = ()
    as_block: bool = False
    body: Mapping[str, JSON] = field(default_factory=dict)
    turn: Mapping[str, JSON] = field(default_factory=dict)


async def ask_all(scene: Scene, asks: Mapping[str, Ask]) -> dict[str, Asked]:
    """All at once, each a scope of one turn. A call that the engine refused has its row too."""
    scopes = {
        label: {"turns": [{"text": "{tag} The header was missing.", **each.turn}]} for label, each in asks.items()
    }
    await scene.script({"about": "One turn a call.", "sampling": "drifting", "scopes": scopes})
    sent = {label: {"messages": _messages(scene, n, each), **each.body} for n, (label, each) in enumerate(asks.items())}
    replies = await asyncio.gather(*(ask(scene, body["messages"], **_rest(body)) for body in sent.values()))
    rows = await scene.ledger()
    return {
        label: Asked(label, sent[label], reply, [row for row in rows if row["scope"] == scope])
        for scope, (label, reply) in enumerate(zip(asks, replies, strict=True))
    }


def untagged(scene: Scene, asked: Asked) -> JSON:
    """What the engine was asked, with the scope's own number gone, so that two scopes can be compared."""
    scope = asked.rows[0]["scope"] if asked.rows else 0
    return json.loads(json.dumps(asked.got, ensure_ascii=False).replace(scene.tag(scope=scope), "(tag)"))


def body_of(reply: Reply) -> str:
    return "" if reply.exchange.response is None else reply.exchange.response.body_text


def answer_of(reply: Reply) -> MessagesAnswer:
    """What the client reads, streamed or buffered; an empty answer where there is none."""
    if reply.exchange.streamed:
        return reassemble(body_of(reply))
    return buffered(object_of(reply))


def object_of(reply: Reply) -> dict[str, JSON]:
    """The body as an object; empty where it is none."""
    try:
        found = json.loads(body_of(reply))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def answered(reply: Reply) -> bool:
    """A 200 whose message ended by itself."""
    return reply.status == 200 and answer_of(reply).stop_reason in ("end_turn", "tool_use", "stop_sequence")


def refused(reply: Reply) -> bool:
    """The client was told that the mistake is its own."""
    return reply.status is not None and 400 <= reply.status < 500


def _messages(scene: Scene, scope: int, given: Ask) -> list[Message]:
    task = scene.task("Why does the build fail?", scope=scope)
    as_list = given.as_block or bool(given.beside)
    return [*given.before, user([*given.beside, text(task)] if as_list else task)]


def _rest(body: Mapping[str, JSON]) -> dict[str, JSON]:
    return {key: value for key, value in body.items() if key != "messages"}
