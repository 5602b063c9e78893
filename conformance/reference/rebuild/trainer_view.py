"""The training sequence of one piece: tokens, loss mask and log probs, of equal length."""

from collections.abc import Sequence
from dataclasses import dataclass

from conformance.reference.rebuild.turns import Turn


@dataclass(frozen=True)
class TrainerView:
    """``mask`` is 1 exactly on sampled tokens; ``log_probs`` is null exactly where ``mask`` is 0."""

    tokens: list[int]
    mask: list[int]
    log_probs: list[float | None]


def trainer_view(turns: Sequence[Turn]) -> TrainerView:
    """Each turn's prompt must start with what the turns before it hold; nothing is invented between them."""
    tokens: list[int] = []
    mask: list[int] = []
    log_probs: list[float | None] = []
    for turn in turns:
        context = turn.prompt[len(tokens) :]
        tokens += context
        mask += [0] * len(context)
        log_probs += [None] * len(context)
        tokens += turn.generation
        mask += [1] * len(turn.generation)
        log_probs += turn.log_probs
    return TrainerView(tokens, mask, log_probs)
