"""Shapes in which a client went back or told its history anew."""

from conformance.contract.vocabulary import Outcome, ReasonCode
from conformance.shapes.play import Play
from conformance.shapes.shape import MAIN, Expected, broken, shape, withheld
from conformance.shapes.tongues import CHAT, Answer, Results, Said

FORK = "Several continued by different records are a fork: withheld, unless branches are declared."
ANEW = "A rewritten history starts a new segment; all is withheld, unless segments are declared."


@shape("fork", FORK, withheld(ReasonCode.FORK, "1 2 3 b c"))
def fork(play: Play) -> None:
    head = play.begin()
    head.turns("1 2 3")
    head.back(1)
    head.turns("b c")


@shape("fork at the first call", FORK, withheld(ReasonCode.FORK, "1 2 b c"))
def fork_first(play: Play) -> None:
    head = play.begin()
    head.turns("1 2")
    head.back(0)
    head.turns("b c")


@shape("compaction", ANEW, withheld(ReasonCode.HISTORY_REWRITTEN, "1 2 3 4"))
def compaction(play: Play) -> None:
    head = play.begin()
    head.turns("1 2")
    head.compact()
    head.turns("3 4")


@shape("compaction × 3", ANEW, withheld(ReasonCode.HISTORY_REWRITTEN, "1 2 3 4 5"))
def compaction_thrice(play: Play) -> None:
    head = play.begin()
    head.turns("1 2")
    for label in ("3", "4", "5"):
        head.compact(text=f"So far {label} went well.")
        head.turns(label)


@shape("compaction, kept tail", ANEW, withheld(ReasonCode.HISTORY_REWRITTEN, "1 2 3 4 5"))
def kept_tail(play: Play) -> None:
    head = play.begin()
    head.turns("1 2 3")
    head.compact(kept=1)
    head.turns("4 5")


@shape(
    "history edited",
    "A real edit changes the tokens behind it: what follows is no continuation.",
    withheld(ReasonCode.HISTORY_REWRITTEN, "1 2 3 4"),
)
def edited(play: Play) -> None:
    head = play.begin()
    head.turns("1 2")
    place = next(n for n, step in enumerate(head.steps) if isinstance(step, Results))
    step = head.steps[place]
    assert isinstance(step, Results)
    head.retell(place, Results([(id_, f"{text}, cut short") for id_, text in step.of]))
    head.turns("3 4")


@shape(
    "turn without a record",
    "An assistant message without a record is context, mask 0, reported, withheld.",
    withheld(ReasonCode.UNCAPTURED_TURN, "1 2"),
    tongue=CHAT,
)
def uncaptured(play: Play) -> None:
    head = play.begin()
    head.turns("1")
    head.steps += (Answer([{"role": "assistant", "content": "I have done it by hand."}]), Said("Go on."))
    head.turns("2")


@shape(
    "nothing valid",
    "A session without a valid record has failed.",
    Expected(Outcome.FAILED, ReasonCode.NO_VALID_RECORD, excluded="1 2"),
    turns=tuple(map(broken, MAIN)),
)
def nothing_valid(play: Play) -> None:
    play.begin().turns("1 2")
