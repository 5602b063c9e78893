"""Is what would be trained what was sampled, each token once, with its own log prob, in its own context?"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.contract.vocabulary import ExcludedWhy
from conformance.oracle.judgement import Judgement
from conformance.oracle.records import same_list

Answer = dict[str, Any]
Trajectory = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sampled:
    """One generation that happened: its key (a record uuid), its context and its tokens."""

    key: str
    prompt: Sequence[int]
    generation: Sequence[int]
    log_probs: Sequence[float]


def sampled(records: Iterable[Mapping[str, Any]]) -> dict[str, Sampled]:
    """The truth of records that were built by hand or proved against the ledger."""
    return {
        record["uuid"]: Sampled(
            record["uuid"],
            record["prompt_token_ids"],
            record["generation_token_ids"],
            record["generation_log_probs"],
        )
        for record in records
    }


def view_shape(trajectory: Trajectory) -> Judgement:
    """Tokens, mask and log probs are of equal length; mask is 0 or 1; a log prob is null exactly where mask is 0."""
    tokens, mask, log_probs = trajectory["tokens"], trajectory["mask"], trajectory["log_probs"]
    lengths = [len(tokens), len(mask), len(log_probs)]
    if len(set(lengths)) != 1:
        return Judgement(False, "three lists of one length", lengths, _where(trajectory))
    if not set(mask) <= {0, 1} or any(type(value) is not int for value in mask):
        return Judgement(False, "mask of 0 and 1", sorted(set(map(repr, mask)))[:4], _where(trajectory))
    present = [0 if value is None else 1 for value in log_probs]
    judged = same_list(mask, present, f"{_where(trajectory)}: a log prob exactly where mask is 1,")
    if not judged:
        return judged
    return Judgement(True, "equal lengths, log probs where trained", lengths, _where(trajectory))


def view_truth(trajectory: Trajectory, truth: Mapping[str, Sampled]) -> Judgement:
    """The trainer view is the chain of the trajectory's records: context with mask 0, each generation with mask 1."""
    tokens: list[int] = []
    mask: list[int] = []
    log_probs: list[float | None] = []
    for uuid in trajectory["record_uuids"]:
        call = truth.get(uuid)
        if call is None:
            return Judgement(False, "a record that was captured", uuid, _where(trajectory))
        known = len(tokens)
        if list(call.prompt[:known]) != tokens:
            return Judgement(False, "a prompt that holds what came before", uuid, _where(trajectory))
        added = call.prompt[known:]
        tokens += [*added, *call.generation]
        mask += [0] * len(added) + [1] * len(call.generation)
        log_probs += [None] * len(added) + list(call.log_probs)
    for field, expected in (("tokens", tokens), ("mask", mask), ("log_probs", log_probs)):
        judged = same_list(expected, trajectory[field], f"{_where(trajectory)} {field}")
        if not judged:
            return judged
    return Judgement(True, f"{sum(mask)} sampled tokens", f"{sum(mask)} sampled tokens", _where(trajectory))


def conserved(answer: Answer, truth: Mapping[str, Sampled]) -> Judgement:
    """Every sampled token is exactly one of trained, withheld, excluded: each record stands in exactly one place."""
    places = Counter(uuid for trajectory in answer["trajectories"] for uuid in trajectory["record_uuids"])
    places.update(excluded["record_uuid"] for excluded in answer["excluded"])
    missing = sorted(set(truth) - set(places))
    twice = sorted(uuid for uuid, count in places.items() if count > 1)
    strange = sorted(set(places) - set(truth))
    seen = {"nowhere": missing, "twice": twice, "unknown": strange}
    return Judgement(
        not (missing or twice or strange),
        "each record in one trajectory or excluded once",
        {key: value for key, value in seen.items() if value} or "each in one place",
    )


def tokens_conserved(answer: Answer, truth: Mapping[str, Sampled]) -> Judgement:
    """Each sampled token is masked in by one trajectory or excluded with its record, once.

    No id may stand twice in the session.
    """
    due = Counter(token for call in truth.values() for token in call.generation)
    seen: Counter[int] = Counter()
    for trajectory in answer["trajectories"]:
        seen.update(token for token, mask in zip(trajectory["tokens"], trajectory["mask"], strict=False) if mask)
    for excluded in answer["excluded"]:
        call = truth.get(excluded["record_uuid"])
        seen.update(call.generation if call is not None else ())
    odd = {"nowhere": sorted((due - seen).elements()), "twice or strange": sorted((seen - due).elements())}
    told = {key: tokens[:8] for key, tokens in odd.items() if tokens}
    return Judgement(not told, f"{due.total()} tokens", told or f"{seen.total()} tokens")


def rest_excluded(answer: Answer, truth: Mapping[str, Sampled]) -> Judgement:
    """Each call whose triple stands on no item is excluded, for one reason of the contract's."""
    items = [item for trajectory in answer["trajectories"] for item in trajectory["items"]]
    held = [item["generation_token_ids"] for item in items if item.get("generation_token_ids")]
    why: dict[str, list[str]] = {}
    for excluded in answer["excluded"]:
        why.setdefault(excluded["record_uuid"], []).append(excluded["why"])
    rest = [call.key for call in truth.values() if list(call.generation) not in held]
    told = {uuid: why.get(uuid, []) for uuid in rest}
    ok = all(len(reasons) == 1 and reasons[0] in tuple(ExcludedWhy) for reasons in told.values())
    return Judgement(ok, "one reason for each", told)


def excludes(answer: Answer, calls: Iterable[Sampled]) -> Judgement:
    """Each of these calls is excluded, and in no trajectory."""
    out = {excluded["record_uuid"] for excluded in answer["excluded"]}
    held = {uuid for trajectory in answer["trajectories"] for uuid in trajectory["record_uuids"]}
    wrong = [call.key for call in calls if call.key not in out - held]
    return Judgement(not wrong, "excluded", wrong or "excluded")


def without_item_ids(answer: Answer) -> Answer:
    """The answer without the ids of its items: a rebuild may give new ones each time. Calls keep their ``call_id``."""
    bare = [
        {**one, "items": [{key: value for key, value in item.items() if key != "id"} for item in one["items"]]}
        for one in answer["trajectories"]
    ]
    return {**answer, "trajectories": bare}


def trained(answer: Answer) -> list[Trajectory]:
    """The trajectories a trainer would take as they are."""
    return [one for one in answer["trajectories"] if not answer["withheld"] and not one["withheld"]]


def never_wrong(answer: Answer, truth: Mapping[str, Sampled]) -> Judgement:
    """The law on a rollout: whatever is trainable was sampled, with its own log probs, in its own context, once."""
    told = [uuid for trajectory in trained(answer) for uuid in trajectory["record_uuids"]]
    twice = [uuid for uuid, count in Counter(told).items() if count > 1]
    if twice:
        return Judgement(False, "each record trained once", f"{twice[0]} trained twice")
    for trajectory in trained(answer):
        for judged in (view_shape(trajectory), view_truth(trajectory, truth)):
            if not judged:
                return judged
    return Judgement(True, "only sampled tokens are trainable", f"{len(told)} records trained")


def _where(trajectory: Trajectory) -> str:
    return f"trajectory of session {trajectory.get('session_id')}"
