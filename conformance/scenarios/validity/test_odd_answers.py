"""Answers whose tokens must not be trained: marked, kept, and of no concern to the client."""

import json
import math
from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.oracle import records
from conformance.oracle.chat_answers import buffered, json_object, reassemble
from conformance.scenarios.validity.answers import Case, Played, odd, play

JSON = Any

IDS, LOG_PROBS = "generation_token_ids", "generation_log_probs"
ONLY_IDS, ONLY_LOG_PROBS = frozenset({IDS}), frozenset({LOG_PROBS})

A_PROMPT_ID = "/prompt_token_ids/0"
AN_ID = "/choices/0/token_ids/0"
ENTRIES = "/choices/0/logprobs/content"
A_LOG_PROB = f"{ENTRIES}/0/logprob"

CASES = (
    Case("VAL-002", "no choice", {"name": "no_choices"}, gives=frozenset()),
    Case("VAL-003", "two choices", {"name": "two_choices"}),
    Case("VAL-004", "no id", {"name": "no_request_id"}),
    *(Case("VAL-004", f"the id {value!r}", odd("/id", value)) for value in (None, "", 5, ["chatcmpl-1"])),
    Case("VAL-005", "no model", {"name": "no_model"}),
    *(Case("VAL-005", f"the model {value!r}", odd("/model", value)) for value in (None, "", 5, {"id": "policy"})),
    Case("VAL-006", "no prompt ids", {"name": "no_prompt_ids"}),
    Case("VAL-006", "null for prompt ids", odd("/prompt_token_ids", None)),
    Case("VAL-006", "empty prompt ids", {"name": "empty_prompt_ids"}),
    *(Case("VAL-007", f"the prompt id {value!r}", odd(A_PROMPT_ID, value)) for value in (True, -1, "5", 5.0, None)),
    Case("VAL-008", "no generation ids", {"name": "no_token_ids"}, gives=ONLY_LOG_PROBS),
    Case("VAL-008", "null for generation ids", {"name": "null_token_ids"}, gives=ONLY_LOG_PROBS),
    Case("VAL-008", "empty generation ids", {"name": "empty_ids"}, gives=ONLY_LOG_PROBS),
    Case("VAL-009", "text for ids", {"name": "string_ids"}),
    Case("VAL-009", "the id True", {"name": "bool_ids"}),
    Case("VAL-009", "the id -1", {"name": "negative_id"}),
    *(Case("VAL-009", f"the id {value!r}", odd(AN_ID, value)) for value in (5.0, None, [5])),
    Case("VAL-010", "no log probs", {"name": "no_logprobs"}, gives=ONLY_IDS),
    Case("VAL-010", "null for log prob entries", odd(ENTRIES, None), gives=ONLY_IDS),
    Case("VAL-010", "no log prob entries", odd(ENTRIES, []), gives=ONLY_IDS),
    Case("VAL-011", "a null log prob", {"name": "null_logprob_entry"}),
    Case("VAL-011", "a null entry", odd(f"{ENTRIES}/0", None)),
    *(Case("VAL-011", f"the log prob {value!r}", odd(A_LOG_PROB, value)) for value in (True, False, "-0.5")),
    Case("VAL-012", "the log prob NaN", {"name": "nan_logprob"}, body={"logprobs": True}),
    Case("VAL-012", "the log prob -Infinity", {"name": "nan_logprob", "raw": "-Infinity"}),
    Case("VAL-012", "the log prob Infinity", {"name": "nan_logprob", "raw": "Infinity"}),
    Case("VAL-013", "the log prob 0.5", {"name": "positive_logprob"}),
    *(Case("VAL-013", f"the log prob {value}", odd(A_LOG_PROB, value)) for value in (0.0011, 1)),
    Case("VAL-014", "the log prob -9999.0", {"name": "sentinel_logprob"}),
    Case("VAL-014", "the log prob -9999", odd(A_LOG_PROB, -9999)),
    Case("VAL-015", "a log prob too few", {"name": "short_logprobs"}),
    Case("VAL-015", "a log prob too many", {"name": "lost_id"}),
    Case("VAL-016", "the completion dialect's log probs", {"name": "completion_logprobs"}),
    Case("VAL-016", "a bare list of log probs", odd("/choices/0/logprobs", [-0.5, -0.25]), gives=ONLY_IDS),
    Case("VAL-017", "an entry of another id", {"name": "entry_ids_disagree"}),
    Case("VAL-017", "an entry with another token_id", {"name": "entry_ids_disagree", "raw": "token_id"}),
    Case("VAL-018", "an id less than usage counts", {"name": "fewer_ids_than_usage"}),
    Case("VAL-018", "far fewer ids than usage counts", odd("/usage/completion_tokens", 4000)),
)


@covers(*(f"VAL-{number:03}" for number in range(2, 19)), "VAL-025", "VAL-026", "VAL-027", "VAL-028")
async def test_odd_answers_are_kept_and_marked_and_reach_the_client(scene: Scene, check: Check) -> None:
    all_played = await play(scene, CASES)
    if not any(played.records for played in all_played):
        check.nothing("VAL-027", "record")
    for played in all_played:
        where = played.where
        marks = [record.get("is_valid") for record in played.records]
        seen = played.unreadable or f"{len(marks)} records"
        check("VAL-025", len(marks) == 1, expected="one record", seen=seen, where=where)
        if played.case.requirement != "VAL-002":
            check("VAL-026", _reached(played), expected=_served(played), seen=_got(played), where=where)
        if not marks:
            check.nothing(played.case.requirement, "record")
            continue
        check(played.case.requirement, not played.says_valid, expected="is_valid: false", seen=marks, where=where)
        for made_up in _made_up(played):
            check("VAL-027", made_up is None, expected="what the engine gave", seen=made_up, where=where)
        if marks == [False]:
            reason = (played.record.get("x_trackgauge") or {}).get("invalid_reason")
            check("VAL-028", _is_text(reason), expected="an invalid_reason", seen=reason, where=where)


@covers("VAL-018")
async def test_ids_that_a_parser_swallowed_are_missed(scene: Scene, check: Check) -> None:
    """Only a proxy that captures from the engine's stream gets to see this; for others the answer is whole."""
    await scene.script("tool_loop", fault={"name": "dropped_hidden_chunks"})
    tool = {"type": "function", "function": {"name": "execute_bash", "parameters": {"type": "object"}}}
    await scene.ask(stream=True, tools=[tool])
    check.that("VAL-018", records.law(await scene.records(), await scene.ledger()))


def _reached(played: Played) -> bool:
    return played.reply.ended == "complete" and played.reply.status == 200 and _got(played) == _served(played)


def _served(played: Played) -> tuple[JSON, ...]:
    return played.row["message"]["content"], played.row["finish_reason"]


def _got(played: Played) -> tuple[JSON, ...]:
    """Text and finish reason, as a strict reader gets them, which knows no NaN."""
    response = played.reply.exchange.response
    body = "" if response is None else response.body_text
    answer = reassemble(body) if played.stream else buffered(json_object(body) or {})
    return answer.content, answer.finish_reason


def _made_up(played: Played) -> list[str | None]:
    """For each list of an invalid record: the first value that could pass for sampled and that was never given."""
    return [_stray(played, IDS, _passes_for_id), _stray(played, LOG_PROBS, _passes_for_log_prob)]


def _stray(played: Played, name: str, passes: Any) -> str | None:
    given = played.row[name] if name in played.case.gives else []
    seen = played.record.get(name)
    for place, value in enumerate(seen if isinstance(seen, list) else []):
        if passes(value) and (
            place >= len(given) or not records.same_list(given[place : place + 1], [value], "", float32=True)
        ):
            return f"{name}[{place}] = {json.dumps(value)}"
    return None


def _passes_for_id(value: JSON) -> bool:
    return type(value) is int and value >= 0


def _passes_for_log_prob(value: JSON) -> bool:
    if type(value) not in (int, float) or not math.isfinite(value):
        return False
    return bool(value <= records.LARGEST_LOG_PROB and value != records.NO_ENTRY)


def _is_text(value: JSON) -> bool:
    return isinstance(value, str) and bool(value)
