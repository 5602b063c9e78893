"""Calls that name their session in one way or another, all at once, and under which sessions they come to lie."""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.scene import Record, Scene
from conformance.systems.retrieval import RetrievalFailed
from fakes.harnesses.plain import Reply

HEADER = BODY_KEY = "proxy_x_session_id"
OPENCODE = "X-Session-Id"
PARENT = "X-Parent-Session-Id"
MARKER = "sycap-session:"

OF_A_SCENE = re.compile(r"run-(\d{6})-")
"""What is in the session ids of scenes."""

Places = dict[int, list[str]]
"""Scope → the sessions that hold its records, each as often as it holds one."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A call that a requirement speaks of. ``session`` is the only one that may hold it, None for none at all."""

    requirement: str
    session: str | None
    headers: Sequence[tuple[str, str]] = ()
    body: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        told = [f"{name}: {value}" for name, value in self.headers]
        told += [f"body {name} {json.dumps(value)}" for name, value in self.body.items()]
        return ", ".join(told) or "nothing that names a session"


async def make(scene: Scene, calls: Sequence[Sent]) -> list[Reply]:
    """All calls at once, the n-th in scope n."""
    scopes = {f"call_{scope}": {"turns": [{"text": "{tag} I have looked."}]} for scope in range(len(calls))}
    await scene.script({"about": "One answer a call.", "sampling": "faithful", "scopes": scopes})
    return await asyncio.gather(
        *(
            scene.ask(scene.task(scope=scope), session=None, headers=call.headers, **call.body)
            for scope, call in enumerate(calls)
        )
    )


async def check_filing(scene: Scene, check: Check, calls: Sequence[Sent], replies: Sequence[Reply]) -> None:
    """Each call was answered, and lies under its own session once and nowhere else."""
    found = await places(scene, {call.session for call in calls if call.session is not None})
    for scope, (call, reply) in enumerate(zip(calls, replies, strict=True)):
        if call.session is None and not found:
            check.nothing(call.requirement, "record of any call")
            continue
        due = [] if call.session is None else [call.session]
        seen = found.get(scope, []) if reply.ok else f"answered with {reply.status}"
        check.equal(call.requirement, expected=due, seen=seen, where=str(call)[:300])


async def places(scene: Scene, expected: set[str]) -> Places:
    """Where this run's calls lie: under the expected sessions, under all that are no other scene's, and on the disk."""
    found: Places = {}
    if "retrieval-http" in scene.proxy.capabilities:
        listed = {str(row.get("session_id")) for row in await scene.proxy.sessions()}
        foreign = {one for one in listed if (of := OF_A_SCENE.search(one)) and int(of[1]) != scene.run}
        asked = sorted(expected | listed - foreign)
        for session, records in zip(asked, await asyncio.gather(*(_held(scene, one) for one in asked)), strict=True):
            for record in records:
                _note(found, scopes_in(json.dumps(record), scene.run), session)
    if "records-disk" in scene.proxy.capabilities and scene.proxy.log_dir is not None:
        over_http = {scope: set(sessions) for scope, sessions in found.items()}
        for scopes, session in _on_disk(scene.proxy.log_dir, scene.run):
            _note(found, {scope for scope in scopes if session not in over_http.get(scope, ())}, session)
    return found


async def _held(scene: Scene, session: str) -> list[Record]:
    """Nothing where an envelope cannot be had: how it is asked for is judged elsewhere."""
    try:
        return await scene.proxy.records(session)
    except RetrievalFailed:
        return []


def _note(found: Places, scopes: set[int], session: str) -> None:
    for scope in scopes:
        found.setdefault(scope, []).append(session)


def _on_disk(log_dir: Path, run: int) -> list[tuple[set[int], str]]:
    """Each JSON file that tells of this run: of which scopes, and the session it names itself."""
    found = []
    for path in log_dir.rglob("*.json"):
        text = path.read_text(encoding="utf-8", errors="replace")
        scopes = scopes_in(text, run)
        if scopes:
            record = json.loads(text)
            found.append((scopes, str(record.get("session_id")) if isinstance(record, dict) else path.name))
    return found


def scopes_in(text: str, run: int) -> set[int]:
    """The scopes whose first turn was asked for in this text."""
    return {int(scope) for scope in re.findall(rf"{run:06d}:(\d\d):0000", text)}
