"""The engine is asked what the client asked: the same conversation, keys, numbers and nulls, in the same order."""

import asyncio
from dataclasses import replace
from typing import Any

from conformance.gauge.check import Check, Unmet
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.oracle import upstream
from conformance.oracle.judgement import Judgement
from conformance.oracle.upstream import body_of, leaves_and_objects
from conformance.scenarios.upstream.asking import Ask, Asked, ask_all
from conformance.systems.routing import SERVED

JSON = Any

CALL = {
    "id": "functions.look:1",
    "type": "function",
    "function": {"name": "look", "arguments": '{"path":  "b", "from": 1.0}'},
}
HISTORY: tuple[dict[str, JSON], ...] = (
    {"role": "system", "content": [{"type": "text", "text": "You look at files."}, {"type": "text", "text": " Well."}]},
    {"role": "user", "content": "Grüße 🙂\u2028 <|im_end|>", "name": "boss"},
    {"role": "assistant", "content": "I look.", "reasoning_content": "Hm.", "tool_calls": [CALL, {**CALL, "id": "2"}]},
    {"role": "tool", "tool_call_id": "functions.look:1", "name": "look", "content": ""},
    {"role": "tool", "tool_call_id": "2", "content": " \n"},
    {"role": "assistant", "content": "Nothing there. \n"},
    {"role": "user", "content": "Again."},
    {"role": "user", "content": "Again."},
)
LOOK = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look at a file.",
        "parameters": {
            "type": "object",
            "required": ["path", "from"],
            "properties": {"zone": {"type": "string"}, "path": {"type": "string"}, "from": {"type": "integer"}},
            "additionalProperties": False,
        },
    },
}
WAIT = {"type": "function", "function": {"parameters": {"properties": {}, "type": "object"}, "name": "wait"}}

UNKNOWN: dict[str, JSON] = {
    "chat_template_kwargs": {"enable_thinking": True, "tone": "dry"},
    "top_k": 20,
    "min_p": 0.05,
    "vllm_xargs": {"probe": ["a", {"deep": True}]},
    "x_of_tomorrow": "kept",
    "skip_special_tokens": False,
    "cache_salt": "salt",
    "structured_outputs_hint": [],
}
MARKED = {"role": "user", "content": "Look.", "cache_control": {"type": "ephemeral"}, "x_mark": [1, "two"]}

NUMBERS: dict[str, JSON] = {
    "temperature": 1.0,
    "top_p": 0.30000000000000004,
    "seed": 9007199254740993,
    "top_k": -1,
    "x_numbers": [0, 0.0, -0.0, 1e-7, 5e-324, 1.7976931348623157e308, 100.0],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "wait",
                "parameters": {"properties": {"seconds": {"type": "number", "minimum": 0.0, "maximum": 2**62}}},
            },
        }
    ],
}
HUGE: dict[str, JSON] = {"x_numbers": [2**64 + 1, -(2**70)]}
"""Beyond the integers of many a JSON reader."""
NULLS: dict[str, JSON] = {"seed": None, "aws_region_name": None, "max_completion_tokens": None, "user": None}
NULL_MESSAGES = (
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": CALL["id"], "content": "b", "name": None},
)
SURROGATE = "half an emoji: \ud83d, and the other: \ude00."


@covers("UPS-001", "UPS-002", "UPS-004", "UPS-005", "UPS-007", "UPS-008", "UPS-009", "UPS-024")
async def test_real_agents_reach_the_engine_as_they_spoke(scene: Scene, check: Check) -> None:
    scopes = {"first": _three_turns("execute_bash"), "second": _three_turns("terminal")}
    await scene.script({"about": "Two agents at work.", "scopes": scopes})
    talks = await asyncio.gather(
        scene.openhands_nv(scene.task(scope=0), session=scene.session("first")),
        scene.openhands_sdk(scene.task(scope=1), session=scene.session("second"), model="policy-twin", stream=True),
    )
    rows = await scene.ledger()
    refused = await scene.engine.wait("refused", tenant="main", count=0, seconds=0)
    models = [body_of(row).get("model") for row in rows or refused[-1:]]
    check("UPS-001", bool(rows) and set(models) == {SERVED}, expected=SERVED, seen=models)
    if not rows:
        raise Unmet("no call of an agent reached the engine")
    for scope, talk in enumerate(talks):
        asked = [row for row in rows if row["scope"] == scope]
        seen = f"{len(talk.exchanges)} calls, {len(asked)} generations"
        whole = len(asked) == len(talk.exchanges) == 3
        check.need("UPS-024", whole, expected="3 calls, 3 generations", seen=seen, where=talk.harness)
        for exchange, row in zip(talk.exchanges, sorted(asked, key=_turn), strict=True):
            where = f"{talk.harness} turn {row['turn']}"
            sent, got = exchange.request.json_body(), body_of(row)
            check.that("UPS-002", upstream.same_conversation(sent, got, where))
            check.that("UPS-004", upstream.key_order_kept(sent, got, where))
            if scope == 0:
                check.that("UPS-005", upstream.numbers_kept(sent, got, where))
                check.that("UPS-007", upstream.nulls_kept(sent, got, where))
            check.that("UPS-008", upstream.asks_for_tokens(got, where))
            check.that("UPS-009", upstream.counts_top_log_probs(got, where))


@covers("UPS-002", "UPS-003", "UPS-004", "UPS-005", "UPS-006", "UPS-007")
async def test_nothing_in_a_body_is_lost_or_put_into_another_form(scene: Scene, check: Check) -> None:
    captured = {
        "history": Ask({"tools": [LOOK, WAIT], "tool_choice": "auto"}, messages=HISTORY),
        "unknown": Ask(UNKNOWN, messages=(MARKED,)),
        "numbers": Ask(NUMBERS),
        "numbers, huge": Ask(HUGE),
        "nulls": Ask(NULLS, messages=NULL_MESSAGES),
        "surrogate": Ask(messages=({"role": "tool", "tool_call_id": "1", "content": SURROGATE},)),
        "surrogate of a stream": Ask({"x_note": SURROGATE}, stream=True),
    }
    plain = {f"{label}, no session": replace(ask, session=False) for label, ask in captured.items()}
    for label, one in (await ask_all(scene, {**captured, **plain})).items():
        if label.startswith("surrogate"):
            check.that("UPS-006", _survives(one))
            continue
        if one.got:
            check.that("UPS-004", upstream.key_order_kept(one.sent, one.got, label))
        if label == "history":
            check.that("UPS-002", upstream.same_conversation(one.sent, one.got, label))
        elif label.startswith("unknown"):
            paths = [*((key,) for key in UNKNOWN), *(("messages", 0, key) for key in MARKED)]
            check.that("UPS-003", upstream.values_kept(one.sent, one.got, paths, label))
        elif label.startswith("numbers"):
            check.that("UPS-005", upstream.numbers_arrive(one.sent, one.got, label))
            check.that("UPS-005", upstream.numbers_kept(one.sent, one.got, label))
        elif label.startswith("nulls"):
            check.that("UPS-007", upstream.nulls_kept(one.sent, one.got, label))


def _three_turns(tool: str) -> dict[str, JSON]:
    looks = [{"name": tool, "arguments": {"command": "ls -la  # {tag}", "security_risk": "LOW"}}]
    ends = [{"name": "finish", "arguments": {"message": "{tag} The header was missing."}}]
    return {"turns": [{"calls": looks}, {"calls": looks}, {"calls": ends}]}


def _turn(row: dict[str, JSON]) -> int:
    turn: int = row["turn"]
    return turn


def _survives(asked: Asked) -> Judgement:
    """The texts with a surrogate reach the engine as they were, or the call is refused before it is asked."""
    if not asked.rows:
        status = asked.reply.status
        return Judgement(status == 400, "400, or the same text", f"{status}, not sent", asked.label)
    texts = [(path, text) for path, text in leaves_and_objects(asked.sent) if text == SURROGATE]
    return upstream.values_kept(asked.sent, asked.got, [path for path, _ in texts], asked.label)
