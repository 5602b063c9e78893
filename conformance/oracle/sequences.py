"""Do a trajectory's columns and its items tell the same, in values of the right kind?"""

from collections.abc import Iterator, Sequence
from typing import Any

from conformance.oracle.judgement import Judgement
from conformance.oracle.records import same_list
from conformance.oracle.rollouts import Answer, Trajectory
from conformance.oracle.triples import triples

KINDS = {"tokens": (int,), "mask": (int,), "log_probs": (int, float, type(None))}


def plain_kinds(answer: Answer) -> Judgement:
    """Each value of each column is of its kind; true and false are no numbers."""
    for one in answer["trajectories"]:
        for name, kinds in KINDS.items():
            wrong = next((value for value in one[name] if type(value) not in kinds), _NONE)
            if wrong is not _NONE:
                expected = " or ".join(kind.__name__ for kind in kinds)
                return Judgement(False, expected, repr(wrong), f"{name} of {one['record_uuids']}")
    return Judgement(True, "numbers", "numbers")


def items_say_the_same(trajectory: Trajectory) -> Judgement:
    """The generations on the items, one after the other, are what the mask lets through, with its log probs."""
    carried = triples(trajectory)
    where = f"trajectory of {trajectory['record_uuids']}"
    for key, column in (("generation_token_ids", "tokens"), ("generation_log_probs", "log_probs")):
        on_items = [value for triple in carried for value in triple[key]]
        judged = same_list(_masked(trajectory, column), on_items, f"{key} of {where}")
        if not judged:
            return judged
    return Judgement(True, f"{len(carried)} generations", f"{len(carried)} generations", where)


def prompts_say_the_same(trajectory: Trajectory) -> Judgement:
    """Each prompt on an item is what the sequence holds before that generation; the last one ends the sequence."""
    tokens: Sequence[int] = trajectory["tokens"]
    where = f"trajectory of {trajectory['record_uuids']}"
    end = 0
    for number, triple in enumerate(triples(trajectory)):
        prompt = triple["prompt_token_ids"]
        judged = same_list(list(tokens[: len(prompt)]), prompt, f"prompt of generation {number} in {where}")
        if not judged:
            return judged
        end = len(prompt) + len(triple["generation_token_ids"])
    return Judgement(end == len(tokens), f"{len(tokens)} tokens", f"{end} tokens on the items", where)


def _masked(trajectory: Trajectory, column: str) -> list[Any]:
    return list(_let_through(trajectory[column], trajectory["mask"]))


def _let_through(values: Sequence[Any], mask: Sequence[int]) -> Iterator[Any]:
    return (value for value, bit in zip(values, mask, strict=False) if bit)


_NONE = object()
