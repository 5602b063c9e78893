"""When a reward says something of the policy, and when it does not."""

from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.scenarios.masking.collected import Collected, collected, pairs, sampled, trajectory, verified
from conformance.systems.runner import RunnerUnderTest

JSON = Any


async def _no_evidence(runner: RunnerUnderTest, check: Check, requirement: str, cases: dict[str, Collected]) -> None:
    """The sample is masked for its reward, and its tokens are none the worse."""
    for where, found in cases.items():
        answer = await verified(runner, check, found, where)
        seen = [answer["mask_sample"], answer["reward_is_evidence"]]
        check(requirement, seen == [True, False], expected="masked, no evidence", seen=seen, where=where)
        check.equal("MSK-008", expected=found["reward"], seen=answer["reward"], where=where)
        kept = [answer["tokens_trainable"], pairs(answer["response"]["output"])]
        check.equal("MSK-009", expected=[True, sampled(found["trajectories"][0])], seen=kept, where=where)


@covers("MSK-008", "MSK-009", "MSK-010", "MSK-021")
async def test_time_and_memory_that_ran_out_are_no_evidence(runner: RunnerUnderTest, check: Check) -> None:
    late = {"exit_code": None, "timed_out": True, "log": ""}
    cases = {
        "the harness was ended by its time-out": collected(trajectory(), harness=late, reward=0.0),
        "the evaluation was ended by its time-out": collected(trajectory(), evaluation=late, reward=1.0),
    }
    for flag in ("agent_timed_out", "eval_timed_out", "oom_killed", "eval_oom_killed"):
        cases[flag] = collected(trajectory(), metrics={flag: True, "resolved": False}, reward=0.0)
    await _no_evidence(runner, check, "MSK-010", cases)


@covers("MSK-008", "MSK-009", "MSK-011", "MSK-021")
async def test_a_rollout_that_broke_off_is_no_evidence(runner: RunnerUnderTest, check: Check) -> None:
    cases = {
        f"it failed at {stage}": collected(trajectory(), error={"stage": stage, "message": "killed"}, reward=0.0)
        for stage in ("spawn", "ready", "harness", "task")
    }
    for who in ("harness", "evaluation"):
        for code in (-9, 128 + 9, 128 + 15):
            killed = {who: {"exit_code": code, "timed_out": False, "log": ""}}
            cases[f"{who} ended by a signal, exit code {code}"] = collected(trajectory(), reward=0.0, **killed)
    await _no_evidence(runner, check, "MSK-011", cases)


@covers("MSK-008", "MSK-009", "MSK-021", "MSK-023")
async def test_an_agent_that_gave_up_is_no_evidence(runner: RunnerUnderTest, check: Check) -> None:
    cases = {
        f"exit code {code}, reward {reward}": collected(trajectory(), harness=left_with(code), reward=reward)
        for code, reward in ((1, 0.0), (1, 1.0), (78, 0.0))
    }
    told = {"agent_error_kind": "other", "resolved": False}
    cases["an error that is no limit of its own"] = collected(trajectory(), metrics=told, reward=0.0)
    await _no_evidence(runner, check, "MSK-023", cases)


def left_with(code: int) -> JSON:
    """A harness that ended by itself."""
    return {"exit_code": code, "timed_out": False, "log": "harness.log"}


@covers("MSK-008", "MSK-009", "MSK-012", "MSK-021")
async def test_a_success_at_the_limit_is_no_evidence(runner: RunnerUnderTest, check: Check) -> None:
    cases = {
        kind: collected(trajectory(), metrics={"agent_error_kind": kind, "resolved": True})
        for kind in ("max_iteration", "context_window")
    }
    await _no_evidence(runner, check, "MSK-012", cases)


@covers("MSK-007", "MSK-008", "MSK-021")
async def test_a_reward_is_only_what_was_said(runner: RunnerUnderTest, check: Check) -> None:
    for reward in (None, 0.0, 1.0, -0.5, 0.1 + 0.2):
        where = f"reward {reward}"
        answer = await verified(runner, check, collected(trajectory(), reward=reward), where)
        check.equal("MSK-008", expected=reward, seen=answer["reward"], where=where)
        flags = [answer["mask_sample"], answer["reward_is_evidence"]]
        if reward is None:
            check("MSK-008", flags == [True, False], expected="masked, no evidence", seen=flags, where=where)
        else:
            check("MSK-007", flags == [False, True], expected="not masked, evidence", seen=flags, where=where)


@covers("MSK-007", "MSK-021")
async def test_errors_that_say_nothing_of_the_reward_mask_nothing(runner: RunnerUnderTest, check: Check) -> None:
    cases = {
        "not solved at the limit of turns": {"agent_error_kind": "max_iteration", "resolved": False},
        "stuck in a loop": {"agent_error_kind": "stuck_in_loop", "resolved": True},
        "metrics of other forms": {"oom_killed": False, "agent_error_kind": None, "eval_timed_out": 0},
    }
    for where, metrics in cases.items():
        answer = await verified(runner, check, collected(trajectory(), metrics=metrics), where)
        check("MSK-007", answer["mask_sample"] is False, expected=False, seen=answer["mask_reasons"], where=where)
    limit = {"agent_error_kind": "max_iteration", "resolved": False}
    answer = await verified(runner, check, collected(trajectory(), harness=left_with(1), metrics=limit), "exit code 1")
    where = "an exit code of 1 at the limit of turns"
    check("MSK-007", answer["mask_sample"] is False, expected=False, seen=answer["mask_reasons"], where=where)
