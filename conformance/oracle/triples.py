"""What an answer holds of calls that are known: judged by the triples on its items, which every rebuild gives."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
            difference = list_difference(_plain(key, expected), _plain(key, triple[key]))
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
    for call in calls:
        if any(call.key in trajectory["record_uuids"] for trajectory in trained(answer)):
            return Judgement(False, "not trained", "in a trainable trajectory", call.key)
        judged = ids_not_trained(answer, call.generation)
        if not judged:
            return Judgement(False, judged.expected, judged.seen, call.key)
    return Judgement(True, "not trained", "not trained")


def none_trained(answer: Answer, calls: Iterable[Sampled]) -> Judgement:
    """No trainable trajectory names these calls, carries their triples, or masks all their tokens in.

    For calls of a real tokenizer, whose ids occur elsewhere too: tokens are told by their log probs.
    """
    for call in calls:
        due = Counter(zip(call.generation, call.log_probs, strict=True))
        for trajectory in trained(answer):
            columns = zip(*(trajectory.get(field) or [] for field in ("tokens", "log_probs")), strict=False)
            named = call.key in trajectory["record_uuids"]
            if named or any(_is_of(triple, call) for triple in triples(trajectory)) or due <= Counter(columns):
                return Judgement(False, "not trained", "in a trainable trajectory", call.key)
    return Judgement(True, "not trained", "not trained")


def ids_not_trained(answer: Answer, ids: Iterable[int]) -> Judgement:
    """No trainable trajectory trains any of these ids."""
    unwanted = set(ids)
    for trajectory in trained(answer):
        seen = sorted(unwanted & trained_ids(trajectory))
        if seen:
            return Judgement(False, "not trained", {"trainable": seen}, f"trajectory of {trajectory['record_uuids']}")
    return Judgement(True, "not trained", "not trained")


def only_sampled(answer: Answer, truth: Mapping[str, Sampled]) -> Judgement:
    """Each trainable triple is that of one call, to the last bit, and no call's is there twice."""
    left = list(truth.values())
    for trajectory in trained(answer):
        for triple in triples(trajectory):
            found = next((call for call in left if _is_of(triple, call)), None)
            if found is None:
                return Judgement(
                    False, "the triple of a call, once", triple, f"trajectory of {trajectory['record_uuids']}"
                )
            left.remove(found)
    return Judgement(True, "triples of calls, each once", f"{len(truth) - len(left)} trained")


def only_generated(answer: Answer, truth: Mapping[str, Sampled]) -> Judgement:
    """No trajectory, withheld ones too, counts an id as sampled that no call generated."""
    generated = {token for call in truth.values() for token in call.generation}
    for trajectory in answer["trajectories"]:
        strange = sorted(trained_ids(trajectory) - generated)
        if strange:
            where = f"trajectory of {trajectory['record_uuids']}"
            return Judgement(False, "mask 0 on what no call generated", {"masked in": strange[:8]}, where)
    return Judgement(True, "mask 0 on what no call generated", "mask 0")


def never_together(answer: Answer, one: Sampled, other: Sampled) -> Judgement:
    """No trainable trajectory trains tokens of both calls."""
    for trajectory in trained(answer):
        found = trained_ids(trajectory)
        if found & set(one.generation) and found & set(other.generation):
            return Judgement(False, "not in one trainable trajectory", "both are", f"{one.key} and {other.key}")
    return Judgement(True, "not in one trainable trajectory", "apart, withheld or excluded")


def trained_ids(trajectory: Trajectory) -> set[int]:
    """The ids that a trajectory asks to be trained, by its triples and by its mask."""
    masked = zip(trajectory.get("tokens", ()), trajectory.get("mask", ()), strict=False)
    on_items = {token for triple in triples(trajectory) for token in triple["generation_token_ids"]}
    return on_items | {token for token, mask in masked if mask}


def standing(answer: Answer) -> dict[str, Any]:
    """What an answer says of itself, for a report."""
    return {key: answer.get(key) for key in ("outcome", "withheld", "reason_code", "reason")}


def _is_of(triple: Mapping[str, Sequence[Any]], call: Sampled) -> bool:
    expected = (call.prompt, call.generation, call.log_probs)
    return all(_plain(key, of_call) == _plain(key, triple[key]) for key, of_call in zip(TRIPLE, expected, strict=True))


def _plain(key: str, values: Sequence[Any]) -> list[Any]:
    """With whole-number log probs as the floats they are: 0 is 0.0, but true is not 1."""
    if key != "generation_log_probs":
        return list(values)
    return [float(value) if type(value) is int else value for value in values]
