"""Plays a shape and holds what became of its calls against what the contract says."""

from collections.abc import Iterable
from dataclasses import dataclass

from conformance.oracle import records, rollouts
from conformance.oracle.fate import Fate, fate
from conformance.oracle.law import account
from conformance.shapes import attempts, plain, rewrites, trees
from conformance.shapes.play import Play
from conformance.shapes.shape import SHAPES, Shape
from conformance.shapes.stage import Stage

GROUPS = (plain, attempts, rewrites, trees)
"""Importing them is what fills ``SHAPES``; this is the order in which they are shown."""


@dataclass(frozen=True)
class Told:
    """What came of a shape; ``faults`` is empty where all is as expected."""

    shape: Shape
    fate: Fate
    faults: tuple[str, ...]


def shapes(names: Iterable[str] = ()) -> list[Shape]:
    """All, or those whose names hold one of these texts."""
    wanted, order = list(names), [group.__name__ for group in GROUPS]
    in_order = sorted(SHAPES, key=lambda one: order.index(one.act.__module__))
    return [one for one in in_order if not wanted or any(name in one.name for name in wanted)]


def play(stage: Stage, one: Shape) -> Told:
    played = Play(stage, one.tongue, one.playbook(), tenant=one.tenant)
    one.act(played)
    rows, envelopes = played.rows(), played.envelopes()
    kept = [record for envelope in envelopes for record in envelope["completions"]]
    answer = stage.rebuild.ask_now({"sessions": envelopes})
    found = account(answer, kept, rows)
    faults = [
        f"expected {judged.expected!r}, seen {judged.seen!r}, {judged.where}"
        for judged in (records.law(kept, rows), rollouts.conserved(answer, rollouts.sampled(kept)), found.law)
        if not judged
    ]
    label = {row["seq"]: asked.label for row, asked in zip(rows, played.calls, strict=False)}
    due = one.expected
    for state, expected, seen in (
        ("trained", due.trained, found.trained),
        ("withheld", due.withheld, found.withheld),
        ("excluded", due.excluded, found.excluded),
    ):
        told = sorted(label[seq] for seq in seen)
        if told != sorted(expected.split()):
            faults.append(f"{state}: expected calls {expected or 'none'}, seen {' '.join(told) or 'none'}")
    for key, wanted, got in (
        ("outcome", due.outcome, answer["outcome"]),
        ("reason", due.reason, answer["reason_code"]),
    ):
        if wanted != got:
            faults.append(f"{key}: expected {wanted}, seen {got}")
    return Told(one, fate(answer, len(kept), found, rows), tuple(faults))
