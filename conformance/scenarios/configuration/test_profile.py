"""What a right profile makes of the calls: keys, numbers, defaults, addresses, the log directory."""

import asyncio
import signal
from pathlib import Path

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.own import OwnProxies
from conformance.gauge.scene import Row, Scene
from conformance.oracle.upstream import body_of
from conformance.scenarios.configuration.profiles import NUMBERS, OWN_KEY, right, written
from conformance.systems.routing import UPSTREAM_KEY
from conformance.systems.servers import SystemNotStarted
from fakes.harnesses.plain import Call, Reply

PATIENCE_SECONDS = 12.0
"""Only a proxy that does not do what it should is waited for so long."""


@covers("CFG-001", "CFG-011", "CFG-012", "CFG-013", "CFG-017", "CFG-020")
async def test_every_route_calls_the_engine_as_its_profile_says(
    scene: Scene, own_proxy: OwnProxies, tmp_path: Path, check: Check
) -> None:
    profile = right(scene.engine.url)
    scopes = {name: {"turns": [{"text": "{tag} I have looked."}]} for name in profile["routes"]}
    for tenant in ("main", "old"):
        await scene.script({"about": "One answer a route.", "scopes": scopes}, tenant=tenant)
    log_dir = tmp_path / "not" / "there" / "yet"
    try:
        there = scene.at(await own_proxy(config=written(profile), log_dir=log_dir))
    except SystemNotStarted as error:
        check.need("CFG-017", False, expected="a log directory that is made", seen=str(error)[:300])
        raise
    calls = [there.ask(scene.task(scope=scope), model=name) for scope, name in enumerate(scopes)]
    replies = dict(zip(scopes, await asyncio.gather(*calls), strict=True))
    await there.client.close()
    rows = {list(scopes)[row["scope"]]: row for row in await scene.ledger() if row["scope"] is not None}

    plain, elsewhere = rows.get("plain"), rows.get("elsewhere")
    check("CFG-001", replies["plain"].answered, expected="an answer", seen=_seen(replies["plain"]))
    check.equal("CFG-011", expected=f"Bearer {UPSTREAM_KEY}", seen=_key(plain))
    sent = body_of(rows["numbers"]) if "numbers" in rows else {}
    check.equal("CFG-012", expected=NUMBERS, seen={key: sent[key] for key in NUMBERS if key in sent})
    check("CFG-013", _tenant(plain) == "main", expected="the address under defaults", seen=_tenant(plain))
    check("CFG-013", _tenant(elsewhere) == "old", expected="the route's own address", seen=_tenant(elsewhere))
    check.equal("CFG-013", expected=f"Bearer {OWN_KEY}", seen=_key(elsewhere))
    check("CFG-017", log_dir.is_dir(), expected="a log directory", seen="none", where="after the first record")
    check("CFG-020", replies["slashed"].answered, expected="an answer", seen=_seen(replies["slashed"]))


@covers("CFG-016", "CFG-021")
async def test_a_proxy_without_the_capture_flag_keeps_nothing_and_ends_when_told(
    scene: Scene, own_proxy: OwnProxies, tmp_path: Path, check: Check
) -> None:
    await scene.script("one_answer")
    log_dir = tmp_path / "records"
    proxy = await own_proxy(log_dir=log_dir, arguments=lambda words: [w for w in words if w != "--enable-rl-logging"])
    there = scene.at(proxy)
    replies = await asyncio.gather(*(there.ask(stream=stream) for stream in (False, True)))
    await there.client.close()
    answered = all(reply.answered for reply in replies)
    check("CFG-016", answered, expected="answers", seen=[_seen(reply) for reply in replies])
    kept = [path.name for path in log_dir.rglob("*") if path.is_file()]
    check("CFG-016", not kept, expected="no file", seen=kept[:5])

    proxy.send_signal(signal.SIGTERM)
    code = await asyncio.to_thread(proxy.process.started.wait, PATIENCE_SECONDS)
    check("CFG-021", code is not None, expected="an end", seen="it still runs")


@covers("CFG-014", "CFG-015")
async def test_a_route_without_the_engine_key_is_nobodys_capture(scene: Scene, check: Check) -> None:
    await scene.script("one_answer")
    replies = [await scene.ask(model="uncaptured", stream=stream) for stream in (False, True)]
    control = await scene.ask(session=scene.session("captured"))
    captured = await scene.records(scene.session("captured"))
    check(
        "CFG-014", control.ok and len(captured) == 1, expected="a captured neighbour", seen=f"{len(captured)} records"
    )
    kept = await scene.records()
    check("CFG-014", not kept, expected="no record", seen=kept[:1])
    for reply, row in zip(replies, await scene.ledger(), strict=False):
        check("CFG-015", reply.ok, expected="an answer", seen=_seen(reply))
        asked = set(reply.exchange.request.json_body()) | {"model"}
        more = {key: value for key, value in body_of(row).items() if key not in asked}
        check("CFG-015", not more, expected="what the client asked for", seen=more)


@covers("CFG-019")
async def test_a_call_that_the_engine_does_not_answer_ends_in_time(scene: Scene, check: Check) -> None:
    gate = f"stuck-{scene.run}"
    await scene.script("one_answer", gate=gate)
    calls = [scene.start(model="impatient", stream=stream) for stream in (False, True)]
    ended = [await _ends(call) for call in calls]
    if len(await scene.ledger()) < len(calls):
        raise Inconclusive("not every call reached the engine")
    check("CFG-019", all(ended), expected="an end after 0.5 s", seen=f"none after {PATIENCE_SECONDS:g} s")
    await scene.engine.open_gate("main", gate)


async def _ends(call: Call) -> bool:
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await call.watch.until_over()
    except TimeoutError:
        return False
    return True


def _seen(reply: Reply) -> str:
    return f"{reply.status} {reply.text[:100]}"


def _key(row: Row | None) -> str | None:
    if row is None:
        return None
    return next((value for name, value in row["request"]["headers"] if name.lower() == "authorization"), None)


def _tenant(row: Row | None) -> str | None:
    return None if row is None else str(row["tenant"])
