"""The law, token by token: each way to break it is seen, and told by where it was."""

from collections.abc import Callable
from typing import Any

import pytest

from conformance.oracle.fate import fate
from conformance.oracle.law import account

JSON = Any

ROWS: list[dict[str, JSON]] = [
    {
        "seq": number,
        "endpoint": "chat",
        "state": "finished",
        "request_id": f"r{number}",
        "prompt_token_ids": prompt,
        "generation_token_ids": generation,
        "generation_log_probs": log_probs,
    }
    for number, (prompt, generation, log_probs) in enumerate(
        [([1, 2], [10, 11], [-0.5, -0.25]), ([1, 2, 10, 11, 3], [12], [-1.5]), ([1, 2], [13], [-0.75])]
    )
]
RECORDS = [
    {"uuid": f"u{n}", "request_id": f"r{n}", **{k: row[k] for k in row if "_token_" in k}} for n, row in enumerate(ROWS)
]


def answer() -> dict[str, JSON]:
    """The first two calls in a row, trained; the third an orphan."""
    one = {
        "withheld": False,
        "record_uuids": ["u0", "u1"],
        "session_id": "s",
        "tokens": [1, 2, 10, 11, 3, 12],
        "mask": [0, 0, 1, 1, 0, 1],
        "log_probs": [None, None, -0.5, -0.25, None, -1.5],
    }
    return {"withheld": False, "trajectories": [one], "excluded": [{"record_uuid": "u2", "why": "orphan"}]}


def test_what_is_as_it_was_sampled_is_accounted_for() -> None:
    found = account(answer(), RECORDS, ROWS)
    assert found.law
    assert (found.trained, found.withheld, found.excluded) == ([0, 1], [], [2])


def test_a_fate_counts_tokens_of_the_ledger_by_where_they_went() -> None:
    told = {**answer(), "outcome": "partial", "reason_code": "history_rewritten"}
    came = fate(told, len(RECORDS), account(told, RECORDS, ROWS), ROWS)
    assert (came.trained, came.withheld, came.excluded, came.sampled) == (3, 0, 1, 4)
    assert (came.calls, came.standing) == (3, "partial (history_rewritten)")
    assert came.law


@pytest.mark.parametrize("level", ["answer", "trajectory"])
def test_withheld_is_withheld_whoever_says_so(level: str) -> None:
    told = answer()
    (told if level == "answer" else told["trajectories"][0])["withheld"] = True
    found = account(told, RECORDS, ROWS)
    assert found.law
    assert (found.trained, found.withheld) == ([], [0, 1])


def view(**columns: JSON) -> Callable[[dict[str, JSON]], None]:
    return lambda told: told["trajectories"][0].update(columns)


FAULTS: dict[str, Callable[[dict[str, JSON]], None]] = {
    "another token": view(tokens=[1, 2, 10, 99, 3, 12]),
    "another context": view(tokens=[1, 9, 10, 11, 3, 12]),
    "another log prob": view(log_probs=[None, None, -0.5, -0.26, None, -1.5]),
    "context masked in": view(mask=[0, 1, 1, 1, 0, 1], log_probs=[None, -0.1, -0.5, -0.25, None, -1.5]),
    "half a generation masked in": view(mask=[0, 0, 1, 0, 0, 1], log_probs=[None, None, -0.5, None, None, -1.5]),
    "a log prob for context": view(log_probs=[0.0, None, -0.5, -0.25, None, -1.5]),
    "a generation masked out": view(mask=[0, 0, 1, 1, 0, 0], log_probs=[None, None, -0.5, -0.25, None, None]),
    "columns of several lengths": view(mask=[0, 0, 1, 1, 0]),
    "a sequence twice": lambda told: told["trajectories"].append(told["trajectories"][0]),
    "a call trained and excluded": lambda told: told["excluded"].append({"record_uuid": "u0", "why": "orphan"}),
    "a call excluded twice": lambda told: told["excluded"].append({"record_uuid": "u2", "why": "side_call"}),
    "a call nowhere": lambda told: told["excluded"].clear(),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_breach_is_seen(fault: str) -> None:
    told = answer()
    FAULTS[fault](told)
    found = account(told, RECORDS, ROWS)
    assert not found.law
    assert found.law.where
