"""A continued call that fails costs neither a second generation nor the chain; what was not kept is not continued."""

import asyncio
from contextlib import suppress
from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.gauge.together import together
from conformance.oracle import continuity, records
from conformance.scenarios.continuity.talk import BY_COMPLETIONS, BY_PREFIX, Talk, Transport, transports
from conformance.systems.engine import EngineLate

JSON = Any

SCOPES = (
    "failing",
    "breaking",
    "refusing",
    "without_ids",
    "without_log_probs",
    "given_up",
    "in_vain",
    "reencoding",
    "unnamed",
)
IN_VAIN = Transport("spliced-in-vain", "continued", BY_PREFIX.capability)
REPORTED = [7, 8, 9]
"""What the engine of the playbook says that it was asked, once."""
NO_GENERATION = ("refused", "failed")


@covers("CON-035", "CON-036", "CON-037", "CON-038", "CON-039", "CON-040", "CON-041", "CON-042", "CON-048", "UPS-026")
async def test_trouble_of_the_engine_is_neither_hidden_nor_doubled(scene: Scene, check: Check) -> None:
    each = transports(scene)
    tenants = {BY_COMPLETIONS.tenant, *(one.tenant for one in each)}
    await asyncio.gather(*(scene.script("continuity/trouble", tenant=tenant) for tenant in tenants))
    judges = (_failing, _refusing, _invalid, _given_up, _unnamed)
    judged = [judge(scene, check, one) for one in each for judge in judges]
    if BY_PREFIX in each:
        judged.append(_in_vain(scene, check))
    if BY_COMPLETIONS in each:
        judged.append(_encoded_anew(scene, check))
    await together(*judged)


def _talk(scene: Scene, transport: Transport, name: str) -> Talk:
    return Talk(scene, transport.model, transport.tenant, SCOPES.index(name))


async def _failing(scene: Scene, check: Check, transport: Transport) -> None:
    """An engine that answers 500, or closes the connection: nobody can tell whether it had begun to generate."""
    for name in ("failing", "breaking"):
        where = f"{transport.model}, {name}"
        talk = _talk(scene, transport, name)
        await talk.ask()
        talk.say("And then?")
        reply = await talk.send()
        rows = await talk.rows()
        check.equal("CON-035", expected=[2, False], seen=[len(rows), reply.ok], where=where)
        after = await talk.asked(talk.messages())
        check.that("CON-036", continuity.continues(rows[0], after.row), where)


async def _refusing(scene: Scene, check: Check, transport: Transport) -> None:
    """An engine that refuses the continued call may well take a plain one."""
    talk = _talk(scene, transport, "refusing")
    await talk.ask()
    talk.say("And then?")
    first = (await talk.rows())[0]
    plain, reply = await talk.plain(), await talk.send()
    check("CON-037", reply.ok, expected="an answer", seen=reply.status, where=transport.model)
    answered = [row for row in await talk.rows() if row["state"] not in NO_GENERATION]
    check.equal("CON-035", expected=2 if reply.ok else 1, seen=len(answered), where=f"{transport.model}, refusing")
    for row in answered[1:]:
        check.that("CON-038", continuity.plain_or_from(first, row, plain), f"{transport.model}, refused before")


async def _invalid(scene: Scene, check: Check, transport: Transport) -> None:
    """An answer whose tokens were not told, or not all of them."""
    for name in ("without_ids", "without_log_probs"):
        where = f"{transport.model}, {name}"
        talk = _talk(scene, transport, name)
        for _ in range(2):
            await talk.ask()
            talk.say("And then?")
        plain = await talk.plain()
        await talk.ask()
        rows = await talk.rows()
        check.that("CON-039", continuity.is_plain(rows[2], plain), where)
        held = await scene.records(talk.session)
        seen = [one["is_valid"] for one in held]
        check.equal("CON-039", expected=[True, False, True], seen=seen, where=f"{where}, valid records")


async def _given_up(scene: Scene, check: Check, transport: Transport) -> None:
    """A client that leaves a continued call and asks again."""
    talk = _talk(scene, transport, "given_up")
    await talk.ask()
    talk.say("And then?")
    before = (await talk.rows())[0]
    body = {"model": talk.model, **talk.body()}
    call = scene.post("/chat/completions", body, session=talk.session)
    await scene.engine.wait("held", tenant=transport.tenant, run=scene.run)
    call.leave()
    await call
    if "cancel" in scene.proxy.capabilities:
        with suppress(EngineLate):  # whether it cancels is judged elsewhere; here it has to have heard of the end
            await scene.engine.wait("aborted", tenant=transport.tenant, run=scene.run)
    await scene.engine.open_gate(transport.tenant, f"given-up-{scene.run:06d}")
    again = await talk.asked(talk.messages())
    check.that("CON-040", continuity.continues(before, again.row), transport.model)


async def _in_vain(scene: Scene, check: Check) -> None:
    """An engine that knows nothing of required prefixes takes the key and ignores it."""
    talk = _talk(scene, IN_VAIN, "in_vain")
    for _ in range(3):
        plain = await talk.plain()
        heard = await talk.ask()
        talk.say("And then?")
        check("CON-041", bool(heard.text), expected="an answer", seen=heard.text, where=IN_VAIN.model)
        check.that("CON-041", continuity.is_plain((await talk.rows())[-1], plain), IN_VAIN.model)
    held, rows = await scene.records(talk.session), await talk.rows()
    check.that("CON-041", records.law(held, rows), IN_VAIN.model)
    check.that("UPS-026", records.thrown_away_told(held, rows, calls=3), IN_VAIN.model)
    told = [(one.get("x_trackgauge") or {}).get("injected", False) for one in held]
    check.equal("CON-041", expected=[False] * 3, seen=told, where=f"{IN_VAIN.model}, injected")


async def _encoded_anew(scene: Scene, check: Check) -> None:
    """An engine that takes a token prompt, makes text of it, and encodes that in its own way."""
    talk = _talk(scene, BY_COMPLETIONS, "reencoding")
    for _ in range(2):
        await talk.ask()
        talk.say("And then?")
    record = (await scene.records(talk.session))[-1]
    seen = record["prompt_token_ids"] if record["is_valid"] else REPORTED
    check.equal("CON-048", expected=REPORTED, seen=seen, where="the prompt of a valid record")
    told = (record.get("x_trackgauge") or {}).get("injected", False)
    check.equal("CON-048", expected=False, seen=told, where="injected")
    plain = await talk.plain()
    await talk.ask()
    rows = await talk.rows()
    told_of = records.thrown_away_told(await scene.records(talk.session), rows, calls=3)
    check.that("UPS-026", told_of, f"{BY_COMPLETIONS.model}, another prompt reported")
    row = rows[-1]
    goes_on = row["prompt_token_ids"][: len(REPORTED)] == REPORTED
    check("CON-048", goes_on or bool(continuity.is_plain(row, plain)), expected="a plain call", seen="tokens as sent")


async def _unnamed(scene: Scene, check: Check, transport: Transport) -> None:
    """Calls that belong to no session are forwarded, whatever their route does for others."""
    talk = _talk(scene, transport, "unnamed")
    body = {"model": talk.model, **talk.body()}
    first = await scene.post("/chat/completions", body, session=None)
    answer = {"role": "assistant", "content": first.text}
    body["messages"] = [*body["messages"], answer, {"role": "user", "content": "And then?"}]
    await scene.post("/chat/completions", body, session=None)
    rows = await talk.rows()
    plain = await talk.rendered(body)
    check.equal("CON-042", expected=["chat", "chat"], seen=[row["endpoint"] for row in rows], where=transport.model)
    check.that("CON-042", continuity.is_plain(rows[-1], plain), transport.model)
