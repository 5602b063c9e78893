"""Mistakes of the client."""

import asyncio
from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import MODEL, Scene
from conformance.oracle import chat_errors
from conformance.scenarios.errors.faults import body_of, send

NO_OBJECT = {
    "nothing": b"",
    "half an object": b'{"model": "policy-model", "messages": [',
    "no JSON": b"model=policy-model",
    "a list": b"[1, 2]",
    "a string": b'"policy-model"',
    "null": b"null",
    "Latin-1": '{"model": "policy-model", "messages": [{"role": "user", "content": "größe"}]}'.encode("latin-1"),
}
NO_MESSAGES: dict[str, dict[str, Any]] = {
    "no messages": {"model": MODEL},
    "null for messages": {"model": MODEL, "messages": None},
    "an empty list": {"model": MODEL, "messages": []},
    "a text for messages": {"model": MODEL, "messages": "hello"},
    "texts for messages": {"model": MODEL, "messages": ["hello"]},
}


@covers("ERR-004", "ERR-016", "ERR-017", "ERR-018")
async def test_a_mistake_of_the_client_is_told_as_one(scene: Scene, check: Check) -> None:
    await scene.script("one_answer")
    for requirement, bodies in (("ERR-016", NO_OBJECT), ("ERR-017", NO_MESSAGES)):
        replies = await asyncio.gather(*(send(scene, body) for body in bodies.values()))
        for name, reply in zip(bodies, replies, strict=True):
            check.equal(requirement, expected=400, seen=reply.status, where=name)
            check.that("ERR-004", chat_errors.in_shape(reply.header("content-type"), body_of(reply), name))
    for role in ("wizard", "", 7, None):
        messages = [{"role": role, "content": "Abracadabra."}, {"role": "user", "content": scene.task()}]
        reply = await send(scene, {"model": MODEL, "messages": messages})
        ok = reply.status is not None and reply.status < 500
        check("ERR-018", ok, expected="no 5xx", seen=reply.status, where=f"role {role!r}")
