"""Ids of every kind: recorded as they are, and never taken for one another."""

import asyncio
import json

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import MODEL, Scene
from conformance.scenarios.sessions.filing import BODY_KEY, places
from fakes.harnesses.plain import Reply

ALIKE = (
    *("Case", "case", "CASE"),
    *("a/b", "a_b", "a-b", "a:b", "a?b", "a*b", "a\\b", "a b", "ab", "a%2Fb", "a%2fb"),
    *("straße", "strasse", "caf\u00e9", "cafe\u0301", "cafe"),
    *("end", "end.", "end/", "end.json", "./end", "../end"),
    *("x" * 5_000 + "1", "x" * 5_000 + "2", "x" * 255, "x" * 64),
)
"""Ends of ids that a careless store takes for one another."""

ODD = (
    *("../../../etc/passwd", "/etc/passwd", "..\\..\\x", "~root", "C:\\x", "--rf", "*", "{session}", "%00", "?x=1&y#z"),
    *("日本語 🧑\u200d🚀 \u202eevil", "a \"quoted\" 'one'; <b>&amp;</b>"),
)
"""Beginnings of ids."""

IN_BODIES_ONLY = ("\n  blanks around", "line\nbreak\ttab", "nul\0inside", "\x7f\x1b[31m")
"""Beginnings of ids that no header can hold. A blank follows at the end."""

LONE_SURROGATE = "\ud83d alone"


@covers("SES-020", "SES-021")
async def test_ids_of_any_characters_stay_what_they_are_and_apart(scene: Scene, check: Check) -> None:
    own = f"run-{scene.run:06d}-"
    ids = [own + end for end in ALIKE] + [f"{beginning} {own}" for beginning in ODD]
    if "session-body" in scene.proxy.capabilities:
        ids += [f"{beginning} {own} " for beginning in (*IN_BODIES_ONLY, LONE_SURROGATE)]
    scopes = {f"call_{scope}": {"turns": [{"text": "{tag} I have looked."}]} for scope in range(len(ids))}
    await scene.script({"about": "One answer a call.", "sampling": "faithful", "scopes": scopes})
    replies = await asyncio.gather(*(ask_as(scene, identity, scope) for scope, identity in enumerate(ids)))
    found = await places(scene, set(ids))
    for scope, (identity, reply) in enumerate(zip(ids, replies, strict=True)):
        refused = LONE_SURROGATE in identity and reply.status == 400
        seen = [ascii(session) for session in found.get(scope, [])]
        check("SES-020", refused or ascii(identity) in seen, expected=ascii(identity), seen=seen, where=f"call {scope}")
    calls_of: dict[str, list[int]] = {}
    for scope, sessions in found.items():
        for session in set(sessions):
            calls_of.setdefault(session, []).append(scope)
    shared = {ascii(session): [ascii(ids[scope]) for scope in held] for session, held in calls_of.items() if held[1:]}
    check("SES-021", bool(found) and not shared, expected="a session a call", seen=shared)


async def ask_as(scene: Scene, session: str, scope: int) -> Reply:
    """With the id in the body, which can hold every one of them, where the system reads it there."""
    if "session-body" not in scene.proxy.capabilities:
        return await scene.ask(scene.task(scope=scope), session=session)
    body = {"model": MODEL, "messages": [{"role": "user", "content": scene.task(scope=scope)}], BODY_KEY: session}
    return await scene.client.post("/v1/chat/completions", json.dumps(body).encode())
