"""Many calls of one run at once, each of a scope and a session of its own, and what the engine was asked for each."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conformance.gauge.scene import MODEL, TENANT, Row, Scene
from conformance.oracle.upstream import Body, body_of, generations
from fakes.harnesses.plain import AnyHeaders, Call, Reply

JSON = Any


@dataclass(frozen=True)
class Ask:
    """A call to make. ``turn`` changes what the model does; ``messages`` go in front of the user's task."""

    body: Mapping[str, JSON] = field(default_factory=dict)
    model: str = MODEL
    messages: tuple[Mapping[str, JSON], ...] = ()
    stream: bool = False
    headers: AnyHeaders = ()
    session: bool = True
    by: str | None = None
    turn: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """A call that is over. ``rows`` is all that the engine's ledger tells of it, in order."""

    label: str
    sent: Body
    reply: Reply
    rows: list[Row]

    @property
    def generations(self) -> list[Row]:
        return generations(self.rows)

    @property
    def bodies(self) -> list[Body]:
        return [body_of(row) for row in self.rows]

    @property
    def got(self) -> Body:
        """What the engine was asked first; empty if it was not asked."""
        return body_of(self.rows[0]) if self.rows else {}


async def ask_all(scene: Scene, asks: Mapping[str, Ask], *, tenant: str = TENANT) -> dict[str, Asked]:
    """All at once. A call that the engine refused before it generated has its row too.

    What the system does not claim to take, such as calls without a session, is left out.
    """
    asks = {
        label: ask
        for label, ask in asks.items()
        if scene.takes(model=ask.model, stream=ask.stream, session=ask.session)
    }
    await _script(scene, asks, tenant)
    started = {label: _start(scene, label, scope, ask) for scope, (label, ask) in enumerate(asks.items())}
    replies = await asyncio.gather(*(call for _, call in started.values()))
    refused = await scene.engine.wait("refused", tenant=tenant, count=0, seconds=0)
    rows = await scene.ledger(tenant=tenant)
    known = {row["seq"] for row in rows}
    rows += [row for row in refused if row["seq"] not in known]
    return {
        label: Asked(label, sent, reply, [row for row in rows if _is_of(row, scene, scope)])
        for scope, ((label, (sent, _)), reply) in enumerate(zip(started.items(), replies, strict=True))
    }


async def _script(scene: Scene, asks: Mapping[str, Ask], tenant: str) -> None:
    scopes = {label: {"turns": [{"text": "{tag} The header was missing.", **ask.turn}]} for label, ask in asks.items()}
    await scene.script({"about": "One turn a call.", "sampling": "drifting", "scopes": scopes}, tenant=tenant)


def _start(scene: Scene, label: str, scope: int, ask: Ask) -> tuple[Body, Call]:
    task = {"role": "user", "content": scene.task("Why does the build fail?", scope=scope)}
    sent: Body = {"model": ask.model, "messages": [*ask.messages, task], **ask.body}
    if ask.stream:
        sent |= {"stream": True, "stream_options": {"include_usage": True}}
    headers = list(ask.headers.items()) if isinstance(ask.headers, Mapping) else list(ask.headers)
    path, carried_body = "/v1", {}
    if ask.session:
        carried = scene.proxy.carry(scene.session(label), by=ask.by)
        headers += carried.headers
        path, carried_body = carried.base_path, dict(carried.body or {})
        if carried.api_key is not None:
            headers.append(("Authorization", f"Bearer {carried.api_key}"))
    # Python's own writer: integers of any size and lone surrogates are part of what is asked.
    raw = json.dumps({**sent, **carried_body}).encode()
    return sent, scene.client.post(f"{path}/chat/completions", raw, headers=headers)


def _is_of(row: Row, scene: Scene, scope: int) -> bool:
    """By what the engine found in the prompt; in a request that it refused unread, by the tag as it was sent."""
    if row["run"] is not None:
        return bool(row["run"] == scene.run and row["scope"] == scope)
    return scene.tag(scope=scope) in json.dumps(body_of(row).get("messages"), ensure_ascii=False)
