"""Questions to a runner, over its lines."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.reference.rollout.test_verify import collected, trajectory

pytestmark = pytest.mark.unit


def answers(*lines: dict[str, Any]) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "conformance.reference.rollout", "--jsonl"]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=50, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def verify(name: str, turns: int, **keys: Any) -> dict[str, Any]:
    long = trajectory(items=trajectory().items * turns)
    found = json.loads(collected(trajectories=[long]).model_dump_json())
    return {"id": name, "op": "verify", "collected": found, **keys}


def test_a_large_question_keeps_no_small_one_waiting() -> None:
    group = {"id": "small", "op": "group", "task": "t", "size": 2, "members": []}
    told = answers(verify("large", 40_000), group)
    assert [each["id"] for each in told] == ["small", "large"]
    assert told[1]["mask_sample"] is False
    assert len(told[1]["response"]["output"]) == 3 * 40_000 - 1


def test_a_large_question_that_is_none_is_refused_by_its_id() -> None:
    (told,) = answers(verify("odd", 2_000, nonsense=1))
    assert (told["id"], told["outcome"]) == ("odd", "failed")
    assert "nonsense" in told["reason"]
