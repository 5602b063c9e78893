"""A trajectory as an ATIF document, Harbor's Agent Trajectory Interchange Format, with its tokens on each step.

ATIF wants arguments as objects, so that a call whose arguments are no object keeps them as text under ``extra``.
"""

import json
from collections.abc import Sequence
from typing import Any

from conformance.contract.rebuilds import RebuildAnswer, Trajectory

JSON = Any
Object = dict[str, JSON]

VERSION = "ATIF-v1.7"


def atif(answer: RebuildAnswer, one: Trajectory, number: int) -> Object:
    """``number`` is the trajectory's place in the answer. What was sampled carries ids and log probs as metrics."""
    steps = _steps(one.items)
    metrics = [step["metrics"] for step in steps if "metrics" in step]
    return {
        "schema_version": VERSION,
        "session_id": one.session_id,
        "trajectory_id": f"{one.session_id}/{number}",
        "agent": _present(
            name=one.agent or "agent", version="unknown", model_name=one.model, tool_definitions=_tools(one.tools)
        ),
        "steps": [{"step_id": n, **step} for n, step in enumerate(steps, start=1)],
        "final_metrics": {
            "total_prompt_tokens": sum(one["prompt_tokens"] for one in metrics),
            "total_completion_tokens": sum(one["completion_tokens"] for one in metrics),
            "total_steps": len(steps),
        },
        "extra": _present(
            rollout=answer.id,
            parent=one.parent,
            outcome=one.outcome.value,
            withheld=answer.withheld or one.withheld,
            reason_code=one.reason_code or answer.reason_code,
            record_uuids=one.record_uuids,
        ),
    }


def _present(**keys: JSON) -> Object:
    return {key: value for key, value in keys.items() if value is not None}


def _tools(tools: Sequence[Object]) -> list[Object] | None:
    """As chat declares them, which is what ATIF takes."""
    described = ("name", "description", "parameters")
    return [{"type": "function", "function": _present(**{k: one.get(k) for k in described})} for one in tools] or None


def _steps(items: Sequence[Object]) -> list[Object]:
    """Reasoning, message and calls of one turn are one step; results stand on the step that called."""
    steps: list[Object] = []
    turn: list[Object] = []
    for item in items:
        if _is_spoken(item):
            if turn and _opens_a_turn(item, turn):
                steps.append(_agent_step(turn))
                turn = []
            turn.append(item)
            if item.get("generation_token_ids") is not None:
                steps.append(_agent_step(turn))
                turn = []
            continue
        if turn:
            steps.append(_agent_step(turn))
            turn = []
        if item.get("type") == "function_call_output":
            _observe(steps, item)
        else:
            source = "user" if item.get("role") == "user" else "system"
            steps.append({"source": source, "message": _content(item.get("content"))})
    return [*steps, *([_agent_step(turn)] if turn else [])]


def _is_spoken(item: Object) -> bool:
    return item.get("type") in ("reasoning", "function_call") or item.get("role") == "assistant"


def _opens_a_turn(item: Object, turn: Sequence[Object]) -> bool:
    """Reasoning opens a turn, and a message does unless only reasoning stands before it."""
    kinds = {one.get("type") for one in turn}
    return item.get("type") == "reasoning" or (item.get("type") == "message" and kinds != {"reasoning"})


def _agent_step(turn: Sequence[Object]) -> Object:
    said = [_text(item.get("content")) for item in turn if item.get("type") == "message"]
    thought = [part["text"] for item in turn if item.get("type") == "reasoning" for part in item.get("summary") or []]
    calls = [_call(item) for item in turn if item.get("type") == "function_call"]
    step: Object = {"source": "agent", "message": "".join(said)}
    if thought:
        step["reasoning_content"] = "\n\n".join(thought)
    if calls:
        step["tool_calls"] = calls
    last = turn[-1]
    if last.get("generation_token_ids") is None:
        return {**step, "is_copied_context": True}
    return {**step, "llm_call_count": 1, "metrics": _metrics(last)}


def _metrics(item: Object) -> Object:
    return {
        "prompt_tokens": len(item["prompt_token_ids"]),
        "completion_tokens": len(item["generation_token_ids"]),
        "prompt_token_ids": list(item["prompt_token_ids"]),
        "completion_token_ids": list(item["generation_token_ids"]),
        "logprobs": list(item["generation_log_probs"]),
    }


def _call(item: Object) -> Object:
    made = {"tool_call_id": item["call_id"], "function_name": item["name"]}
    try:
        arguments = json.loads(item["arguments"] or "{}")
        json.dumps(arguments, allow_nan=False)  # a model may write NaN, or a number that is infinite once it is read
    except (ValueError, RecursionError):
        arguments = None
    if isinstance(arguments, dict):
        return {**made, "arguments": arguments}
    return {**made, "arguments": {}, "extra": {"arguments": item["arguments"]}}


def _observe(steps: list[Object], item: Object) -> None:
    """A result goes to the latest step with its call; one that nobody called for is a step of the system's."""
    call_id = item.get("call_id")
    for step in reversed(steps):
        if any(call["tool_call_id"] == call_id for call in step.get("tool_calls", ())):
            result = {"source_call_id": call_id, "content": _content(item.get("output"))}
            step.setdefault("observation", {"results": []})["results"].append(result)
            return
    steps.append({"source": "system", "message": _content(item.get("output"))})


def _content(content: JSON) -> JSON:
    """Text, or parts where there are pictures."""
    if not isinstance(content, list):
        return content or ""
    if all("text" in part for part in content):
        return _text(content)
    return [
        {"type": "text", "text": part["text"]}
        if "text" in part
        else {"type": "image", "source": {"path": str(part.get("image_url", ""))}}
        for part in content
    ]


def _text(content: JSON) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""
