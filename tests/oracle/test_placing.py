"""The judging of where calls stand, shown hand-made answers."""

from typing import Any

from conformance.oracle import placing
from conformance.oracle.rollouts import Sampled

ONE = Sampled("a", [1], [10], [-0.5])
OTHER = Sampled("b", [2], [11], [-0.5])


def holding(*calls: Sampled) -> dict[str, Any]:
    carried = [{"prompt_token_ids": one.prompt, "generation_token_ids": one.generation} for one in calls]
    return {"items": carried, "withheld": True}


def answer(*trajectories: dict[str, Any], excluded: str | None = None, why: str = "side_call") -> dict[str, Any]:
    put_aside = [] if excluded is None else [{"record_uuid": excluded, "why": why}]
    return {"trajectories": list(trajectories), "excluded": put_aside}


def test_calls_are_delivered_where_each_stands_in_some_trajectory() -> None:
    assert placing.all_delivered(answer(holding(ONE), holding(OTHER)), [ONE, OTHER])
    assert not placing.all_delivered(answer(holding(ONE)), [ONE, OTHER])


def test_calls_in_one_trajectory_are_not_apart() -> None:
    assert placing.apart(answer(holding(ONE), holding(OTHER)), [ONE], [OTHER])
    assert not placing.apart(answer(holding(ONE, OTHER)), [ONE], [OTHER])


def test_a_call_that_was_put_aside_like_a_title_is_told() -> None:
    assert placing.no_side_calls(answer(excluded="b"), [ONE])
    assert placing.no_side_calls(answer(excluded="a", why="orphan"), [ONE])
    assert not placing.no_side_calls(answer(excluded="a"), [ONE])
