"""What must not be thrown away: answers that are right, however unusual they look."""

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.scenarios.validity.answers import Case, odd, play

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
STOP = "header"
FIRST_LOG_PROB = "/choices/0/logprobs/content/0/logprob"

CASES = (
    Case("VAL-001", "a plain answer"),
    Case("VAL-001", "one with log probs and alternatives", body={"logprobs": True, "top_logprobs": 2}),
    Case("VAL-001", "one whose entries name their ids", body={"logprobs": True, "return_tokens_as_token_ids": True}),
    Case("VAL-001", "one of an old engine", model="old"),
    Case("VAL-001", "one with log probs of 64 bits", model="precise"),
    Case("VAL-001", "one cut by length", body={"max_tokens": 5}),
    Case(
        "VAL-001",
        "a call with reasoning",
        body={"tools": [TOOL]},
        turn={"reasoning": "Where is it?", "calls": [{"name": "look", "arguments": {"where": "src  # {tag}"}}]},
    ),
    Case("VAL-019", "more ids than usage counts", {"name": "more_ids_than_usage"}),
    Case("VAL-019", "fewer prompt ids than usage counts", odd("/usage/prompt_tokens", 4000)),
    Case("VAL-019", "more prompt ids than usage counts", odd("/usage/prompt_tokens", 3)),
    Case("VAL-020", "a stop string", body={"stop": [STOP]}),
    Case("VAL-021", "the integer 0", odd(FIRST_LOG_PROB, 0)),
    Case("VAL-021", "float noise above 0", odd(FIRST_LOG_PROB, 0.0009)),
    Case(
        "VAL-022",
        "only an end token",
        turn={"ids": ["<|im_end|>"], "returns": False, "attempts": [{"ids": ["<|im_end|>"], "returns": False}]},
    ),
    Case("VAL-029", "prompt ids in the choice", {"name": "prompt_ids_in_choice"}),
)


@covers("VAL-001", "VAL-019", "VAL-020", "VAL-021", "VAL-022", "VAL-029")
async def test_healthy_answers_are_recorded_as_valid(scene: Scene, check: Check) -> None:
    for played in await play(scene, CASES):
        if played.case.requirement == "VAL-020" and played.row["stop_reason"] != STOP:
            raise Inconclusive(f"the stop string did not reach the engine: {played.row['stop_reason']!r}")
        seen = [(record.get("is_valid"), record.get("x_trackgauge")) for record in played.records]
        is_valid = [record.get("is_valid") for record in played.records] == [True]
        check(played.case.requirement, is_valid, expected="one valid record", seen=seen, where=played.where)
