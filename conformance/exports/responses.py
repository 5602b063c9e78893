"""A trajectory as a request and a response of the Responses API, the form in which Gym hands rollouts to a trainer."""

import json
from typing import Any

from conformance.contract.rebuilds import RebuildAnswer, Trajectory

JSON = Any

TRIPLE = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")


def responses(answer: RebuildAnswer, one: Trajectory) -> dict[str, JSON]:
    """Input is what stood before the first item of the assistant; metadata holds strings only."""
    first = next((n for n, item in enumerate(one.items) if _is_spoken(item)), len(one.items))
    return {
        "responses_create_params": {"input": one.items[:first], "tools": one.tools, "model": one.model},
        "response": {
            "object": "response",
            "model": one.model,
            "output": one.items[first:],
            "metadata": {
                "session_id": one.session_id,
                "record_uuids": json.dumps(one.record_uuids),
                "outcome": one.outcome.value,
                **{key: value for key, value in (("parent", one.parent), ("agent", one.agent)) if value is not None},
            },
        },
        "mask_sample": answer.withheld or one.withheld,
    }


def _is_spoken(item: dict[str, JSON]) -> bool:
    return item.get("type") in ("reasoning", "function_call") or item.get("role") == "assistant"
