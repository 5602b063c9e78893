"""Errors that the engine tells: what of them reaches the client, buffered and streamed."""

import asyncio
from typing import Any
from urllib.parse import urlsplit

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.oracle import chat_errors
from conformance.scenarios.errors.engine_errors import (
    BAD_VALUE,
    OTHER_FORMS,
    OVERFLOWS,
    RETRY_AFTER,
    STATUSES,
    TOO_MUCH_OUTPUT,
    error,
)
from conformance.scenarios.errors.faults import body_of, engine_says, everything_in, play
from conformance.scenarios.streams.official import official


@covers("ERR-001", "ERR-002", "ERR-003", "ERR-004", "ERR-005", "ERR-008", "ERR-014", "ERR-015")
async def test_an_error_of_the_engine_keeps_its_meaning(scene: Scene, check: Check) -> None:
    naming = engine_says(500, error(500, f"cannot reach {scene.engine.url}/t/main/v1 nor {_place(scene)}"))
    cases = {**STATUSES, **OTHER_FORMS, "names itself": (500, naming)}
    engine = await play(scene, {name: fault for name, (_, fault) in cases.items()})
    buffered = await asyncio.gather(*(engine.start(name) for name in cases))
    streamed = await asyncio.gather(*(engine.start(name, stream=True) for name in cases))
    for (name, (status, _)), reply, other in zip(cases.items(), buffered, streamed, strict=True):
        check.that("ERR-001", chat_errors.is_failure(reply.status, name))
        check.that("ERR-015", chat_errors.is_failure(other.status, f"{name}, streamed"))
        check.equal("ERR-015", expected=reply.status, seen=other.status, where=f"{name}, streamed")
        check("ERR-015", not other.exchange.streamed, expected="no stream", seen=body_of(other)[:200], where=name)
        check.that("ERR-008", chat_errors.silent_on(_place(scene), everything_in(reply), name))
        kept, shape = ("ERR-014", "ERR-014") if name in OTHER_FORMS else ("ERR-002", "ERR-004")
        check.equal(kept, expected=status, seen=reply.status, where=name)
        check.that(shape, chat_errors.in_shape(reply.header("content-type"), body_of(reply), name))
        if name in RETRY_AFTER:
            for told in (reply, other):
                check.equal("ERR-003", expected=RETRY_AFTER[name], seen=told.header("retry-after"), where=name)
    _tells_what_was_wrong(check, chat_errors.error_of(body_of(buffered[0])))


def _tells_what_was_wrong(check: Check, told: dict[str, Any]) -> None:
    for key in ("message", "type", "param"):
        expected = BAD_VALUE["error"][key]
        # A proxy may say whose message it is.
        ok = expected in str(told.get(key)) if key == "message" else told.get(key) == expected
        check("ERR-005", ok, expected=expected, seen=told.get(key), where=f"{key} of the engine's 400")


def _place(scene: Scene) -> str:
    return urlsplit(scene.engine.url).netloc


@covers("ERR-004")
async def test_the_official_client_raises_its_own_error(scene: Scene, check: Check) -> None:
    engine = await play(scene, {"400": STATUSES["400"][1]})
    async with official(scene) as client:
        for ask in (client.buffered, client.streamed):
            raised = await client.raised_by(ask(engine.task("400")))
            check.equal("ERR-004", expected="BadRequestError", seen=type(raised).__name__, where=ask.__name__)
            check("ERR-004", BAD_VALUE["error"]["message"] in str(raised), expected=BAD_VALUE, seen=str(raised))


@covers("ERR-006", "ERR-007")
async def test_a_context_overflow_can_be_told_from_a_refused_output_limit(scene: Scene, check: Check) -> None:
    overflows = {f"overflow {version}": engine_says(400, error(400, text)) for version, text in OVERFLOWS.items()}
    limits = {
        f"limit {version}": engine_says(400, error(400, text, param="max_tokens"))
        for version, text in TOO_MUCH_OUTPUT.items()
    }
    engine = await play(scene, {**overflows, **limits}, healthy=True)
    long = await scene.ask("word " * 3000, model="short-context")
    told = [(await engine.start(name), words) for name, words in zip(overflows, OVERFLOWS.values(), strict=True)]
    for reply, words in [(long, "This model's maximum context length is"), *told]:
        check.that("ERR-006", chat_errors.is_overflow(reply.status, body_of(reply), words))
    for reply in [await engine.start("healthy", max_tokens=500_000), *[await engine.start(name) for name in limits]]:
        code = chat_errors.error_of(body_of(reply)).get("code")
        check("ERR-007", code != chat_errors.OVERFLOW, expected="another code", seen=code, where=body_of(reply)[:200])
