"""Runs of many scopes with one turn each, every one with a fault of its own; asked for by name."""

import json
from typing import Any

from conformance.gauge.scene import TENANT, Scene
from fakes.harnesses.plain import Call, Reply
from fakes.harnesses.wire import Watch

Fault = dict[str, Any]
Turn = dict[str, Any]

CUTS: dict[str, Fault] = {
    "dropped": {"name": "cut_stream", "at_token": 3},
    "ended early": {"name": "cut_clean", "at_token": 3},
    "half an object": {"name": "bad_json", "at_token": 3},
    "engine died": {"name": "error_event", "at_token": 3},
}
"""Ways in which an answer of the engine breaks off."""

TEXT = "{tag} Nothing is wrong with the build, as far as I can see."


class Faulty:
    """The scopes of one run by name. ``start`` asks for a scope's only turn."""

    def __init__(self, scene: Scene, turns: dict[str, Turn]) -> None:
        self.scene = scene
        self.scopes = {name: scope for scope, name in enumerate(turns)}
        self._turns = turns

    async def script(self, *, tenant: str = TENANT) -> "Faulty":
        scopes = {name: {"turns": [{"text": TEXT, **turn}]} for name, turn in self._turns.items()}
        about = "One turn a scope, each wrong in its own way."
        await self.scene.script({"about": about, "sampling": "drifting", "scopes": scopes}, tenant=tenant)
        return self

    def task(self, name: str) -> str:
        return self.scene.task(scope=self.scopes[name])

    def start(self, name: str, **call: Any) -> Call:
        return self.scene.start(self.task(name), **call)


async def play(scene: Scene, faults: dict[str, Fault], *, healthy: bool = False) -> Faulty:
    """Each fault on every attempt of its scope; ``healthy`` adds a scope of that name without one."""
    turns = {name: faulty(fault) for name, fault in faults.items()}
    if healthy:
        turns["healthy"] = {}
    return await Faulty(scene, turns).script()


def faulty(fault: Fault) -> Turn:
    """A turn with this fault on every attempt."""
    return {"fault": {"on_attempts": "all", **fault}}


def engine_says(status: int, body: Any, **headers: str) -> Fault:
    """An error answer of the engine's; a body that is no text is written as JSON."""
    raw = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return {"name": "http_error", "status": status, "raw": raw, "headers": named}


def answers_200(body: str, content_type: str = "application/json") -> Fault:
    """A 200 with this for a body."""
    return {"name": "not_json", "status": 200, "raw": body, "headers": {"Content-Type": content_type}}


def send(scene: Scene, body: Any, *, watch: Watch | None = None, **headers: str) -> Call:
    """Any body to the chat endpoint: bytes as they are, anything else as JSON, in this scene's session."""
    carried = scene.proxy.carry(scene.session())
    pairs = [*carried.headers, *((name.replace("_", "-"), value) for name, value in headers.items())]
    if carried.api_key is not None:
        pairs.append(("Authorization", f"Bearer {carried.api_key}"))
    whole = {**body, **(carried.body or {})} if isinstance(body, dict) else body
    return scene.client.send("POST", f"{carried.base_path}/chat/completions", whole, headers=pairs, watch=watch)


def everything_in(reply: Reply) -> str:
    """Headers and body."""
    return "" if reply.exchange.response is None else f"{reply.exchange.response.headers} {body_of(reply)}"


def body_of(reply: Reply) -> str:
    return "" if reply.exchange.response is None else reply.exchange.response.body_text
