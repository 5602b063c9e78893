"""Tokens of a Messages conversation are counted by the engine's own count, and counting is no call."""

import asyncio
from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import MODEL, Scene
from conformance.scenarios.messages.asking import Message, ask, object_of, user
from conformance.scenarios.messages.history import HISTORY, KEYS

JSON = Any


@covers("ANT-046", "ANT-047")
async def test_counting_gives_the_engines_number_and_generates_nothing(scene: Scene, check: Check) -> None:
    await scene.script("one_answer")
    asked: dict[str, tuple[list[Message], dict[str, JSON]]] = {
        "a text": ([user(scene.task())], {}),
        "a conversation with tools": ([*HISTORY, user(scene.task())], KEYS),
        "uncaptured": ([user(scene.task())], {"model": "uncaptured", **KEYS}),
    }
    bodies = {label: {"model": MODEL, "messages": messages, **keys} for label, (messages, keys) in asked.items()}
    counts = await asyncio.gather(*(scene.post("/messages/count_tokens", body) for body in bodies.values()))
    generated = await scene.ledger()
    check.equal("ANT-047", expected=[], seen=[row["endpoint"] for row in generated], where="generations")
    check.equal("ANT-047", expected=[], seen=[one["uuid"] for one in await scene.records()], where="records")
    for (label, (messages, keys)), counted in zip(asked.items(), counts, strict=True):
        await ask(scene, messages, **keys)
        usage = (await scene.ledger())[-1]["usage"]
        seen = object_of(counted).get("input_tokens")
        check.equal("ANT-046", expected=usage["prompt_tokens"], seen=seen, where=label)
