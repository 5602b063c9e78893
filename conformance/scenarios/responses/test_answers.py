"""Every shape of answer as a Responses client gets it, streamed and buffered, beside the engine's own account of it."""

from itertools import groupby
from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.oracle import records, responses_stream, same_answer
from conformance.oracle import responses_items as items
from conformance.oracle.chat_answers import function_of, json_object
from conformance.oracle.judgement import Judgement
from conformance.oracle.matching import match
from conformance.oracle.named_events import kind_of
from conformance.oracle.responses_answers import ResponsesAnswer, buffered, reassemble
from conformance.scenarios.responses.asking import TOOLS, body_of, respond
from conformance.scenarios.streams.shapes import Told, told

JSON = Any
CUT = ("cut_text", "cut_call")
NOTHING: dict[str, JSON] = {
    "about": "Answers with neither text nor call.",
    "sampling": "faithful",
    "scopes": {
        "nothing": {"turns": [{"returns": False, "attempts": [{"text": "", "returns": False}]}]},
        "a thought": {"turns": [{"returns": False, "attempts": [{"reasoning": "Hm.", "text": "", "returns": False}]}]},
    },
}


@covers(*(f"RSP-{n:03}" for n in range(20, 28)), "RSP-029", "RSP-031", "RSP-036")
async def test_an_answer_says_what_the_engine_said(scene: Scene, check: Check) -> None:
    whole, streamed = await told(
        scene,
        lambda task: respond(scene, task, tools=TOOLS),
        lambda task: respond(scene, task, tools=TOOLS, stream=True),
    )
    for one in whole:
        seen = buffered(json_object(body_of(one.got)) or {})
        _tells_the_same(check, one, seen, f"{one.shape}, buffered")
        _has_items_in_order(check, one, seen)
    for one in streamed:
        body = body_of(one.got)
        _is_well_formed(check, body, one.got.header("content-type"), one.shape)
        _tells_the_same(check, one, reassemble(body), f"{one.shape}, streamed")
    await _is_captured(scene, check, [*whole, *streamed])


def _has_items_in_order(check: Check, one: Told, seen: ResponsesAnswer) -> None:
    engine, where = one.engine, f"{one.shape}, buffered"
    due = [("reasoning", engine.reasoning), ("message", engine.content), ("function_call", engine.tool_calls)]
    kinds = [kind for kind, _ in groupby(kind_of(item) for item in seen.items)]
    check.equal("RSP-020", expected=[kind for kind, there in due if there], seen=kinds, where=where)
    check.that("RSP-020", same_answer.same_text(engine.content, seen.text, where))
    check.that("RSP-020", same_answer.same_text(engine.reasoning, seen.reasoning, f"{where}, reasoning"))
    check.equal("RSP-020", expected=len(engine.tool_calls), seen=len(seen.tool_calls), where=f"{where}, calls")


def _tells_the_same(check: Check, one: Told, seen: ResponsesAnswer, where: str) -> None:
    check.that("RSP-021", _same_calls(one, seen, where))
    due = ["incomplete", "max_output_tokens"] if one.shape in CUT else ["completed", None]
    check.equal("RSP-029", expected=due, seen=[seen.status, seen.incomplete_reason], where=where)
    check.that("RSP-031", same_answer.same_usage(one.row["usage"], _counts(seen), where))


def _same_calls(one: Told, seen: ResponsesAnswer, where: str) -> Judgement:
    """Ids, names and arguments, the arguments as text; no arguments are the empty text."""
    due = [[call.get("id"), *_function(call)] for call in one.engine.tool_calls]
    got = [[call.get("id"), *_function(call)] for call in seen.tool_calls]
    return Judgement(due == got, _short(due), _short(got), where)


def _function(call: dict[str, JSON]) -> list[JSON]:
    return [function_of(call).get("name"), function_of(call).get("arguments") or ""]


def _counts(answer: ResponsesAnswer) -> dict[str, JSON]:
    """The usage under the engine's names."""
    counts = zip(same_answer.COUNTS, ("input_tokens", "output_tokens", "total_tokens"), strict=True)
    return {engine: (answer.usage or {}).get(name) for engine, name in counts}


def _short(calls: list[list[JSON]]) -> list[list[str]]:
    return [[str(part)[:200] for part in call] for call in calls]


def _is_well_formed(check: Check, body: str, content_type: str | None, where: str) -> None:
    stream = responses_stream
    for requirement, rules in {
        "RSP-022": (stream.created_first, stream.one_response, stream.begins_empty),
        "RSP-023": (stream.numbered,),
        "RSP-024": (lambda text: stream.framing(content_type, text), stream.ends_once, stream.end_fits),
        "RSP-025": (items.items_in_turn, items.ids_stable, items.items_open_empty, items.parts_in_turn),
        "RSP-026": (items.pieces_fit, items.pieces_make_the_whole, items.parts_repeat_the_item),
        "RSP-027": (stream.output_agrees,),
    }.items():
        for rule in rules:
            check.that(requirement, rule(body), where)


async def _is_captured(scene: Scene, check: Check, answers: list[Told]) -> None:
    captured, rows = await scene.records(), [one.row for one in answers]
    check("RSP-036", len(captured) == len(rows), expected=f"{len(rows)} records", seen=len(captured))
    invalid = [records.name(record) for record in captured if record.get("is_valid") is not True]
    check("RSP-036", not invalid, expected="valid records", seen=invalid[:4] or "valid records")
    check.that("RSP-036", records.law(captured, rows))
    check.that("RSP-036", records.none_lost(captured, rows))
    ids = [[record.get("request_id"), row["request_id"]] for record, row in match(captured, rows).pairs]
    check("RSP-036", all(one == other for one, other in ids), expected="the engine's request ids", seen=ids[:4])


@covers("RSP-030")
async def test_an_answer_of_nothing_is_a_whole_response(scene: Scene, check: Check) -> None:
    await scene.script(NOTHING)
    for scope, shape in enumerate(NOTHING["scopes"]):
        whole = await respond(scene, scene.task(scope=scope))
        streamed = await respond(scene, scene.task(scope=scope), stream=True)
        seen = buffered(json_object(body_of(whole)) or {})
        odd = {kind_of(item) for item in seen.items} - {"message", "reasoning"}
        ok = [whole.status, seen.status, seen.text.strip()] == [200, "completed", ""] and not odd
        check(
            "RSP-030", ok, expected="completed, without a text", seen=body_of(whole)[:300], where=f"{shape}, buffered"
        )
        check.that("RSP-030", responses_stream.grammar(body_of(streamed)), f"{shape}, streamed")
