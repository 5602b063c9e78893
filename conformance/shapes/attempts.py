"""Shapes in which one turn was asked for more than once, or its answer went astray."""

from conformance.contract.vocabulary import ReasonCode
from conformance.shapes.play import Head, Play
from conformance.shapes.shape import MAIN, broken, clean, look, says, shape, withheld
from conformance.shapes.tongues import Said, Steps

ONE = "Of siblings of which one is continued, that one is the turn, and the others are orphans."
NONE = "Of siblings of which none is continued, the last is kept, withheld, and the others are orphans."
TWINS = "Of equal ids and log probs the later stands for both."
SAME = ({"calls": [{"name": "look", "arguments": {"path": "a.py {tag}"}}]}, *MAIN[1:])


@shape("retry first", ONE, clean("1 2 3", "lost"))
def retry_first(play: Play) -> None:
    head = play.begin()
    head.lose("lost")
    head.turns("1 2 3")


@shape("retry middle", ONE, clean("1 2 3", "lost"))
def retry_middle(play: Play) -> None:
    head = play.begin()
    head.turns("1")
    head.lose("lost")
    head.turns("2 3")


@shape("retry last", NONE, withheld(ReasonCode.UNRESOLVED_SIBLINGS, "1 2 3", "lost"))
def retry_last(play: Play) -> None:
    head = play.begin()
    head.turns("1 2")
    head.lose("lost")
    head.turns("3")


@shape("three attempts", ONE, clean("1 2", "lost again"))
def three_attempts(play: Play) -> None:
    head = play.begin()
    head.lose("lost")
    head.lose("again")
    head.turns("1 2")


@shape("loser landing last", ONE, clean("1 2 3", "lost"))
def loser_last(play: Play) -> None:
    head = play.begin()
    opening = head.steps
    head.turns("1 2 3")
    again(play, head, opening, "lost")


@shape("twin", TWINS, clean("1 2 3", "twin"), turns=SAME)
def twin(play: Play) -> None:
    head = play.begin()
    head.turns("1")
    again(play, head, head.points[0], "twin")
    head.turns("2 3")


@shape("twin landing last", TWINS, clean("1 2 3", "twin"), turns=SAME)
def twin_last(play: Play) -> None:
    head = play.begin()
    head.turns("1 2 3")
    again(play, head, head.points[0], "twin")


def again(play: Play, head: Head, steps: Steps, label: str) -> None:
    """The same request once more, by a layer below the client, which never hears of it."""
    play.call(head, steps, label=label)


@shape("parallel first calls", ONE, clean("1 2", "lost"))
def parallel(play: Play) -> None:
    head = play.begin()
    asked = play.at_once(head, ("1", "lost"))
    head.take(asked[0])
    head.turns("2")


@shape("nudge", ONE, clean("1 2 3", "lost"))
def nudge(play: Play) -> None:
    head = play.begin()
    head.turns("1")
    head.lose("lost")
    head.say("Use a tool.")
    head.turns("2 3")


@shape("nudge last", NONE, withheld(ReasonCode.UNRESOLVED_SIBLINGS, "1 2", "lost"))
def nudge_last(play: Play) -> None:
    head = play.begin()
    head.turns("1")
    head.lose("lost")
    head.say("Use a tool.")
    head.turns("2")


@shape("abandoned stream", "A call that its client left leaves no valid record.", clean("1 2 3"))
def abandoned(play: Play) -> None:
    head = play.begin()
    head.turns("1")
    play.abandon(head, (*head.steps, Said("Hold on.")))
    head.turns("2 3")


@shape(
    "engine refused, then answered",
    "A failed upstream call leaves no valid record.",
    clean("1 2 3"),
    turns=(look("a.py"), {**look("b.py"), "fault": {"name": "http_error", "status": 500}}, says("Done.")),
)
def refused(play: Play) -> None:
    head = play.begin()
    head.turns("1")
    head.lose("refused")
    head.turns("2 3")


@shape(
    "invalid record first",
    "If the first record is bad, the chain that starts later is kept, withheld.",
    withheld(ReasonCode.INVALID_RECORD, "2 3", "1"),
    turns=(broken(MAIN[0]), *MAIN[1:]),
)
def invalid_first(play: Play) -> None:
    play.begin().turns("1 2 3")


@shape(
    "invalid record middle",
    "A turn whose record is invalid breaks the chain that goes on from it.",
    withheld(ReasonCode.INVALID_RECORD, "1 3", "2"),
    turns=(MAIN[0], broken(MAIN[1]), *MAIN[2:]),
)
def invalid_middle(play: Play) -> None:
    play.begin().turns("1 2 3")


@shape(
    "invalid record last",
    "An invalid record that nothing continues breaks nothing.",
    clean("1 2", "3"),
    turns=(*MAIN[:2], broken(MAIN[2])),
)
def invalid_last(play: Play) -> None:
    play.begin().turns("1 2 3")


@shape(
    "invalid record, retried",
    "An invalid record that nothing continues breaks nothing.",
    clean("1 2 3", "bad"),
    turns=(MAIN[0], broken(MAIN[1]), *MAIN[2:]),
)
def invalid_retried(play: Play) -> None:
    head = play.begin()
    head.turns("1")
    head.lose("bad")
    head.turns("2 3")
