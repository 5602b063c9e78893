"""Calls of the Responses dialect: one by one, or many of one run at once, and what the engine was asked for each."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conformance.gauge.scene import MODEL, Scene
from conformance.scenarios.streams import shapes
from conformance.scenarios.upstream.asking import Asked
from fakes.harnesses.plain import Call, Reply

JSON = Any
Item = dict[str, JSON]

PATH = "/responses"


def respond(scene: Scene, given: str | list[Item], *, model: str = MODEL, **body: JSON) -> Call:
    """One call under way; ``given`` is its input, further keywords go into the body as they are."""
    return scene.post(PATH, {"model": model, "input": given, **body})


def tool(name: str, *arguments: str, description: str = "") -> Item:
    """A function tool as Codex declares it."""
    parameters = {
        "type": "object",
        "required": [*arguments],
        "properties": {one: {"type": "string"} for one in arguments},
    }
    return {
        "type": "function",
        "name": name,
        "description": description or f"The tool {name}.",
        "strict": False,
        "parameters": parameters,
    }


TOOLS = [{**one["function"], "type": "function", "strict": False} for one in shapes.TOOLS]
"""The tools that the answers of every shape call."""


def message(role: str, *texts: str) -> Item:
    """A message of the input, its text in parts."""
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text} for text in texts]}


def call(call_id: str, name: str, arguments: str) -> Item:
    told = {"call_id": call_id, "name": name, "arguments": arguments, "status": "completed"}
    return {"type": "function_call", "id": f"fc_{call_id}", **told}


def output(call_id: str, given: JSON) -> Item:
    return {"type": "function_call_output", "id": f"fco_{call_id}", "call_id": call_id, "output": given}


@dataclass(frozen=True)
class Ask:
    """A call to make: ``before`` stands in front of the user's task, which is a bare text without it."""

    before: tuple[Item, ...] = ()
    body: Mapping[str, JSON] = field(default_factory=dict)
    turn: Mapping[str, JSON] = field(default_factory=dict)


async def ask_all(scene: Scene, asks: Mapping[str, Ask]) -> dict[str, Asked]:
    """All at once, each a scope of one turn."""
    scopes = {label: {"turns": [{"text": "{tag} The header was missing.", **ask.turn}]} for label, ask in asks.items()}
    await scene.script({"about": "One turn a call.", "sampling": "drifting", "scopes": scopes})
    sent = {label: {"input": _input(scene, n, ask), **ask.body} for n, (label, ask) in enumerate(asks.items())}
    replies = await asyncio.gather(*(respond(scene, body["input"], **_rest(body)) for body in sent.values()))
    rows = await scene.ledger()
    return {
        label: Asked(label, sent[label], reply, [row for row in rows if row["scope"] == scope])
        for scope, (label, reply) in enumerate(zip(asks, replies, strict=True))
    }


def body_of(reply: Reply) -> str:
    return "" if reply.exchange.response is None else reply.exchange.response.body_text


def refused(reply: Reply) -> bool:
    """The client was told that the mistake is its own."""
    return reply.status is not None and 400 <= reply.status < 500


def _input(scene: Scene, scope: int, ask: Ask) -> str | list[Item]:
    task = scene.task("Why does the build fail?", scope=scope)
    return [*ask.before, message("user", task)] if ask.before else task


def _rest(body: Mapping[str, JSON]) -> dict[str, JSON]:
    return {key: value for key, value in body.items() if key != "input"}
