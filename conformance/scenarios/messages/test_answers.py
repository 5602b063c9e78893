"""What a Messages client is told, streamed and buffered, is what the engine said."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from conformance.contract.difference import tree_difference
from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.scene import Row, Scene
from conformance.oracle import messages_blocks, messages_stream, record_form, records, same_answer
from conformance.oracle.chat_answers import ChatAnswer, function_of, json_object, of_message
from conformance.oracle.judgement import Judgement
from conformance.oracle.matching import match
from conformance.oracle.messages_answers import MessagesAnswer
from conformance.oracle.named_events import inner, kind_of, of_kind, text_in, told
from conformance.oracle.upstream import body_of as asked_of
from conformance.scenarios.messages.asking import answer_of, ask, body_of, object_of
from conformance.scenarios.messages.shapes import TOOLS, playbook
from fakes.harnesses.plain import Reply

JSON = Any

WAYS: dict[str, dict[str, JSON]] = {
    "buffered": {"stream": False},
    "streamed": {"stream": True},
    "passed on": {"stream": True, "model": "uncaptured"},
}
EMPTY = ("nothing", "only_thoughts")


@dataclass(frozen=True, slots=True)
class Heard:
    """One answer as its client got it, and the engine's row of the call."""

    shape: str
    way: str
    reply: Reply
    row: Row
    answer: MessagesAnswer
    engine: ChatAnswer

    @property
    def where(self) -> str:
        return f"{self.shape}, {self.way}"

    @property
    def body(self) -> str:
        return body_of(self.reply)

    @property
    def streamed(self) -> bool:
        return self.way != "buffered"


async def hear_all(scene: Scene) -> list[Heard]:
    """Each shape in each way; the ways one after the other, so that the rows of a scope stand in their order."""
    script = await scene.script_shapes(playbook())
    named = list(enumerate(script["scopes"]))
    replies: dict[str, list[Reply]] = {}
    for way, keys in WAYS.items():
        calls = [ask(scene, scene.task(scope=scope), tools=TOOLS, **keys) for scope, _ in named]
        replies[way] = list(await asyncio.gather(*calls))
    rows = await scene.ledger()
    heard = []
    for scope, shape in named:
        own = [row for row in rows if row["scope"] == scope]
        if len(own) != len(WAYS):
            raise Inconclusive(f"expected {len(WAYS)} generations for {shape}, seen {len(own)}")
        heard += [_heard(shape, way, replies[way][scope], row) for way, row in zip(WAYS, own, strict=True)]
    return heard


def _heard(shape: str, way: str, reply: Reply, row: Row) -> Heard:
    return Heard(shape, way, reply, row, answer_of(reply), of_message(row["message"]))


GRAMMAR: dict[str, tuple[Callable[[str], Judgement], ...]] = {
    "ANT-022": (messages_stream.starts_once, messages_stream.head_is_whole),
    "ANT-023": (messages_stream.stops_once,),
    "ANT-024": (messages_blocks.blocks_in_turn,),
    "ANT-025": (messages_blocks.deltas_fit, messages_blocks.signature_last),
    "ANT-026": (messages_blocks.blocks_open_empty,),
    "ANT-027": (messages_stream.one_reason,),
}


@covers(*GRAMMAR, "ANT-021", *(f"ANT-{n:03}" for n in range(29, 35)), "ANT-036", "ANT-037", "ANT-043", "ANT-044")
async def test_every_shape_of_answer_reaches_the_client_in_every_way(scene: Scene, check: Check) -> None:
    heard = await hear_all(scene)
    for one in heard:
        if one.streamed:
            _obeys_the_grammar(check, one)
        else:
            _has_its_blocks(check, one)
        _says_what_the_engine_said(check, one)
        _ends_as_the_engine_ended(check, one)
        _counts_as_the_engine_counts(check, one)
        if one.shape in EMPTY:
            check.that("ANT-036", _well_formed(one), one.where)
    await _are_recorded(scene, check, [one for one in heard if one.way != "passed on"])


def _obeys_the_grammar(check: Check, one: Heard) -> None:
    check("ANT-022", one.reply.status == 200, expected=200, seen=one.reply.status, where=one.where)
    for requirement, rules in GRAMMAR.items():
        for rule in rules:
            check.that(requirement, rule(one.body), one.where)
    heads = [inner(event, "message") for event in of_kind(told(one.body)[1], "message_start")]
    check.equal("ANT-027", expected=[None], seen=[head.get("stop_reason") for head in heads], where=one.where)
    pieces = {text_in(block.content, "id"): _pieces(block) for block in messages_blocks.blocks_of(one.body)}
    for call in one.engine.tool_calls:
        arguments = function_of(call).get("arguments") or ""
        ok = arguments in ("", "{}") or bool(pieces.get(call["id"]))
        check("ANT-026", ok, expected="input_json_delta events", seen=str(pieces)[:200], where=one.where)


def _has_its_blocks(check: Check, one: Heard) -> None:
    engine, answer = one.engine, one.answer
    due = ["thinking"] * bool(engine.reasoning) + ["text"] * bool(engine.content)
    due += ["tool_use"] * len(engine.tool_calls)
    check.equal("ANT-021", expected=due, seen=[kind_of(block) for block in answer.blocks], where=one.where)
    check.that("ANT-021", same_answer.same_text(engine.reasoning, answer.reasoning, f"{one.where}, thinking"))
    check.that("ANT-021", same_answer.same_order(engine.tool_calls, answer.tool_calls, one.where))


def _says_what_the_engine_said(check: Check, one: Heard) -> None:
    engine, answer = one.engine, one.answer
    check.that("ANT-029", same_answer.same_text(engine.content, answer.text, one.where))
    check.that("ANT-029", same_answer.same_order(engine.tool_calls, answer.tool_calls, one.where))
    given = {block.get("id"): block for block in of_kind(answer.blocks, "tool_use")}
    for call in engine.tool_calls:
        arguments, block = function_of(call).get("arguments"), given.get(call["id"], {})
        due = json_object(arguments) if arguments else {}
        if due is None:
            seen = [*_raw_inputs(one.body, str(call["id"])), *_texts(block.get("input"))]
            check("ANT-032", arguments in seen, expected=arguments, seen=seen, where=one.where)
            continue
        if not due:
            check.equal("ANT-031", expected={}, seen=block.get("input"), where=one.where)
            continue
        value = tree_difference(due, block.get("input"))
        check("ANT-029", value is None, expected="the engine's input", seen=str(value or "the same"), where=one.where)
        order = tree_difference(due, block.get("input"), key_order=True)
        check("ANT-030", order is None, expected="the engine's input", seen=str(order or "the same"), where=one.where)


def _raw_inputs(body: str, call_id: str) -> Iterator[str]:
    for block in messages_blocks.blocks_of(body):
        if block.content.get("id") == call_id:
            yield _pieces(block)


def _pieces(block: messages_blocks.Block) -> str:
    return "".join(text_in(delta, "partial_json") for delta in block.deltas)


def _texts(value: JSON) -> list[str]:
    """A text, or those in an object, however deep; what is neither, as JSON spaced as the engine spaces it."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [one for inside in value.values() for one in _texts(inside)]
    return [json.dumps(value, ensure_ascii=False)]


def _ends_as_the_engine_ended(check: Check, one: Heard) -> None:
    reason = one.answer.stop_reason
    if one.row["finish_reason"] == "length":
        check.equal("ANT-034", expected="max_tokens", seen=reason, where=one.where)
    elif one.engine.tool_calls:
        check.equal("ANT-033", expected="tool_use", seen=reason, where=one.where)
    else:
        check.equal("ANT-033", expected="end_turn", seen=reason, where=f"{one.where}, without a call")


def _counts_as_the_engine_counts(check: Check, one: Heard) -> None:
    due, usage = one.row["usage"], one.answer.usage or {}
    if one.shape == "cached":
        due = {"prompt_tokens": 1000, "completion_tokens": 3}
    inputs = [usage.get(key) or 0 for key in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")]
    seen = {"prompt_tokens": sum(inputs), "completion_tokens": usage.get("output_tokens")}
    check.equal("ANT-037", expected={key: due[key] for key in seen}, seen=seen, where=one.where)


def _well_formed(one: Heard) -> Judgement:
    """What a client needs of a message; the grammar of the stream is judged beside it."""
    answer = one.answer
    for key, fits in (
        ("status", one.reply.status == 200),
        ("type", one.streamed or object_of(one.reply).get("type") == "message"),
        ("content", one.streamed or isinstance(object_of(one.reply).get("content"), list)),
        ("blocks", all(map(kind_of, answer.blocks))),
        ("id", bool(answer.id)),
        ("stop_reason", answer.stop_reason in messages_stream.STOP_REASONS),
        ("usage", bool(answer.usage)),
    ):
        if not fits:
            return Judgement(False, f"a message with its {key}", one.body[:300])
    return Judgement(True, "a whole message", "a whole message")


async def _are_recorded(scene: Scene, check: Check, heard: list[Heard]) -> None:
    captured = await scene.records()
    rows = {row["seq"]: one.where for one in heard for row in [one.row]}
    pairs = match(captured, [one.row for one in heard]).pairs
    check.equal("ANT-043", expected=len(heard), seen=len(pairs), where="calls with a record")
    held = Counter(record.get("request_id") for record in captured)
    twice = [one.where for one in heard if held[one.row["request_id"]] > 1]
    check.equal("ANT-043", expected=[], seen=twice, where="calls with several records")
    for record, row in pairs:
        where = rows[row["seq"]]
        check("ANT-043", record.get("is_valid") is True, expected="valid", seen=record.get("x_trackgauge"), where=where)
        check.that("ANT-043", records.triple(record, row), where)
        asked = asked_of(row)
        check.that("ANT-044", record_form.tells_request(record, asked.get("messages") or []), where)
        check.that("ANT-044", record_form.tells_answer(record, row), where)
        check.that("ANT-044", record_form.tells_tools(record, asked.get("tools") or []), where)
