"""A group, as the small trainer takes it."""

from typing import Any

import pytest

from conformance.contract.verifies import GroupAnswer, GroupRequest, Member
from conformance.reference.rollout.trainer import judge

pytestmark = pytest.mark.unit

Response = dict[str, Any]


def item(prompt: list[int], generation: list[int]) -> dict[str, Any]:
    return {
        "prompt_token_ids": prompt,
        "generation_token_ids": generation,
        "generation_log_probs": [-0.5] * len(generation),
    }


def response(reward: Any = 1.0, *, masked: Any = False, inner: Any = None, **changes: Any) -> Response:
    return {
        "reward": reward,
        "mask_sample": masked,
        "instance_config": {"mask_sample": masked if inner is None else inner},
        "response": {"output": [item([1, 2], [3]), {"type": "x"}, item([1, 2, 3, 4], [5, 6])]},
        **changes,
    }


def answer(*responses: Response | None, **changes: Any) -> GroupAnswer:
    members = [Member(rollout=number, response=each) for number, each in enumerate(responses)]
    whole = {"size": len(responses), "members": members, **changes}
    return judge(GroupRequest(id="g", op="group", task="t", **whole))


def test_a_whole_group_trains_all_its_members() -> None:
    told = answer(response(1.0), response(0.0))
    assert told.baseline == 0.5
    assert [each.advantage for each in told.members] == [0.5, -0.5]
    sequence = told.members[0].sequences[0]
    assert sequence.tokens == [1, 2, 3, 4, 5, 6]
    assert sequence.mask == [0, 0, 1, 0, 1, 1]
    assert sequence.log_probs == [None, None, -0.5, None, -0.5, -0.5]
    assert told.trained_tokens == 6


def test_a_group_of_16_with_one_masked_member_keeps_15() -> None:
    told = answer(*[response(1.0)] * 15, response(0.0, masked=True))
    assert [each.votes for each in told.members] == [True] * 15 + [False]
    assert told.baseline == 1.0
    assert told.retries == []
    assert told.members[15].sequences == []


@pytest.mark.parametrize(
    "bad",
    [
        response(masked=True),
        response(masked=False, inner=True),
        response(masked=True, inner=False),
        response(masked=None),
        response(masked=0),
        response(None),
        response(True),
        response(float("nan")),
        response(response={"output": []}),
        response(response=None),
        response(response={"output": [item([1], [2]), item([9, 9, 9], [3])]}),
        response(group={"task": "other", "rollout": 2}),
        response(group={"task": "t", "rollout": 1}),
        response(10**400),
        response(1e308),
        response(response={"output": [{**item([1], [2]), "generation_log_probs": [float("nan")]}]}),
        response(response={"output": [{**item([1], [2]), "generation_token_ids": 5}]}),
        response(response={"output": [{**item([1], [2]), "prompt_token_ids": 5}]}),
        response(response={"output": [{**item([1], [2]), "generation_token_ids": [True]}]}),
        response(response={"output": [item([], [2])]}),
        {},
    ],
)
def test_a_member_that_may_not_count_counts_for_nothing(bad: Response) -> None:
    told = answer(response(1.0), response(0.0), bad)
    assert (told.members[2].votes, told.members[2].advantage, told.members[2].sequences) == (False, None, [])
    assert told.members[2].why
    assert told.baseline == 0.5
    assert told.retries == []


def test_a_member_that_did_not_come_back_is_asked_for_again_by_itself_and_only_once() -> None:
    assert answer(response(), None, response()).retries == [1]
    tried = [Member(rollout=1, error="died"), Member(rollout=1, attempt=1, error="died")]
    assert answer(response(), None, size=2, members=tried).retries == [0]


def test_a_second_answer_of_a_rollout_does_not_count_twice() -> None:
    members = [Member(rollout=0, response=response(1.0)), Member(rollout=1, response=response(0.0))]
    late = [Member(rollout=0, attempt=1, response=response(0.0))]
    told = answer(size=2, members=[*late, *members])
    assert told.baseline == 0.5
    assert told.members[0].advantage == 0.5


def test_one_vote_is_no_baseline_and_no_reason_to_try_again() -> None:
    told = answer(response(), response(masked=True))
    assert told.baseline is None
    assert told.trained_tokens == 0
    assert told.retries == []


def test_a_masked_subagent_is_not_trained_and_takes_nobody_with_it() -> None:
    beside = [
        {"mask_sample": True, "session_id": "a", "output": [item([1], [2])]},
        {"mask_sample": False, "session_id": "b", "output": [item([1], [2])]},
        {"mask_sample": False, "session_id": "c", "output": []},
    ]
    told = answer(response(subagent_trajectories=beside), response(0.0))
    assert [each.session_id for each in told.members[0].sequences] == [None, "b"]
