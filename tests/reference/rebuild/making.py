"""Records and requests for the tests of the rebuild, in a small world of made-up tokens."""

import json
from collections.abc import Sequence
from typing import Any

from conformance.contract.rebuilds import RebuildAnswer
from conformance.reference.rebuild.command import answer_line

JSON = dict[str, Any]


def system(text: str = "You are an agent.") -> JSON:
    return {"role": "system", "content": text}


def user(text: str) -> JSON:
    return {"role": "user", "content": text}


def said(text: str | None, *calls: JSON) -> JSON:
    message: JSON = {"role": "assistant", "content": text}
    return message | {"tool_calls": list(calls)} if calls else message


def call(arguments: str, name: str = "bash", call_id: str = "c1") -> JSON:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(text: str, call_id: str = "c1") -> JSON:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


BASH = {"id": "bash", "description": "Runs a command.", "inputSchema": {"jsonSchema": {"type": "object"}}}


def record(n: int, messages: list[JSON], prompt: list[int], generation: list[int], **changes: Any) -> JSON:
    """Record ``n`` of a session: its place in time, its uuid and its log probs follow from ``n``."""
    base: JSON = {
        "schema_version": 1,
        "uuid": f"u{n}",
        "session_id": "s",
        "parent_session_id": None,
        "captured_at": f"2026-11-29T10:00:00.{n:06d}+00:00",
        "request_id": f"chatcmpl-{n}",
        "model": "policy",
        "messages": messages,
        "tools": [BASH],
        "tool_choice": "auto",
        "token_count": {"prompt_tokens": len(prompt), "completion_tokens": len(generation), "total_tokens": 0},
        "prompt_token_ids": prompt,
        "generation_token_ids": generation,
        "generation_log_probs": [-0.5 - n - i / 8 for i in range(len(generation))],
        "finish_reason": "stop",
        "is_valid": True,
    }
    return base | changes


def envelope(*records: Any, session: str = "s", **changes: Any) -> JSON:
    base: JSON = {"schema_version": 1, "session_id": session, "completions": list(records)}
    return base | changes


def answer(source: JSON, *, allow_partial: bool = True, split: Sequence[str] = ()) -> RebuildAnswer:
    """The rebuild's answer as it comes over the line."""
    asked = {"id": "a", "source": source, "allow_partial": allow_partial, "split": list(split)}
    line = json.dumps(asked).encode()
    return RebuildAnswer.model_validate_json(answer_line(line))


def rebuilt(*records: Any, **changes: Any) -> RebuildAnswer:
    return answer({"envelope": envelope(*records, **changes)})


def trained(found: RebuildAnswer) -> list[int]:
    """The tokens a trainer would learn from."""
    if found.withheld:
        return []
    return [
        token
        for one in found.trajectories
        if not one.withheld
        for token, mask in zip(one.tokens, one.mask, strict=True)
        if mask
    ]


def two_turns() -> list[JSON]:
    """A clean session: a call, its result, and the answer."""
    asked = [system(), user("Look.")]
    turn = said("I look.", call('{"command": "ls"}'))
    return [
        record(0, [*asked, turn], [1, 2, 3], [10, 11]),
        record(1, [*asked, turn, result("a b"), said("Two files.")], [1, 2, 3, 10, 11, 4, 5], [12, 13]),
    ]
