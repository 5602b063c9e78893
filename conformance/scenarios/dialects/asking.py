"""Calls in every dialect at once, each of a scope and a session of its own."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conformance.gauge.scene import MODEL, Record, Row, Scene
from conformance.oracle.upstream import Body, body_of
from conformance.scenarios.dialects.tongues import Said, Tongue, Tool, spoken_by
from fakes.harnesses.plain import Reply

JSON = Any

LOOK = Tool("look", "Look at a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
TEXT = "{tag} Nothing is wrong with the build."


@dataclass(frozen=True)
class Ask:
    """A call to make in each dialect. ``body`` goes into its top level; ``turn`` changes what the model does."""

    body: Mapping[str, JSON] = field(default_factory=dict)
    model: str = MODEL
    stream: bool = False
    turn: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """What came of it in one dialect. ``said`` is the text that its client got, and ``due`` what it should get."""

    label: str
    tongue: Tongue
    reply: Reply
    rows: list[Row]
    records: list[Record]
    due: str

    @property
    def where(self) -> str:
        return f"{self.tongue.capability}, {self.label}"

    @property
    def bodies(self) -> list[Body]:
        return [body_of(row) for row in self.rows]

    @property
    def said(self) -> str:
        return self.tongue.heard(self.reply).text.strip()


async def ask_all(scene: Scene, asks: Mapping[str, Ask]) -> dict[str, list[Asked]]:
    """All at once; the answers by label, one for each dialect of the proxy."""
    ways = [(label, ask, tongue) for label, ask in asks.items() for tongue in spoken_by(scene.proxy.capabilities)]
    scopes = {f"s{n}": {"turns": [{"text": TEXT, **ask.turn}]} for n, (_, ask, _) in enumerate(ways)}
    await scene.script({"about": "One turn a call.", "sampling": "drifting", "scopes": scopes})
    replies = await asyncio.gather(*(_ask(scene, n, ask, tongue) for n, (_, ask, tongue) in enumerate(ways)))
    captured = await asyncio.gather(*(scene.records(scene.session(f"s{n}")) for n in range(len(ways))))
    rows = await scene.ledger()
    found: dict[str, list[Asked]] = {}
    for n, (label, _, tongue) in enumerate(ways):
        own, due = [row for row in rows if row["scope"] == n], TEXT.replace("{tag}", scene.tag(1, n))
        found.setdefault(label, []).append(Asked(label, tongue, replies[n], own, captured[n], due))
    return found


async def _ask(scene: Scene, n: int, ask: Ask, tongue: Tongue) -> Reply:
    said = Said(scene.task("Why does the build fail?", scope=n), tools=(LOOK,))
    body = tongue.body(said, model=ask.model, stream=ask.stream, **ask.body)
    return await scene.post(tongue.path, body, session=scene.session(f"s{n}"))
