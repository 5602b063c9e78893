"""Shapes of several agents: children, nested, broken, orphaned, resumed, and several roots."""

from conformance.contract.vocabulary import Outcome, ReasonCode
from conformance.shapes.play import Play
from conformance.shapes.shape import Expected, clean, shape, withheld
from conformance.shapes.tongues import MESSAGES

OWN = "Children are trajectories with their own outcome; a broken one takes neither root nor siblings with it."


@shape("child", OWN, clean("1 2 a b"))
def child(play: Play) -> None:
    root = play.begin()
    root.turns("1")
    play.begin(1, session="child", parent="root").turns("a b")
    root.turns("2")


@shape("child beside its parent", OWN, clean("1 2 a b"))
def interleaved(play: Play) -> None:
    root, below = play.begin(), play.begin(1, session="child", parent="root")
    root.turns("1")
    below.turns("a")
    root.turns("2")
    below.turns("b")


@shape("nested child", OWN, clean("1 2 a b x"))
def nested(play: Play) -> None:
    root = play.begin()
    root.turns("1")
    below = play.begin(1, session="child", parent="root")
    below.turns("a")
    play.begin(2, session="grandchild", parent="child").turns("x")
    below.turns("b")
    root.turns("2")


@shape(
    "broken child",
    OWN,
    Expected(Outcome.CLEAN, None, trained="1 2", withheld="a b"),
)
def broken_child(play: Play) -> None:
    root = play.begin()
    root.turns("1")
    below = play.begin(1, session="child", parent="root")
    below.turns("a")
    below.compact()
    below.turns("b")
    root.turns("2")


@shape("child, told by agent id", "Rebuild splits on agent ids.", clean("1 2 a b"), tongue=MESSAGES)
def by_agent_id(play: Play) -> None:
    root = play.begin()
    root.turns("1")
    below = play.begin(1)
    below.agent = "agent-7"
    below.turns("a b")
    root.turns("2")


@shape("resumed child", OWN, clean("1 2 3 a b c"))
def resumed(play: Play) -> None:
    root = play.begin()
    root.turns("1")
    below = play.begin(1, session="child", parent="root")
    below.turns("a b")
    root.turns("2")
    below.say("And what else?")
    below.turns("c")
    root.turns("3")


@shape("orphan child beside a root", OWN, clean("1 2 a b"))
def orphan(play: Play) -> None:
    root = play.begin()
    root.turns("1 2")
    play.begin(1, session="child", parent="gone").turns("a b")


@shape("only an orphan child", "A root is a session without a parent.", withheld(ReasonCode.NO_ROOT, "a b"))
def no_root(play: Play) -> None:
    play.begin(1, session="child", parent="gone").turns("a b")


@shape(
    "two roots", "Of several roots all is withheld, with the reason.", withheld(ReasonCode.SEVERAL_ROOTS, "1 2 3 a b")
)
def two_roots(play: Play) -> None:
    play.begin().turns("1 2 3")
    play.begin(1, session="other").turns("a b")
