"""Codex at work, with all that it offers, sets and sends back, through the proxy."""

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.oracle import record_form, records, responses_stream, translation
from conformance.oracle.matching import match
from conformance.oracle.upstream import body_of

WORK = {
    "about": "Codex thinks, runs two commands at once, then one, and answers.",
    "sampling": "drifting",
    "scopes": {
        "main": {
            "turns": [
                {
                    "reasoning": "I look around.",
                    "text": "{tag} I look first.",
                    "calls": [
                        {"name": "exec_command", "arguments": {"cmd": "echo one"}},
                        {"name": "exec_command", "arguments": {"cmd": "echo 'größe'"}},
                    ],
                },
                {"calls": [{"name": "exec_command", "arguments": {"cmd": "echo three  # {tag}"}}]},
                {"text": "{tag} It is done."},
            ]
        }
    },
}


@covers("RSP-003", "RSP-004", "RSP-005", "RSP-014", "RSP-024", "RSP-036", "RSP-037")
async def test_codex_works_and_is_captured(scene: Scene, check: Check) -> None:
    await scene.script(WORK)
    talk = await scene.codex()
    works = [talk.ended, len(talk.exchanges)] == ["answered", 3]
    check.need("RSP-014", works, expected="Codex answers after 3 calls", seen=talk.error or len(talk.exchanges))
    for exchange in talk.exchanges:
        told = "" if exchange.response is None else exchange.response.body_text
        check.that("RSP-024", responses_stream.grammar(told), f"Codex, request {exchange.n}")
    captured, rows = await scene.records(), await scene.ledger()
    check("RSP-036", len(captured) == 3, expected="3 records", seen=len(captured))
    check.that("RSP-036", records.law(captured, rows))
    check.that("RSP-036", records.none_lost(captured, rows))
    pairs = match(captured, rows).pairs
    for record, row in pairs:
        check.that("RSP-037", record_form.tells_request(record, body_of(row).get("messages") or []))
        check.that("RSP-037", record_form.tells_answer(record, row))
    check("RSP-037", bool(pairs), expected="records that tell of the engine's calls", seen=len(pairs))
    got = body_of(rows[-1]).get("messages") if rows else None
    roles = [message.get("role") for message in translation.objects(got)]
    check("RSP-003", "developer" in roles or "system" in roles, expected="its instructions", seen=roles)
    calls = [row["message"].get("tool_calls") or [] for row in rows[:2]]
    ids = [[call["id"] for call in turn] for turn in calls]
    turns = [[each[0] for each in translation.calls(turn)] for turn in translation.assistant_turns(got)]
    check.equal("RSP-005", expected=ids, seen=turns)
    results = [each[0] for each in translation.results(translation.said(got))]
    check.equal("RSP-004", expected=[one for turn in ids for one in turn], seen=results)
