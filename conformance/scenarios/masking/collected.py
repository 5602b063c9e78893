"""What was collected of rollouts, made by hand, so that every sampled token is known; and what comes of it.

main = trajectory("root", turns=3)
answer = await verified(runner, check, collected(main), "a clean rollout")
"""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from pydantic import ValidationError

from conformance.contract.verifies import VerifyResponse
from conformance.gauge.check import Check
from conformance.systems.runner import RunnerFailed, RunnerUnderTest

JSON = Any
Collected = dict[str, JSON]
Trajectory = dict[str, JSON]
Answer = dict[str, JSON]
Pair = tuple[int, float]

FORM = "MSK-021"
QUESTION_SECONDS = 30.0
NOTHING: Answer = {
    "reward": None,
    "reward_is_evidence": False,
    "tokens_trainable": False,
    "mask_sample": True,
    "mask_reasons": [],
    "instance_config": {"mask_sample": True},
    "switchyard_trace_error": None,
    "subagent_trajectories": None,
    "responses_create_params": {},
    "response": {"output": [], "metadata": None},
    "group": None,
    "patch": None,
    "metrics": {},
}
"""Stands for the answer that did not come."""

_numbers = count(1)
_tokens = count(1000)


def trajectory(session: str = "root", *, turns: int = 2, first: str = "user", **changes: JSON) -> Trajectory:
    """A clean one: a task, then turns of a call or words, each with a result behind it. Ids occur nowhere else.

    ``first`` is the role of the task's message.
    """
    tokens: list[int] = _fresh(3)
    mask, log_probs = [0] * 3, list[float | None]([None] * 3)
    items: list[JSON] = [{"type": "message", "role": first, "content": "Fix the build."}]
    for turn in range(turns):
        sampled = _fresh(2 + turn % 3)
        probabilities = [-(token % 97 + 1) / 64 for token in sampled]
        triple = {
            "prompt_token_ids": list(tokens),
            "generation_token_ids": sampled,
            "generation_log_probs": probabilities,
        }
        items += _turn(turn, triple)
        tokens, mask, log_probs = tokens + sampled, mask + [1] * len(sampled), [*log_probs, *probabilities]
        if turn + 1 < turns:
            tokens, mask, log_probs = tokens + _fresh(2), [*mask, 0, 0], [*log_probs, None, None]
    whole: Trajectory = {
        "session_id": session,
        "parent": None,
        "agent": None,
        "outcome": "clean",
        "withheld": False,
        "reason_code": None,
        "model": "served-policy",
        "tools": [{"type": "function", "name": "bash", "description": None, "parameters": None, "strict": None}],
        "items": items,
        "record_uuids": [f"{session}-{turn}" for turn in range(turns)],
        "tokens": tokens,
        "mask": mask,
        "log_probs": log_probs,
    }
    return whole | changes


def broken(session: str = "root", reason: str = "history_rewritten", **changes: JSON) -> Trajectory:
    """One that a rebuild gave in part, withheld."""
    return trajectory(session, outcome="partial", withheld=True, reason_code=reason) | changes


def empty(session: str = "root") -> Trajectory:
    """One of which no valid record is left."""
    nothing: Trajectory = {"items": [], "record_uuids": [], "tokens": [], "mask": [], "log_probs": [], "model": None}
    return trajectory(session, outcome="failed", withheld=True, reason_code="no_valid_record") | nothing


def _turn(turn: int, triple: dict[str, JSON]) -> list[JSON]:
    """Reasoning and a call with its result, or a message: the triple stands on the last generated item."""
    if turn % 2:
        text = [{"type": "output_text", "text": "Done.", "annotations": []}]
        return [{"type": "message", "role": "assistant", "status": "completed", "content": text, **triple}]
    call_id = f"call_{turn}"
    return [
        {"type": "reasoning", "id": f"rs_{turn}", "summary": [{"type": "summary_text", "text": "Look first."}]},
        {"type": "function_call", "call_id": call_id, "name": "bash", "arguments": '{"command": "ls"}', **triple},
        {"type": "function_call_output", "call_id": call_id, "output": "a.py"},
    ]


def _fresh(many: int) -> list[int]:
    return [next(_tokens) for _ in range(many)]


def collected(*trajectories: Trajectory, **changes: JSON) -> Collected:
    """Of a rollout whose harness and evaluation came to their end, with reward 1; the first trajectory is the root.

    Outcome and withholding are the root's, as a rebuild has them.
    """
    root = trajectories[0] if trajectories else {"outcome": "failed", "withheld": True, "session_id": None}
    whole: Collected = {
        "id": f"rollout-{next(_numbers)}",
        "captured": True,
        "outcome": root["outcome"],
        "withheld": root["withheld"],
        "reason": None if root["outcome"] == "clean" else f"the trace is {root['outcome']}",
        "reason_code": root.get("reason_code"),
        "session_id": root["session_id"],
        "trajectories": list(trajectories),
        "reward": 1.0,
        "patch": "diff --git a/a.py b/a.py",
        "metrics": {"resolved": True},
        "harness": {"exit_code": 0, "timed_out": False, "log": "harness.log"},
        "evaluation": {"exit_code": 0, "timed_out": False, "log": "evaluation.log"},
    }
    return whole | changes


async def question(runner: RunnerUnderTest, op: str, **keys: JSON) -> JSON:
    """The answer to one question. Raises RunnerFailed."""
    name = f"{op}-{next(_numbers)}"
    going = await runner.send({"v": 1, "id": name, "op": op, **keys}, answers_to=name)
    assert going is not None
    return await runner.until(going.last_line, QUESTION_SECONDS, f"answer the question {name}")


async def verified(
    runner: RunnerUnderTest, check: Check, found: Mapping[str, JSON], where: str, **request: JSON
) -> Answer:
    """The verify response. One that does not come, or is not of the contract's form, violates MSK-021."""
    try:
        answer = await question(runner, "verify", collected=found, **request)
        whole = VerifyResponse.model_validate(answer)
    except RunnerFailed as failure:
        check(FORM, False, expected="an answer", seen=failure.why, where=where)
        return NOTHING
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        seen = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        check(FORM, False, expected="an answer in the contract's form", seen=seen, where=where)
        return NOTHING
    check(FORM, True)
    return whole.model_dump(mode="json")


def pairs(items: Sequence[JSON]) -> list[Pair]:
    """Each sampled id with its log prob, as items bear them."""
    return [
        pair
        for item in items
        if isinstance(item, dict) and item.get("generation_token_ids")
        for pair in zip(item["generation_token_ids"], item.get("generation_log_probs") or [], strict=False)
    ]


def sampled(found: Trajectory) -> list[Pair]:
    """The same of a trajectory's trainer view."""
    return [
        (token, probability)
        for token, mask, probability in zip(found["tokens"], found["mask"], found["log_probs"], strict=True)
        if mask
    ]
