"""Where calls that are known stand in an answer: in a trajectory, together, or put aside."""

from collections.abc import Iterable, Sequence
from typing import Any

from conformance.oracle.judgement import Judgement
from conformance.oracle.rollouts import Answer, Sampled
from conformance.oracle.triples import triples


def all_delivered(answer: Answer, calls: Iterable[Sampled]) -> Judgement:
    """Each of these calls stands with its triple in some trajectory, trained or not."""
    held = [triple for one in answer["trajectories"] for triple in triples(one)]
    lacking = [call.key for call in calls if not any(_is_triple_of(triple, call) for triple in held)]
    return Judgement(not lacking, "each in a trajectory", lacking or "each in a trajectory")


def apart(answer: Answer, some: Iterable[Sampled], others: Sequence[Sampled]) -> Judgement:
    """No trajectory holds one of ``some`` together with one of ``others``."""
    lone = list(some)
    for trajectory in answer["trajectories"]:
        held = triples(trajectory)
        here, there = (
            [call.key for call in calls if any(_is_triple_of(triple, call) for triple in held)]
            for calls in (lone, others)
        )
        if here and there:
            return Judgement(False, "in no trajectory together", [*here, *there])
    return Judgement(True, "in no trajectory together", "in no trajectory together")


def no_side_calls(answer: Answer, calls: Iterable[Sampled]) -> Judgement:
    """None of these calls was put aside as a side call."""
    why = {excluded["record_uuid"]: excluded["why"] for excluded in answer["excluded"]}
    seen = [call.key for call in calls if why.get(call.key) == "side_call"]
    return Judgement(not seen, "no side call", seen or "no side call")


def _is_triple_of(triple: dict[str, list[Any]], call: Sampled) -> bool:
    return triple["prompt_token_ids"] == list(call.prompt) and triple["generation_token_ids"] == list(call.generation)
