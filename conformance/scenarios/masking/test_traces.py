"""What becomes of a trace, whole, broken or lost, in the response that a trainer reads."""

import json
from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.scenarios.masking.collected import (
    Answer,
    Collected,
    broken,
    collected,
    empty,
    pairs,
    sampled,
    trajectory,
    verified,
)
from conformance.systems.runner import RunnerUnderTest

GROUP = {"task": "django-11099", "rollout": 3, "attempt": 1}
CONFIG = {"repo": "django", "limits": {"turns": 100}}
PARAMS = {"input": "as it was", "tools": [], "temperature": 1.0, "parallel_tool_calls": True}


@covers("MSK-001", "MSK-006", "MSK-007", "MSK-017", "MSK-020", "MSK-021")
async def test_a_clean_rollout_is_handed_over_whole(runner: RunnerUnderTest, check: Check) -> None:
    for session in ("3f2c8be4a1d94b5f", "ses_2f9c"):
        for first in ("user", "system"):
            root = trajectory(session, turns=5, first=first)
            where = f"session {session}, {first} first"
            request = {"group": GROUP, "instance_config": CONFIG, "responses_create_params": PARAMS}
            answer = await verified(runner, check, collected(root), where, **request)
            _check_flags(check, answer, False, where)
            seen = [answer["mask_sample"], answer["switchyard_trace_error"], answer["tokens_trainable"]]
            check("MSK-007", seen == [False, None, True], expected=[False, None, True], seen=seen, where=where)
            _check_output(check, answer, root, where)
            _check_metadata(check, answer, root, where)
            check.equal("MSK-020", expected=GROUP, seen=answer["group"], where=where)
            check.equal(
                "MSK-020", expected={**CONFIG, "mask_sample": False}, seen=answer["instance_config"], where=where
            )
            params = {**PARAMS, "input": root["items"][:1], "tools": root["tools"]}
            check.equal("MSK-020", expected=params, seen=answer["responses_create_params"], where=where)


@covers("MSK-001", "MSK-002", "MSK-006", "MSK-009", "MSK-013", "MSK-018", "MSK-021")
async def test_a_rollout_rebuilt_in_part_is_delivered_and_masked(runner: RunnerUnderTest, check: Check) -> None:
    reasons = ("history_rewritten", "records_lost", "several_roots", "invalid_record", "fork")
    for session in ("3f2c8be4a1d94b5f", "ses_2f9c"):
        for reason in reasons:
            where = f"session {session}: {reason}"
            root = broken(session, reason)
            found = collected(root, reason=f"the trace breaks:\n{reason}")
            answer = await verified(runner, check, found, where)
            _check_flags(check, answer, True, where)
            check("MSK-002", answer["mask_sample"] is True, expected=True, seen=answer["mask_sample"], where=where)
            _check_output(check, answer, root, where)
            halves = [answer["tokens_trainable"], answer["reward_is_evidence"]]
            check("MSK-009", halves == [False, True], expected=[False, True], seen=halves, where=where)
            _check_error(check, answer, session, reason, where)
            _check_kept(check, answer, found, where)


@covers("MSK-003", "MSK-021")
async def test_whoever_says_withheld_is_believed(runner: RunnerUnderTest, check: Check) -> None:
    cases: dict[str, Collected] = {
        "only the rollout is withheld": collected(trajectory(), withheld=True),
        "only the rollout is partial": collected(trajectory(), outcome="partial"),
        "only the root is withheld": collected(trajectory(withheld=True), withheld=False, outcome="clean"),
        "a clean root that is withheld": collected(trajectory(withheld=True), outcome="clean"),
    }
    for where, found in cases.items():
        answer = await verified(runner, check, found, where)
        seen = [answer["mask_sample"], answer["tokens_trainable"]]
        check("MSK-003", seen == [True, False], expected=[True, False], seen=seen, where=where)


@covers("MSK-001", "MSK-004", "MSK-009", "MSK-013", "MSK-018", "MSK-021")
async def test_a_trace_that_failed_masks_the_sample_and_costs_nothing_else(
    runner: RunnerUnderTest, check: Check
) -> None:
    torn = {"stage": "collect", "message": "PermissionError: records"}
    cases: dict[str, Collected] = {
        "no trajectory": collected(reason="no session was captured", session_id="s-1"),
        "no trajectory, and clean by mistake": collected(
            outcome="clean", withheld=False, reason="odd", session_id="s-1"
        ),
        "no valid record": collected(empty("s-1"), reason="no valid record"),
        "a failed collection": collected(error=torn, reason="collect: torn", session_id="s-1"),
    }
    for where, found in cases.items():
        answer = await verified(runner, check, found, where)
        _check_flags(check, answer, True, where)
        seen = [answer["mask_sample"], answer["tokens_trainable"]]
        check("MSK-004", seen == [True, False], expected=[True, False], seen=seen, where=where)
        check("MSK-009", answer["reward_is_evidence"], expected="the reward stays evidence", seen=False, where=where)
        _check_error(check, answer, "s-1", found["reason"].split()[-1], where)
        _check_kept(check, answer, found, where)


@covers("MSK-005", "MSK-016", "MSK-021")
async def test_certified_tokens_are_delivered_whoever_sampled_them(runner: RunnerUnderTest, check: Check) -> None:
    cases: dict[str, Collected] = {
        "a partial root": collected(broken()),
        "a root without records": collected(empty(), trajectory("child", parent="root")),
        "a root without records, a broken child": collected(empty(), broken("child", parent="root")),
        "a failed rollout with a child": collected(empty(), empty("a"), trajectory("b", turns=4), withheld=True),
        "an empty root taken for clean": collected(empty(), trajectory("a"), withheld=False, outcome="clean"),
    }
    for where, found in cases.items():
        answer = await verified(runner, check, found, where)
        delivered = pairs(answer["response"]["output"])
        of_whom = [each["session_id"] for each in found["trajectories"] if delivered == sampled(each)]
        check("MSK-005", bool(delivered and of_whom), expected="the tokens of one", seen=delivered, where=where)
        if of_whom != ["root"]:
            seen = [answer["mask_sample"], answer["tokens_trainable"]]
            check("MSK-016", seen == [True, False], expected=[True, False], seen=seen, where=where)


@covers("MSK-001", "MSK-014", "MSK-015", "MSK-021")
async def test_a_broken_subagent_is_masked_alone(runner: RunnerUnderTest, check: Check) -> None:
    root = trajectory()
    whole, half, gone = trajectory("c-1", parent="root"), broken("c-2", parent="root"), empty("c-3")
    quiet = trajectory("c-4", parent="c-1", withheld=True, reason_code="ambiguous_main")
    found = collected(root, whole, half, gone, quiet)
    where = "a root with four subagents"
    answer = await verified(runner, check, found, where)
    _check_flags(check, answer, False, where)
    told = {each["session_id"]: each for each in answer["subagent_trajectories"] or []}
    for each in (whole, half, gone, quiet):
        name = each["session_id"]
        masked = told.get(name, {}).get("mask_sample")
        trusted = each is whole
        if not trusted:
            check("MSK-014", masked in (True, None), expected="masked", seen=masked, where=name)
        seen = None if name not in told else pairs(told[name]["output"])
        check("MSK-015", seen == sampled(each), expected=sampled(each), seen=seen, where=name)
        if trusted:
            check("MSK-015", masked is False, expected="not masked", seen=masked, where=name)
        else:
            error = answer["switchyard_trace_error"] or ""
            check("MSK-015", name in error, expected=f"an error that names {name}", seen=error, where=name)


@covers("MSK-017", "MSK-019", "MSK-021")
async def test_a_rollout_that_was_not_to_be_captured_is_left_as_it_is(runner: RunnerUnderTest, check: Check) -> None:
    found = collected(captured=False, outcome=None, withheld=False, reason=None)
    answer = await verified(runner, check, found, "no capture", responses_create_params=PARAMS)
    seen = [answer["mask_sample"], answer["switchyard_trace_error"], answer["responses_create_params"]]
    check.equal("MSK-019", expected=[False, None, PARAMS], seen=seen)
    metadata = answer["response"]["metadata"]
    check("MSK-017", metadata is None, expected=None, seen=metadata, where="nothing was captured")


def _check_flags(check: Check, answer: Answer, masked: bool, where: str) -> None:
    flags = [answer["mask_sample"], answer["instance_config"].get("mask_sample")]
    told = f"{'masked' if masked else 'not masked'}, in both places"
    check("MSK-001", flags[0] is flags[1], expected=told, seen=flags, where=where)


def _check_output(check: Check, answer: Answer, root: dict[str, Any], where: str) -> None:
    output = answer["response"]["output"]
    check.equal("MSK-006", expected=sampled(root), seen=pairs(output), where=where)
    bearing = [item.get("type") for item in output if item.get("prompt_token_ids") or item.get("generation_log_probs")]
    expected = [item["type"] for item in root["items"] if "generation_token_ids" in item]
    check.equal("MSK-006", expected=expected, seen=bearing, where=f"{where}: items with token ids")
    prompts = [item["prompt_token_ids"] for item in root["items"] if "prompt_token_ids" in item]
    seen = [item["prompt_token_ids"] for item in output if "prompt_token_ids" in item]
    check.equal("MSK-006", expected=prompts, seen=seen, where=f"{where}: prompts")


def _check_metadata(check: Check, answer: Answer, root: dict[str, Any], where: str) -> None:
    metadata = answer["response"]["metadata"] or {}
    expected = {
        "switchyard_source": "switchyard",
        "switchyard_session_id": root["session_id"],
        "switchyard_record_uuids": root["record_uuids"],
        "switchyard_model": root["model"],
    }
    seen = {key: metadata.get(key) for key in expected}
    try:
        seen["switchyard_record_uuids"] = json.loads(str(seen["switchyard_record_uuids"]))
    except ValueError:
        check("MSK-017", False, expected="a JSON list", seen=seen["switchyard_record_uuids"], where=where)
    check.equal("MSK-017", expected=expected, seen=seen, where=where)


def _check_error(check: Check, answer: Answer, session: str, reason: str, where: str) -> None:
    error = answer["switchyard_trace_error"]
    good = isinstance(error, str) and session in error and reason in error and "\n" not in error
    check("MSK-013", good, expected=f"one line with {session} and {reason}", seen=error, where=where)


def _check_kept(check: Check, answer: Answer, found: Collected, where: str) -> None:
    kept = ("reward", "patch", "metrics")
    expected = {key: found[key] for key in kept}
    check.equal("MSK-018", expected=expected, seen={key: answer[key] for key in kept}, where=where)
