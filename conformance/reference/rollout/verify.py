"""The verify response: what a trainer gets of one rollout, with all that may not count marked where trainers look."""

import json
import math
from typing import Any

from conformance.contract.rebuilds import Trajectory
from conformance.contract.rollouts import Collected, Ended, Stage
from conformance.contract.verifies import (
    OF_TOKENS,
    MaskReason,
    Response,
    SubagentTrajectory,
    VerifyRequest,
    VerifyResponse,
)
from conformance.contract.vocabulary import Outcome

JSON = Any
Item = dict[str, JSON]

SOURCE = "switchyard"
ABORTING = (Stage.REQUEST, Stage.ATTACH, Stage.SPAWN, Stage.READY, Stage.HARNESS, Stage.TASK)
"""Where a failure means that the agent did not come to its own end; a failed collection leaves its reward alone."""

FLAGS = {
    "agent_timed_out": MaskReason.AGENT_TIMED_OUT,
    "eval_timed_out": MaskReason.EVAL_TIMED_OUT,
    "oom_killed": MaskReason.OOM_KILLED,
    "eval_oom_killed": MaskReason.EVAL_OOM_KILLED,
}
SIGNALS = range(129, 129 + 64)
"""Exit codes with which a shell or a container tells that a command was ended by a signal."""
CUT_SHORT = {"max_iteration": MaskReason.MAX_ITERATION, "context_window": MaskReason.CONTEXT_WINDOW}
"""Kinds of agent errors after which a solved task is none that the agent has finished."""
OWN_ENDS = (*CUT_SHORT, "stuck_in_loop")
"""Kinds that an agent brings upon itself; after any other one it gave up, as when its engine fails."""


def verify(request: VerifyRequest) -> VerifyResponse:
    """Never raises: whatever became of the rollout, its reward, patch, metrics and certified tokens are handed over."""
    collected = request.collected
    main = main_trajectory(collected)
    of_tokens = token_reasons(collected, main)
    of_reward = reward_reasons(collected)
    masked = bool(of_tokens or of_reward)
    params = dict(request.responses_create_params)
    output: list[JSON] = []
    if main is not None:
        context, output = split(main.items)
        params |= {"input": context, "tools": main.tools}
    return VerifyResponse(
        id=request.id,
        group=request.group,
        reward=collected.reward,
        reward_is_evidence=not of_reward,
        tokens_trainable=collected.captured and not of_tokens,
        mask_sample=masked,
        mask_reasons=[*of_tokens, *of_reward],
        instance_config={**request.instance_config, "mask_sample": masked},
        switchyard_trace_error=trace_error(collected, main, of_tokens),
        subagent_trajectories=[beside(each) for each in collected.trajectories if each is not main]
        if collected.captured
        else None,
        responses_create_params=params,
        response=Response(output=output, metadata=None if main is None else metadata(main)),
        patch=collected.patch,
        metrics=collected.metrics,
    )


def main_trajectory(collected: Collected) -> Trajectory | None:
    """The root, if anything was sampled in it; else the trajectory with most sampled tokens, which is better than none.

    A result without one generated item ends its whole group in some trainers.
    """
    if not collected.captured or not collected.trajectories:
        return None
    root = collected.trajectories[0]
    if has_generation(root):
        return root
    fullest = max(collected.trajectories, key=lambda each: sum(each.mask))
    return fullest if has_generation(fullest) else root


def has_generation(trajectory: Trajectory) -> bool:
    return any(is_generated(item) for item in trajectory.items)


def is_generated(item: JSON) -> bool:
    return isinstance(item, dict) and bool(item.get("generation_token_ids"))


def token_reasons(collected: Collected, main: Trajectory | None) -> list[MaskReason]:
    """Why the tokens must not be trained. Nothing is wrong with those of a rollout that was not to be captured."""
    if not collected.captured:
        return []
    if collected.outcome is Outcome.FAILED or main is None:
        return [MaskReason.TRACE_FAILED]
    reasons = []
    uncollected = collected.error is not None and collected.error.stage is Stage.COLLECT
    if uncollected or collected.withheld or collected.outcome is not Outcome.CLEAN or main.withheld:
        reasons.append(MaskReason.TRACE_WITHHELD)
    if not has_generation(main):
        reasons.append(MaskReason.NO_GENERATION)
    if main is not collected.trajectories[0]:
        reasons.append(MaskReason.NOT_THE_ROOT)
    return reasons


def reward_reasons(collected: Collected) -> list[MaskReason]:
    """Why the reward says nothing of the policy."""
    metrics = collected.metrics
    reasons = [reason for flag, reason in FLAGS.items() if metrics.get(flag) not in (None, False)]
    if collected.harness is not None and collected.harness.timed_out:
        reasons.append(MaskReason.AGENT_TIMED_OUT)
    if collected.evaluation is not None and collected.evaluation.timed_out:
        reasons.append(MaskReason.EVAL_TIMED_OUT)
    kind = metrics.get("agent_error_kind")
    if isinstance(kind, str) and kind in CUT_SHORT and metrics.get("resolved") is True:
        reasons.append(CUT_SHORT[kind])
    killed = any(each is not None and is_killed(each) for each in (collected.harness, collected.evaluation))
    if killed or gave_up(collected) or (collected.error is not None and collected.error.stage in ABORTING):
        reasons.append(MaskReason.ABORTED)
    if collected.reward is None or not math.isfinite(collected.reward):
        reasons.append(MaskReason.NO_REWARD)
    return list(dict.fromkeys(reasons))


def gave_up(collected: Collected) -> bool:
    """The agent ended with an error that is no limit of its own: what it had come to until then says nothing."""
    kind = collected.metrics.get("agent_error_kind")
    if isinstance(kind, str) and kind.strip():
        return kind not in OWN_ENDS
    return collected.harness is not None and collected.harness.exit_code not in (0, None)


def is_killed(ended: Ended) -> bool:
    """Ended by a signal: what it had come to until then says nothing, as when memory ran out."""
    return ended.exit_code is not None and (ended.exit_code < 0 or ended.exit_code in SIGNALS)


def trace_error(collected: Collected, main: Trajectory | None, reasons: list[MaskReason]) -> str | None:
    """One line on what is wrong with the tokens, the root's and each broken subagent's; null where nothing is."""
    found = []
    if any(reason in OF_TOKENS for reason in reasons):
        why = collected.reason or (collected.error.message if collected.error else None) or ", ".join(reasons)
        found.append(f"session {collected.session_id or '?'}: {why}")
    found += [
        f"subagent session {each.session_id}: {each.outcome}, {each.reason_code or 'withheld'}"
        for each in collected.trajectories
        if collected.captured and each is not main and is_broken(each)
    ]
    return " ".join("; ".join(found).split()) or None


def is_broken(trajectory: Trajectory) -> bool:
    return trajectory.withheld or trajectory.outcome is not Outcome.CLEAN


def beside(trajectory: Trajectory) -> SubagentTrajectory:
    """A trajectory that is not the main one, its tokens kept also where it is broken."""
    context, output = split(trajectory.items)
    return SubagentTrajectory(
        session_id=trajectory.session_id,
        parent_session_id=trajectory.parent,
        agent=trajectory.agent,
        model=trajectory.model,
        outcome=trajectory.outcome,
        mask_sample=is_broken(trajectory) or not has_generation(trajectory),
        reason_code=trajectory.reason_code,
        record_uuids=trajectory.record_uuids,
        tools=trajectory.tools,
        input=context,
        output=output,
    )


def split(items: list[JSON]) -> tuple[list[JSON], list[JSON]]:
    """What the agent was given, and what came after: the output begins with the first item of an assistant."""
    begins = next((place for place, item in enumerate(items) if _is_assistants(item)), len(items))
    return items[:begins], items[begins:]


def _is_assistants(item: JSON) -> bool:
    if not isinstance(item, dict):
        return False
    return item.get("role") == "assistant" or item.get("type") in ("reasoning", "function_call")


def metadata(trajectory: Trajectory) -> dict[str, str]:
    """Text only, as the Responses API has it."""
    return {
        "switchyard_source": SOURCE,
        "switchyard_session_id": trajectory.session_id,
        "switchyard_record_uuids": json.dumps(trajectory.record_uuids),
        "switchyard_model": trajectory.model or "",
    }
