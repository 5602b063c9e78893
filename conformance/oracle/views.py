"""Is the sequence that a trainer takes the one that was in the model's window, masked where it was sampled?"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from conformance.oracle.judgement import Judgement
from conformance.oracle.records import same_list
from conformance.oracle.rollouts import Answer, Sampled, Trajectory, trained

Field = Literal["tokens", "mask", "log_probs"]
Pairs = Counter[tuple[int, float | None]]


def window(calls: Sequence[Sampled]) -> list[int]:
    """All that was in the model's window at the end of calls that continue each other."""
    return [*calls[-1].prompt, *calls[-1].generation]


def expected(calls: Sequence[Sampled], field: Field) -> Sequence[float | None]:
    """One column of the view of calls that continue each other: their context, and each generation where it stands."""
    if field == "tokens":
        return window(calls)
    column: list[float | None] = []
    for call in calls:
        context = len(call.prompt) - len(column)
        column += [0 if field == "mask" else None] * context
        column += [1] * len(call.generation) if field == "mask" else call.log_probs
    return column


def columns(answer: Answer, truth: Mapping[str, Sampled], field: Field) -> Judgement:
    """One column of each trajectory, withheld or not, is that of the calls that the trajectory names."""
    for trajectory in answer["trajectories"]:
        named = trajectory["record_uuids"]
        calls = [truth[uuid] for uuid in named if uuid in truth]
        due = expected(calls, field) if len(calls) == len(named) > 0 else []
        judged = same_list(due, trajectory.get(field), f"{field} of {named}")
        if not judged:
            return judged
    return Judgement(True, "those of the calls it names", "those of the calls it names")


def equal_lengths(answer: Answer) -> Judgement:
    """Tokens, mask and log probs of each trajectory are of one length, and not empty where it names a record."""
    for trajectory in answer["trajectories"]:
        seen = {field: len(trajectory.get(field) or []) for field in ("tokens", "mask", "log_probs")}
        if len(set(seen.values())) != 1 or (trajectory["record_uuids"] and not seen["tokens"]):
            return Judgement(False, "three lists of one length", seen, f"trajectory of {trajectory['record_uuids']}")
    return Judgement(True, "three lists of one length", "three lists of one length")


def each_trained_once(answer: Answer, calls: Iterable[Sampled]) -> Judgement:
    """What is trained, over all trajectories, is each token of these calls once, with its log prob.

    The generated ids of the calls must occur nowhere else in the session.
    """
    due: Pairs = Counter(pair for call in calls for pair in zip(call.generation, call.log_probs, strict=True))
    seen: Pairs = Counter(pair for trajectory in trained(answer) for pair in masked_in(trajectory))
    if due == seen:
        return Judgement(True, f"{due.total()} tokens once", f"{seen.total()} tokens once")
    odd = {"not trained": list(due - seen)[:4], "too often or strange": list(seen - due)[:4]}
    return Judgement(False, f"{due.total()} tokens once", {key: value for key, value in odd.items() if value})


def nothing_trained_twice(answer: Answer) -> Judgement:
    """No sampled id is masked in twice. The generated ids must occur nowhere else in the session."""
    seen = Counter(token for trajectory in trained(answer) for token, _ in masked_in(trajectory))
    twice = sorted(token for token, count in seen.items() if count > 1)
    return Judgement(not twice, "each sampled token trained at most once", twice[:4] or "none trained twice")


def same_sequences(answer: Answer, sequences: Iterable[Sequence[int]]) -> Judgement:
    """The trainable trajectories are these sequences of tokens, in any order, none of them twice."""
    due = sorted(map(list, sequences))
    seen = sorted(trajectory.get("tokens") or [] for trajectory in trained(answer))
    lengths = {"expected": list(map(len, due)), "seen": list(map(len, seen))}
    return Judgement(due == seen, f"{len(due)} sequences", f"{len(seen)} sequences", f"lengths {lengths}")


def never_masked_in(answer: Answer, ids: Collection[int]) -> Judgement:
    """No trajectory, withheld or not, calls one of these ids sampled."""
    wrong = {token for one in answer["trajectories"] for token, _ in masked_in(one)} & set(ids)
    return Judgement(not wrong, "mask 0 on them all", sorted(wrong)[:4] or "mask 0 on them all")


def masked_in(trajectory: Trajectory) -> Iterator[tuple[int, float | None]]:
    """The tokens of a view that its mask lets through, each with its log prob."""
    columns = zip(*(trajectory.get(field) or [] for field in ("tokens", "mask", "log_probs")), strict=False)
    return ((token, log_prob) for token, mask, log_prob in columns if mask)
