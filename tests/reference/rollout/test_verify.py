"""The verify response, from what was collected."""

import json
from typing import Any

import pytest

from conformance.contract.rebuilds import Trajectory
from conformance.contract.rollouts import Collected, Ended, Failure, Stage
from conformance.contract.verifies import GroupIdentity, MaskReason, VerifyRequest, VerifyResponse
from conformance.contract.vocabulary import Outcome
from conformance.reference.rollout.verify import verify

pytestmark = pytest.mark.unit


def trajectory(session: str = "root", **changes: Any) -> Trajectory:
    items = [
        {"type": "message", "role": "user", "content": "Fix it."},
        {
            "type": "function_call",
            "name": "bash",
            "arguments": "{}",
            "call_id": "c1",
            "prompt_token_ids": [1, 2],
            "generation_token_ids": [3, 4],
            "generation_log_probs": [-0.5, -0.25],
        },
        {"type": "function_call_output", "call_id": "c1", "output": "ok"},
    ]
    whole = Trajectory(
        session_id=session,
        outcome=Outcome.CLEAN,
        withheld=False,
        model="policy",
        items=items,
        record_uuids=["u1"],
        tokens=[1, 2, 3, 4],
        mask=[0, 0, 1, 1],
        log_probs=[None, None, -0.5, -0.25],
    )
    return whole.model_copy(update=changes)


def broken(session: str = "root", **changes: Any) -> Trajectory:
    return trajectory(
        session, **{"outcome": Outcome.PARTIAL, "withheld": True, "reason_code": "history_rewritten", **changes}
    )


def collected(**changes: Any) -> Collected:
    whole = Collected(
        id="r",
        captured=True,
        outcome=Outcome.CLEAN,
        withheld=False,
        session_id="root",
        reward=1.0,
        harness=Ended(exit_code=0),
        trajectories=[trajectory()],
    )
    return whole.model_copy(update=changes)


def answer(found: Collected, **request: Any) -> VerifyResponse:
    told = verify(VerifyRequest(id="q", op="verify", collected=found, **request))
    assert told.mask_sample is told.instance_config["mask_sample"]
    return VerifyResponse.model_validate_json(told.model_dump_json())


def test_a_clean_rollout_is_not_masked_and_brings_its_tokens() -> None:
    group = GroupIdentity(task="t", rollout=3)
    told = answer(collected(), group=group, instance_config={"repo": "x"})
    assert (told.mask_sample, told.tokens_trainable, told.reward_is_evidence) == (False, True, True)
    assert told.switchyard_trace_error is None
    assert told.group == group
    assert told.instance_config == {"repo": "x", "mask_sample": False}
    assert told.responses_create_params["input"] == trajectory().items[:1]
    assert told.response.output == trajectory().items[1:]
    assert told.subagent_trajectories == []


def test_the_metadata_is_text_only() -> None:
    metadata = answer(collected()).response.metadata
    assert metadata is not None
    assert json.loads(metadata["switchyard_record_uuids"]) == ["u1"]
    assert metadata["switchyard_session_id"] == "root"
    assert metadata["switchyard_model"] == "policy"


def test_a_compacted_rollout_keeps_its_reward_and_its_tokens_and_is_masked() -> None:
    told = answer(
        collected(outcome=Outcome.PARTIAL, withheld=True, reason="the history was rewritten", trajectories=[broken()])
    )
    assert (told.mask_sample, told.tokens_trainable, told.reward_is_evidence) == (True, False, True)
    assert told.reward == 1.0
    assert told.response.output[0]["generation_token_ids"] == [3, 4]
    assert told.switchyard_trace_error == "session root: the history was rewritten"


def test_a_partial_outcome_alone_masks_the_sample() -> None:
    assert answer(collected(outcome=Outcome.PARTIAL)).mask_sample


def test_a_broken_child_is_named_and_masked_and_takes_nobody_with_it() -> None:
    told = answer(collected(trajectories=[trajectory(), broken("child", parent="root"), trajectory("other")]))
    assert told.mask_sample is False
    assert told.subagent_trajectories is not None
    assert [each.mask_sample for each in told.subagent_trajectories] == [True, False]
    assert told.subagent_trajectories[0].output[0]["generation_token_ids"] == [3, 4]
    assert told.switchyard_trace_error == "subagent session child: partial, history_rewritten"


def test_the_tokens_of_a_child_are_delivered_withheld_where_the_root_has_none() -> None:
    root = trajectory(outcome=Outcome.FAILED, withheld=True, items=[], tokens=[], mask=[], log_probs=[])
    told = answer(
        collected(outcome=Outcome.FAILED, withheld=True, reason="no record", trajectories=[root, trajectory("child")])
    )
    assert told.response.output[0]["generation_token_ids"] == [3, 4]
    assert told.mask_sample
    assert told.response.metadata is not None
    assert told.response.metadata["switchyard_session_id"] == "child"


@pytest.mark.parametrize("changes", [{"trajectories": []}, {"outcome": Outcome.FAILED, "withheld": True}])
def test_a_trace_that_failed_is_masked_and_keeps_reward_patch_and_metrics(changes: dict[str, Any]) -> None:
    told = answer(collected(**{"patch": "diff", "metrics": {"n": 1}, "reason": "gone", **changes}))
    assert told.mask_sample
    assert (told.reward, told.patch, told.metrics) == (1.0, "diff", {"n": 1})
    assert told.switchyard_trace_error == "session root: gone"


def test_a_failed_collection_leaves_the_reward_alone() -> None:
    error = Failure(stage=Stage.COLLECT, message="unreadable")
    told = answer(collected(outcome=Outcome.FAILED, withheld=True, error=error, trajectories=[]))
    assert told.reward_is_evidence
    assert told.switchyard_trace_error == "session root: unreadable"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"harness": Ended(exit_code=None, timed_out=True)}, MaskReason.AGENT_TIMED_OUT),
        ({"evaluation": Ended(exit_code=None, timed_out=True)}, MaskReason.EVAL_TIMED_OUT),
        ({"metrics": {"agent_timed_out": True}}, MaskReason.AGENT_TIMED_OUT),
        ({"metrics": {"oom_killed": True}}, MaskReason.OOM_KILLED),
        ({"metrics": {"eval_oom_killed": True}}, MaskReason.EVAL_OOM_KILLED),
        ({"metrics": {"agent_error_kind": "max_iteration", "resolved": True}}, MaskReason.MAX_ITERATION),
        ({"metrics": {"agent_error_kind": "context_window", "resolved": True}}, MaskReason.CONTEXT_WINDOW),
        ({"error": Failure(stage=Stage.TASK, message="killed")}, MaskReason.ABORTED),
        ({"reward": None}, MaskReason.NO_REWARD),
    ],
)
def test_a_reward_that_is_no_evidence_masks_the_sample_and_not_its_tokens(
    changes: dict[str, Any], reason: MaskReason
) -> None:
    told = answer(collected(**changes))
    assert (told.mask_sample, told.tokens_trainable, told.reward_is_evidence) == (True, True, False)
    assert told.mask_reasons == [reason]
    assert told.response.output


@pytest.mark.parametrize(
    "metrics", [{"agent_error_kind": "max_iteration"}, {"agent_error_kind": []}, {"oom_killed": 0}]
)
def test_metrics_that_say_nothing_mask_nothing(metrics: dict[str, Any]) -> None:
    assert not answer(collected(metrics=metrics)).mask_sample


def test_a_rollout_that_was_not_to_be_captured_is_left_as_it_is() -> None:
    told = answer(
        collected(captured=False, outcome=None, trajectories=[], session_id=None),
        responses_create_params={"input": "as it was"},
    )
    assert told.mask_sample is False
    assert told.response.metadata is None
    assert told.subagent_trajectories is None
    assert told.responses_create_params == {"input": "as it was"}


@pytest.mark.parametrize(
    "doubtful",
    [
        {"metrics": {"oom_killed": 1}},
        {"reward": float("nan")},
        {"reward": float("inf")},
        {"harness": Ended(exit_code=-9)},
        {"harness": Ended(exit_code=137)},
        {"evaluation": Ended(exit_code=-15)},
        {"error": Failure(stage=Stage.COLLECT, message="torn")},
    ],
)
def test_what_says_that_something_broke_masks_though_all_else_looks_whole(doubtful: dict[str, Any]) -> None:
    assert answer(collected(**doubtful)).mask_sample


@pytest.mark.parametrize("code", [1, 128, 255])
def test_an_agent_that_gave_up_is_masked_as_one_that_was_killed(code: int) -> None:
    told = answer(collected(harness=Ended(exit_code=code)))
    assert told.mask_sample
    assert not told.reward_is_evidence
    assert told.tokens_trainable


def test_an_agent_that_came_to_its_own_end_is_not_masked() -> None:
    assert not answer(collected(harness=Ended(exit_code=0))).mask_sample
