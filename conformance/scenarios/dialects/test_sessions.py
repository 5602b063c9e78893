"""Which session a call belongs to is told alike in each dialect, and told to nobody behind the proxy."""

import asyncio
from dataclasses import dataclass

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import MODEL, Scene
from conformance.oracle.upstream import body_of
from conformance.scenarios.dialects.tongues import Said, Tongue, spoken_by
from conformance.scenarios.sessions.filing import places
from fakes.harnesses.plain import Reply

BODY = "session-body"


@dataclass(frozen=True)
class Way:
    """One dialect, and the capability by which its call names a session; None for a call that names none."""

    tongue: Tongue
    by: str | None
    model: str = MODEL
    stream: bool = False

    def __str__(self) -> str:
        return f"{self.tongue.capability}, {self.by or 'no session'}, {self.model}, stream {self.stream}"


@covers("DLC-008", "DLC-009", "DLC-010")
async def test_a_session_is_named_alike_in_each_dialect(scene: Scene, check: Check) -> None:
    sources = [name for name in scene.proxy.profile.carriers if name.startswith("session-")]
    ways = [
        way
        for tongue in spoken_by(scene.proxy.capabilities)
        for way in (
            *(Way(tongue, by, stream=n % 2 == 1) for n, by in enumerate(sources)),
            *(Way(tongue, None, stream=stream) for stream in (False, True)),
            *([Way(tongue, BODY, "uncaptured")] if BODY in sources else []),
        )
    ]
    scopes = {f"way_{n}": {"turns": [{"text": "{tag} I have looked."}]} for n in range(len(ways))}
    await scene.script({"about": "One answer a call.", "sampling": "faithful", "scopes": scopes})
    replies = await asyncio.gather(*(_ask(scene, way, n) for n, way in enumerate(ways)))
    due = {n: [_session(scene, n)] if way.by and way.model == MODEL else [] for n, way in enumerate(ways)}
    found = await places(scene, {session for sessions in due.values() for session in sessions})
    rows = {row["scope"]: row for row in await scene.ledger()}
    for n, (way, reply) in enumerate(zip(ways, replies, strict=True)):
        said = [reply.status, way.tongue.heard(reply).text.strip()]
        answered = said == [200, f"{scene.tag(1, n)} I have looked."]
        if way.model == MODEL:
            requirement = "DLC-008" if way.by else "DLC-010"
            seen = found.get(n, []) if answered else said
            check(requirement, answered and seen == due[n], expected=due[n], seen=seen, where=str(way))
        if way.by == BODY:
            sent = sorted(key for key in body_of(rows[n]) if "session" in key) if n in rows else said
            check.equal("DLC-009", expected=[], seen=sent, where=str(way))


def _session(scene: Scene, n: int) -> str:
    return scene.session(f"way {n}")


async def _ask(scene: Scene, way: Way, n: int) -> Reply:
    body = way.tongue.body(Said(scene.task(scope=n)), model=way.model, stream=way.stream)
    session = None if way.by is None else _session(scene, n)
    return await scene.post(way.tongue.path, body, session=session, by=way.by)
