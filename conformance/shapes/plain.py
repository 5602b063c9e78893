"""Shapes in which nothing is rewritten: turns of every kind, side calls, and what may change along the way."""

from conformance.contract.vocabulary import ReasonCode
from conformance.shapes.play import Head, Play
from conformance.shapes.shape import clean, look, says, shape, thinks, withheld
from conformance.shapes.stage import STRIPPED
from conformance.shapes.tongues import MESSAGES, RESPONSES, Said

SIDE = "A record that extends nothing and that nothing extends, with other tools or system, is a side call."


@shape("straight", "Each prompt starts with the prompt and generation before it.", clean("1 2 3"))
def straight(play: Play) -> None:
    play.begin().turns("1 2 3")


@shape("streamed, Messages", "A stream leaves what a buffered answer leaves.", clean("1 2 3"), tongue=MESSAGES)
def streamed(play: Play) -> None:
    play.begin().turns("1 2 3", stream=True)


@shape("streamed, Responses", "A stream leaves what a buffered answer leaves.", clean("1 2 3"), tongue=RESPONSES)
def streamed_responses(play: Play) -> None:
    play.begin().turns("1 2 3", stream=True)


@shape(
    "thinking before each call",
    "Reasoning is part of the generation.",
    clean("1 2 3"),
    turns=(thinks("a.py"), thinks("b.py"), says("Done.")),
)
def thinking(play: Play) -> None:
    play.begin().turns("1 2 3")


@shape(
    "thinking-only turn",
    "An answer without text is a turn like any other.",
    clean("1 2 3"),
    turns=(
        look("a.py"),
        {"reasoning": "I think and think.", "returns": False, "attempts": [{"text": "{tag} It is the header."}]},
        says("Done."),
    ),
)
def thinking_only(play: Play) -> None:
    play.begin().turns("1 2 3")


@shape(
    "empty turn",
    "A generation of only an end token is trained.",
    clean("1 2 3"),
    turns=(
        says("I begin."),
        {"text": "", "returns": False, "attempts": [{"text": "{tag} It is the header."}]},
        says("Done."),
    ),
)
def empty(play: Play) -> None:
    play.begin().turns("1 2 3")


@shape(
    "cut tool call",
    "What a length limit cut was sampled; the turn end that the template adds is context.",
    clean("1 2 3"),
    turns=(
        look("a.py"),
        {
            "ids": ['<think>\n\n</think>\n\n{tag} I look.\n<tool_call>\n{"name": "look", "argum'],
            "finish": "length",
            "sampling": "drifting",
        },
        says("Done."),
    ),
)
def cut_call(play: Play) -> None:
    play.begin().turns("1 2 3")


@shape("system reminder mid-history", "Any message that is not the assistant's extends a chain.", clean("1 2 3"))
def reminder(play: Play) -> None:
    head = play.begin()
    head.turns("1 2")
    head.say("Mind the time.", role="system")
    head.turns("3")


@shape(
    "tools changed",
    "Tools live in the first tokens of the prompt: where these change, tokens are not contiguous.",
    withheld(ReasonCode.TOKENS_DISAGREE, "1 2 3"),
)
def tools_changed(play: Play) -> None:
    head = play.begin()
    head.turns("1 2")
    head.tools = (*head.tools, "write")
    head.turns("3")


@shape("model changed", "Another served model ends the chain.", withheld(ReasonCode.MODEL_CHANGED, "1 2 3"))
def model_changed(play: Play) -> None:
    head = play.begin()
    head.turns("1 2")
    head.model = f"{play.tenant}-small"
    head.turns("3")


@shape(
    "re-tokenised history",
    "Tokens decide: what is rendered anew is no continuation.",
    withheld(ReasonCode.TOKENS_DISAGREE, "1 2 3"),
    sampling="drifting",
)
def retokenised(play: Play) -> None:
    play.begin().turns("1 2 3")


@shape(
    "reasoning dropped by the template",
    "Tokens decide: a history without its reasoning is another context.",
    withheld(ReasonCode.TOKENS_DISAGREE, "1 2 3"),
    turns=(
        {"reasoning": "I wonder.", "text": "{tag} I see."},
        {"reasoning": "And now?", "text": "{tag} So."},
        says("Done."),
    ),
    tenant=STRIPPED,
)
def stripped(play: Play) -> None:
    play.begin().turns("1 2 3")


# Side calls


def title(play: Play, head: Head, label: str = "title") -> None:
    """What names a conversation: its task again, under another system prompt and without tools."""
    task = head.steps[0]
    assert isinstance(task, Said)
    system, tools = head.system, head.tools
    head.system, head.tools = "You name things.", ()
    play.call(head, (Said(f"Name this: {task.text}"),), label=label)
    head.system, head.tools = system, tools


@shape("title first", SIDE, clean("1 2 3", "title"))
def title_first(play: Play) -> None:
    head = play.begin()
    title(play, head)
    head.turns("1 2 3")


@shape("title concurrent", SIDE, clean("1 2 3", "title"))
def title_between(play: Play) -> None:
    head = play.begin()
    head.turns("1")
    title(play, head)
    head.turns("2 3")


@shape("title late", SIDE, clean("1 2 3", "title"))
def title_late(play: Play) -> None:
    head = play.begin()
    head.turns("1 2 3")
    title(play, head)


@shape("title asked twice", SIDE, clean("1 2 3", "title again"))
def title_twice(play: Play) -> None:
    head = play.begin()
    title(play, head)
    head.turns("1 2")
    title(play, head, "again")
    head.turns("3")


@shape("side call with a tool", SIDE, clean("1 2 3", "search"))
def search(play: Play) -> None:
    head = play.begin()
    head.turns("1 2")
    task = head.steps[0]
    assert isinstance(task, Said)
    tools, system = head.tools, head.system
    head.tools, head.system = ("search",), "You search the web."
    play.call(head, (Said(f"Search for it: {task.text}"),), label="search")
    head.tools, head.system = tools, system
    head.turns("3")


@shape(
    "two conversations, no id",
    "Two chains of two or more records that no id tells apart are withheld.",
    withheld(ReasonCode.AMBIGUOUS_MAIN, "1 2 a b"),
)
def two_conversations(play: Play) -> None:
    one, other = play.begin(), play.begin(1)
    one.turns("1")
    other.turns("a")
    one.turns("2")
    other.turns("b")
