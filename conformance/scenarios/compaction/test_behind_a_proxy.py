"""Agents behind a proxy whose engine's window is full: told by usage, or by a refusal."""

import asyncio
from collections.abc import Sequence

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.scene import Row, Scene
from conformance.oracle import records
from conformance.scenarios.compaction import live

USABLE = 3_000
SUMMARIES = ("summary", "summary_by_claude")


@covers("CMP-008", "CMP-009", "CMP-010")
async def test_an_overlong_conversation_is_compacted_and_goes_on(scene: Scene, check: Check) -> None:
    await scene.script("compaction/overlong", tenant=live.MODEL)
    talks = await asyncio.gather(
        scene.opencode(scene.task(), session=scene.session("opencode"), model=live.MODEL),
        scene.claude_code(scene.task(scope=1), session=scene.session("claude"), model=live.MODEL),
        scene.openhands_sdk(scene.task(scope=2), session=scene.session("sdk"), model=live.MODEL, condense_at=80),
    )
    rows = await scene.ledger()
    for scope, (requirement, talk) in enumerate(zip(("CMP-008", "CMP-009", "CMP-010"), talks, strict=True)):
        seen = [[row["turn"], row["rule"] in SUMMARIES, row["state"]] for row in rows if row["scope"] == scope]
        due = [[0, False, "finished"], [1, False, "refused"], [None, True, "finished"], [1, False, "finished"]]
        ended = "finished" if talk.harness == "openhands-sdk" else "answered"
        check.equal(requirement, expected=[ended, None, due], seen=[talk.ended, talk.error, seen], where=talk.harness)


@covers("CMP-011", "CMP-012")
async def test_opencode_compacts_by_the_engines_usage_and_every_call_is_recorded(scene: Scene, check: Check) -> None:
    await scene.script("compaction/live", tenant=live.MODEL)
    names = ["opencode"] if "chat" in scene.proxy.capabilities else []
    names += ["claude"] if "messages" in scene.proxy.capabilities else []
    await asyncio.gather(*({"opencode": live.opencode, "claude": live.claude}[name](scene) for name in names))
    rows = await scene.ledger()
    if "opencode" in names:
        of_opencode = [row for row in rows if row["scope"] == live.SCOPES.index("opencode")]
        seen = [row["rule"] == "summary" for row in of_opencode[1:]]
        check.equal("CMP-011", expected=_full(of_opencode[:-1]), seen=seen, where="summaries, call by call")
        check("CMP-011", any(seen) and not all(seen), expected="one summary among the calls", seen=seen)
    for name in names:
        captured = await scene.records(scene.session(name))
        due = [row for row in rows if row["scope"] == live.SCOPES.index(name)]
        if not any(row["rule"] in SUMMARIES for row in due):
            raise Inconclusive(f"{name}: nothing was compacted")
        check.equal("CMP-012", expected=len(due), seen=len(captured), where=name)
        check.that("CMP-012", records.law(captured, due), name)
        check.that("CMP-012", records.none_lost(captured, due), name)


def _full(rows: Sequence[Row]) -> list[bool]:
    """Whether the window is full after each of these calls, by the engine's own account; a summary empties it."""
    return [row["rule"] is None and row["usage"]["total_tokens"] >= USABLE for row in rows]
