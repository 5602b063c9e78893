"""Groups of one task: verify responses made by hand, and what a trainer makes of them."""

from collections.abc import Sequence
from itertools import count
from typing import Any

from pydantic import ValidationError

from conformance.contract.verifies import GroupAnswer
from conformance.gauge.check import Check
from conformance.scenarios.masking.collected import pairs, question, trajectory
from conformance.systems.runner import RunnerFailed, RunnerUnderTest

JSON = Any
Response = dict[str, JSON]
Member = dict[str, JSON]
Answer = dict[str, JSON]

_tasks = count(1)


def response(
    reward: JSON = 1.0, *, masked: JSON = False, config: JSON = None, turns: int = 2, **keys: JSON
) -> Response:
    """Of one member. ``config`` is the mask flag in the instance_config, by default the same."""
    items = trajectory(turns=turns)["items"]
    return {
        "reward": reward,
        "reward_is_evidence": True,
        "tokens_trainable": True,
        "mask_sample": masked,
        "instance_config": {"mask_sample": masked if config is None else config},
        "switchyard_trace_error": None,
        "subagent_trajectories": [],
        "response": {"output": items[1:], "metadata": None},
        **keys,
    }


def beside(session: str, *, masked: bool, items: list[JSON] | None = None) -> Response:
    """A subagent's entry in a response."""
    output = trajectory(session)["items"][1:] if items is None else items
    return {"session_id": session, "outcome": "clean", "mask_sample": masked, "input": [], "output": output}


class Group:
    """A task with its members; a response of None is a member that did not come back."""

    def __init__(self, responses: Sequence[Response | None], *, most_attempts: int = 2) -> None:
        self.task = f"task-{next(_tasks)}"
        self.size = len(responses)
        self.most_attempts = most_attempts
        self.members: list[Member] = [
            {"rollout": number, "attempt": 0, "response": self._named(each, number), "error": None if each else "died"}
            for number, each in enumerate(responses)
        ]

    def _named(self, told: Response | None, number: int, attempt: int = 0) -> Response | None:
        if told is None:
            return None
        return {"group": {"task": self.task, "rollout": number, "attempt": attempt}, **told}

    def again(self, rollout: int, told: Response | None, attempt: int = 1) -> "Group":
        """With one more answer of a member."""
        named = self._named(told, rollout, attempt)
        self.members.append({"rollout": rollout, "attempt": attempt, "response": named, "error": None})
        return self

    async def judged(self, runner: RunnerUnderTest, check: Check, requirement: str, where: str) -> Answer | None:
        """What the trainer makes of it; none that comes violates the requirement. Members are by number, all there."""
        try:
            keys = {"task": self.task, "size": self.size, "members": self.members, "most_attempts": self.most_attempts}
            told = GroupAnswer.model_validate(await question(runner, "group", **keys)).model_dump(mode="json")
        except (RunnerFailed, ValidationError) as failure:
            check(requirement, False, expected="an answer in the contract's form", seen=str(failure), where=where)
            return None
        numbers = [each["rollout"] for each in told["members"]]
        if numbers != list(range(self.size)):
            check(requirement, False, expected=f"a verdict on each of {self.size}", seen=numbers, where=where)
            return None
        return told


def trained(verdict: Answer) -> list[tuple[int, float]]:
    """Each trained id with its log prob."""
    return [
        (token, probability)
        for sequence in verdict["sequences"]
        for token, mask, probability in zip(sequence["tokens"], sequence["mask"], sequence["log_probs"], strict=False)
        if mask
    ]


def of_response(told: Response) -> list[tuple[int, float]]:
    return pairs(told["response"]["output"])
