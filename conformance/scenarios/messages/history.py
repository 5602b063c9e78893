"""A conversation with everything in it that Claude Code sends."""

from typing import Any

from conformance.scenarios.messages.asking import Message, assistant, result, text, thinking, tool, use, user

JSON = Any

SYSTEM = ("You look at files. 🙂", "  Größe zählt.\nNever write.")
THOUGHTS = ("I think of the header.", "It is not there.")
INPUTS: tuple[dict[str, JSON], ...] = (
    {"zone": 'ü \\ "x"\n', "path": "a", "from": 1.0, "deep": {"b": [1, None, {"z": True, "a": ""}], "a": 1e21}},
    {"path": "b", "limit": 9007199254740993},
    {},
)
CALLS = tuple(use(f"functions.look:{n}", "look", given) for n, given in enumerate(INPUTS))
IDS = [call["id"] for call in CALLS]
NUDGE, REMINDER, ERROR = "Go on, please.", "Today is Monday.", "There is no such file."
TOOLS = [tool("look", "path")]

HISTORY: tuple[Message, ...] = (
    user("Find the header."),
    assistant(thinking(THOUGHTS[0]), text("I look first."), *CALLS[:2]),
    user([result(IDS[0], content="one\n"), result(IDS[1], content=[text("two")]), text(NUDGE)]),
    {"role": "system", "content": REMINDER},
    assistant(thinking(THOUGHTS[1]), {"type": "redacted_thinking", "data": "gAAAAABo"}, CALLS[2]),
    user([result(IDS[2], content=ERROR, is_error=True)]),
    assistant(text("Nothing there.")),
)
KEYS: dict[str, JSON] = {"system": [text(one) for one in SYSTEM], "tools": TOOLS}
