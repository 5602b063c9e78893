"""What harnesses do behind a proxy when the engine cuts, stalls or refuses, and when they ask the same again."""

import asyncio
from contextlib import suppress

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.scene import Record, Row, Scene
from conformance.gauge.together import together
from conformance.scenarios.retries.wire import Loss, Wire
from conformance.systems.engine import EngineLate
from fakes.harnesses.conversation import Conversation, text_of

MODEL = "spoken"
SCOPES = ("given_up", "cut", "cut_clean", "cut_for_claude", "cut_clean_for_claude", "busy", "identical")
WHOLE = "I look at the header first, then at the build files, and then at all the rest."
SAME_AGAIN = {"temperature": 0.0, "seed": 7}
CANCEL_SECONDS = 8.0
"""Longer than any system takes; whether it cancels is judged elsewhere."""
LOOKS = 200
"""How often to look whether what was undelivered is marked, with a call to the proxy in between."""


@covers("RTY-013", "RTY-014", "RTY-015", "RTY-016", "RTY-017")
async def test_cuts_stalls_refusals_and_repetitions_reach_the_harness_as_what_they_are(
    scene: Scene, check: Check
) -> None:
    await scene.script("retries/behind_a_proxy", tenant="spoken")
    await together(
        _cut_for_opencode(scene, check),
        _cut_for_claude(scene, check),
        _given_up(scene, check),
        _busy(scene, check),
        _identical(scene, check),
    )


async def _cut_for_opencode(scene: Scene, check: Check) -> None:
    for name in ("cut", "cut_clean"):
        talk = await scene.opencode(_task(scene, name), session=scene.session(name), model=MODEL)
        seen = [talk.ended, len(talk.exchanges), _said(talk)]
        check.equal("RTY-013", expected=["answered", 2, [_whole(scene, name)]], seen=seen, where=name)


async def _cut_for_claude(scene: Scene, check: Check) -> None:
    for name in ("cut_for_claude", "cut_clean_for_claude"):
        talk = await scene.claude_code(_task(scene, name), session=scene.session(name), model=MODEL)
        ok = talk.ended == "error" or _said(talk) == [_whole(scene, name)]
        check("RTY-014", ok, expected="an error, or the whole answer", seen=[talk.ended, _said(talk)], where=name)


async def _given_up(scene: Scene, check: Check) -> None:
    session = scene.session("given up")
    async with Wire(scene.proxy.url, [Loss(given_up=True)]) as wire:
        agents = scene.over(wire.url)
        talk, _ = await asyncio.gather(
            agents.opencode(_task(scene, "given_up"), session=session, model=MODEL), _lose_patience(scene, wire)
        )
    if talk.ended != "answered" or len(talk.exchanges) != 2:
        raise Inconclusive(f"opencode ended {talk.ended} after {len(talk.exchanges)} calls, not 2")
    captured = await _once_told(scene, session)
    check("RTY-015", len(captured) == 1, expected="one valid record without a mark", seen=len(captured))


async def _lose_patience(scene: Scene, wire: Wire) -> None:
    """While the engine has not begun to answer."""
    await scene.engine.wait("held", run=scene.run)
    wire.give_up()
    if "cancel" in scene.proxy.capabilities:
        with suppress(EngineLate):
            await scene.engine.wait("aborted", run=scene.run, seconds=CANCEL_SECONDS)
    await scene.engine.open_gate("spoken", f"patience-{scene.run:06d}")


async def _once_told(scene: Scene, session: str) -> list[Record]:
    """The valid records that are not marked as undelivered, at last.

    That is when no call is under way at the engine, each that it has finished is recorded, and one is told; or after
    many looks, since what nobody took need not be recorded.
    """
    told: list[Record] = []
    for _ in range(LOOKS):
        calls = [row for row in await scene.ledger() if row["scope"] == SCOPES.index("given_up")]
        captured = await scene.records(session)
        told = [record for record in captured if record.get("is_valid") is not False]
        if "delivery-mark" in scene.proxy.capabilities:
            told = [record for record in told if not scene.proxy.has_delivery_mark(session, record["uuid"])]
        if len(told) == 1 and len(captured) >= _finished(calls):
            break
    return told


def _finished(calls: list[Row]) -> int:
    """How many the engine has answered or may still answer."""
    return sum(row["state"] not in ("aborted", "cut", "refused", "failed") for row in calls)


async def _busy(scene: Scene, check: Check) -> None:
    talk = await scene.opencode(_task(scene, "busy"), session=scene.session("busy"), model=MODEL)
    waits = [exchange.planned_wait for exchange in talk.exchanges]
    check.equal("RTY-017", expected=[429, [None, 7.0]], seen=[talk.exchanges[0].status, waits], where="seconds")


async def _identical(scene: Scene, check: Check) -> None:
    replies = [await scene.ask(_task(scene, "identical"), model=MODEL, **SAME_AGAIN) for _ in range(2)]
    rows = [row["request_id"] for row in await scene.ledger() if row["scope"] == SCOPES.index("identical")]
    answered = [reply.answer.request_id for reply in replies]
    ok = len(rows) == 2 and len(set(answered)) == 2
    check("RTY-016", ok, expected="two generations, two answers", seen={"engine": rows, "client": answered})


def _task(scene: Scene, name: str) -> str:
    return scene.task(scope=SCOPES.index(name))


def _whole(scene: Scene, name: str) -> str:
    return f"{scene.tag(1, SCOPES.index(name))} {WHOLE}"


def _said(talk: Conversation) -> list[str]:
    """What the harness keeps of the model's words."""
    texts = [text_of(message.get("content")) for message in talk.messages if message["role"] == "assistant"]
    return [text for text in texts if text.strip()]
