"""What an answer holds of calls that are known: judged by the triples on its items, which every rebuild gives."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from conformance.contract.difference import list_difference
from conformance.oracle.judgement import Judgement
from conformance.oracle.rollouts import Answer, Sampled, Trajectory, trained

TRIPLE = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")


def triples(trajectory: Trajectory) -> list[dict[str, list[Any]]]:
    """The items that carry a generated turn's tokens, as prompt, generation and log probs, in order."""
    return [
        {key: item.get(key) or [] for key in TRIPLE}
        for item in trajectory["items"]
        if any(item.get(key) is not None for key in TRIPLE)
    ]


def holds(trajectory: Trajectory, calls: Sequence[Sampled]) -> Judgement:
    """Its triples are those of these calls, in this order, to the last bit."""
    found = triples(trajectory)
    if len(found) != len(calls):
        named = trajectory["record_uuids"]
        return Judgement(False, f"{len(calls)} turns", f"{len(found)} turns", f"trajectory of {named}")
    for triple, call in zip(found, calls, strict=True):
        for key, expected in zip(TRIPLE, (call.prompt, call.generation, call.log_probs), strict=True):
            difference = list_difference(list(expected), triple[key])
            if difference is not None:
                return Judgement(False, *difference.shown(), f"{key} of {call.key}")
    return Judgement(True, f"{len(calls)} turns", f"{len(found)} turns")


def one_clean_chain(answer: Answer, calls: Sequence[Sampled]) -> Judgement:
    """The rollout is clean, and what is trained of it are these calls in this order."""
    if answer["outcome"] != "clean" or answer["withheld"]:
        return Judgement(False, "clean", standing(answer))
    chains = trained(answer)
    if len(chains) != 1:
        return Judgement(False, "one trajectory", [one["record_uuids"] for one in chains])
    return holds(chains[0], calls)


def withheld(answer: Answer) -> Judgement:
    """No token of it may be trained, and it says so: withheld, and partial or failed."""
    ok = answer["withheld"] is True and answer["outcome"] in ("partial", "failed")
    return Judgement(ok, "partial or failed, withheld", standing(answer))


def delivers(answer: Answer, calls: Sequence[Sampled]) -> Judgement:
    """One of its trajectories, trained or not, holds exactly these calls."""
    judged = [holds(trajectory, calls) for trajectory in answer["trajectories"]]
    found = [one["record_uuids"] for one in answer["trajectories"]]
    return Judgement(any(judged), [call.key for call in calls], found)


def not_trained(answer: Answer, calls: Iterable[Sampled]) -> Judgement:
    """No trainable trajectory names these calls, carries their triples, or masks their tokens in.

    The generated ids of the calls must occur nowhere else in the session.
    """
    for trajectory in trained(answer):
        tokens = set(_trainable_ids(trajectory))
        for call in calls:
            if call.key in trajectory["record_uuids"]:
                return Judgement(False, "not trained", "in a trainable trajectory", call.key)
            if tokens & set(call.generation):
                return Judgement(False, "not trained", "its ids are trainable", call.key)
    return Judgement(True, "not trained", "not trained")


def standing(answer: Answer) -> dict[str, Any]:
    """What an answer says of itself, for a report."""
    return {key: answer.get(key) for key in ("outcome", "withheld", "reason_code", "reason")}


def _trainable_ids(trajectory: Trajectory) -> Iterator[int]:
    for triple in triples(trajectory):
        yield from triple["generation_token_ids"]
    masked = zip(trajectory.get("tokens", ()), trajectory.get("mask", ()), strict=False)
    yield from (token for token, mask in masked if mask)
