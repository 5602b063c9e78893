"""The proxy's connections to the engine."""

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene

CALLS = 20
PAUSES = 6


@covers("CNC-007", "CNC-008")
async def test_connections_are_used_again_and_given_up_when_the_engine_closed_them(scene: Scene, check: Check) -> None:
    await scene.script("one_answer")
    for _ in range(CALLS):
        await scene.ask()
    rows = await scene.ledger()
    if len(rows) < CALLS:
        raise Inconclusive(f"{len(rows)} of {CALLS} calls reached the engine")
    fresh = sum(row["earlier_on_connection"] == 0 for row in rows)
    check("CNC-007", fresh <= CALLS // 2, expected=f"{CALLS // 2} connections at most", seen=fresh)
    for n in range(PAUSES):
        await scene.engine.close_idle()
        reply = await scene.ask(stream=n % 2 == 0)
        check(
            "CNC-008", reply.answered, expected="an answer", seen=[reply.status, reply.text[:100]], where=f"pause {n}"
        )
