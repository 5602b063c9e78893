"""What a record says of a call beside its tokens."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import Record, Row, Scene
from conformance.oracle import record_form
from conformance.oracle.matching import match
from fakes.harnesses.plain import Reply

JSON = Any

LOOK = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look at a file.",
        "parameters": {
            "type": "object",
            "required": ["path"],
            "properties": {"path": {"type": "string"}, "from": {"type": "integer", "default": 1}},
        },
    },
}
WAIT = {"type": "function", "function": {"name": "wait", "parameters": {"properties": {}, "type": "object"}}}


def long_history(task: str) -> list[JSON]:
    """Every shape in which the clients we know send messages."""
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"from": 1.0,  "path":"b"}'}}
    cached = {"type": "text", "text": task, "cache_control": {"type": "ephemeral"}}
    return [
        {"role": "system", "content": "You look at files."},
        {"role": "user", "content": [cached, {"type": "text", "text": ""}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "name": "look", "content": ""},
        {"role": "assistant", "content": "Nothing there. \n"},
        {"content": "Look again, Grüße 🙂\u2028", "role": "user", "name": "boss"},
    ]


def by_scope(captured: list[Record], rows: list[Row]) -> dict[int, tuple[Record, Row]]:
    return {row["scope"]: (record, row) for record, row in match(captured, rows).pairs}


def tells_engine(check: Check, record: Record, row: Row) -> None:
    """What a record takes over from the engine's answer as it stands."""
    extras = record.get(record_form.EXTRAS) or {}
    check.equal("CAP-007", expected=row["request_id"], seen=record.get("request_id"))
    check.equal("CAP-008", expected=row["model"], seen=record.get("model"))
    check.equal("CAP-009", expected=record_form.finish_reported(row), seen=record.get("finish_reason"))
    check.that("CAP-012", record_form.tells_answer(record, row))
    check.equal("CAP-037", expected=row["stop_reason"], seen=extras.get("stop_reason"))
    check.equal("CAP-037", expected=row["message"].get("reasoning"), seen=extras.get("reasoning"))


def counts(usage: Mapping[str, JSON] | None) -> dict[str, JSON]:
    return {count: (usage or {}).get(count) for count in record_form.COUNTS}


@covers(
    *("CAP-007", "CAP-008", "CAP-009", "CAP-010", "CAP-011", "CAP-012", "CAP-013"),
    *("CAP-015", "CAP-016", "CAP-017", "CAP-018", "CAP-035", "CAP-037"),
)
async def test_two_agents_find_their_talk_in_the_records(scene: Scene, check: Check) -> None:
    await scene.script("records/two_agents")
    first, second = scene.session("first"), scene.session("second")
    talks = await asyncio.gather(
        scene.openhands_nv(scene.task(scope=0), session=first),
        scene.openhands_sdk(scene.task(scope=1), session=second, model="policy-twin"),
    )
    rows = await scene.ledger()
    everything: list[Record] = []
    for session, talk in zip((first, second), talks, strict=True):
        captured = await scene.records(session)
        everything += captured
        pairs = match(captured, rows).pairs
        asked, seen = len(talk.exchanges), f"{len(pairs)} records with the engine's id"
        check("CAP-007", len(pairs) == asked, expected=f"{asked} records with the engine's id", seen=seen)
        for record, row in pairs:
            sent = json.loads(talk.exchanges[row["turn"]].request.body_text)
            tells_engine(check, record, row)
            check.equal("CAP-010", expected=counts(row["usage"]), seen=counts(record.get("token_count")))
            check.that("CAP-011", record_form.tells_request(record, sent["messages"]))
            check.that("CAP-013", record_form.tells_tools(record, sent["tools"]))
        check.that("CAP-018", record_form.rising([record for record, _ in sorted(pairs, key=_turn)]))
    check.that("CAP-015", record_form.published_form(everything))
    check.that("CAP-016", record_form.distinct_uuids(everything))
    check.that("CAP-017", record_form.one_form_of_time(everything))
    check.that("CAP-035", record_form.nothing_beside(everything))


def _turn(pair: tuple[Record, Row]) -> int:
    turn: int = pair[1]["turn"]
    return turn


@covers("CAP-009", "CAP-010", "CAP-012", "CAP-037", "CAP-007", "CAP-008")
async def test_answers_that_a_careless_record_tells_wrongly(scene: Scene, check: Check) -> None:
    await scene.script("records/oddities")
    await asyncio.gather(
        scene.ask(scene.task(scope=0), stop=["HALT"]),
        scene.ask(scene.task(scope=1), max_tokens=20),
        scene.ask(scene.task(scope=2)),
        scene.ask(scene.task(scope=3)),
        scene.ask(scene.task(scope=4)),
    )
    told = by_scope(await scene.records(), await scene.ledger())
    check.need("CAP-007", sorted(told) == [0, 1, 2, 3, 4], expected="a record for each of 5 calls", seen=sorted(told))
    for record, row in told.values():
        tells_engine(check, record, row)
    check.equal("CAP-009", expected=["stop", "length"], seen=[told[n][0].get("finish_reason") for n in (0, 1)])
    uncounted = counts(told[2][0].get("token_count"))
    check.equal("CAP-010", expected=dict.fromkeys(record_form.COUNTS, 0), seen=uncounted)


@covers("CAP-011", "CAP-013", "CAP-014")
async def test_requests_of_every_shape_are_recorded(scene: Scene, check: Check) -> None:
    await scene.script("records/oddities")
    task = scene.task(scope=5)
    named = {"type": "function", "function": {"name": "look"}}
    asked: dict[str, dict[str, JSON]] = {
        "absent": {},
        "auto": {"tool_choice": "auto"},
        "none": {"tool_choice": "none"},
        "required": {"tool_choice": "required"},
        "named": {"tool_choice": named},
    }
    messages = long_history(task)
    calls = {
        label: scene.start(messages, session=scene.session(label), tools=[LOOK, WAIT], **body)
        for label, body in asked.items()
    }
    replies: dict[str, Reply] = {label: await call for label, call in calls.items()}
    for label, reply in replies.items():
        captured = await scene.records(scene.session(label))
        check("CAP-011", reply.ok and len(captured) == 1, expected="one record", seen=[reply.status, len(captured)])
        for record in captured:
            check.that("CAP-011", record_form.tells_request(record, messages))
            check.that("CAP-013", record_form.tells_tools(record, [LOOK, WAIT]))
            choice = {"absent": "auto", "named": "function"}.get(label, label)
            check.equal("CAP-014", expected=choice, seen=record.get("tool_choice"))


@covers("CAP-036")
async def test_the_sampling_that_the_engine_was_sent(scene: Scene, check: Check) -> None:
    await scene.script("one_answer")
    routes = ["policy-model", "filled", *(["pinned"] if "pins" in scene.proxy.capabilities else [])]
    sampling: dict[str, JSON] = {
        "temperature": 0.25,
        "top_p": 0.5,
        "presence_penalty": 0.5,
        "max_tokens": 300,
        "stop": ["HALT"],
    }
    await asyncio.gather(*(scene.ask(model=route, **sampling) for route in routes))
    pairs = match(await scene.records(), await scene.ledger()).pairs
    check("CAP-036", len(pairs) == len(routes), expected=f"{len(routes)} records", seen=f"{len(pairs)} records")
    for record, row in pairs:
        check.that("CAP-036", record_form.tells_sampling(record, json.loads(row["request"]["body_text"])))


@covers("CAP-027")
async def test_the_same_answer_streamed_and_buffered(scene: Scene, check: Check) -> None:
    await scene.script("records/two_agents")
    for scope in (0, 1):
        session = scene.session(f"scope-{scope}")
        for stream in (False, True):
            await scene.ask(scene.task(scope=scope), session=session, stream=stream, tools=[LOOK, WAIT])
        captured = await scene.records(session)
        check("CAP-027", len(captured) == 2, expected="2 records", seen=f"{len(captured)} records")
        for other in captured[1:]:
            check.that("CAP-027", record_form.same_but_for_ids_and_times(captured[0], other))
