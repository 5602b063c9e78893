"""What the model does in a random conversation: playbooks of the fake engine, drawn so that they shrink."""

from typing import Any

from hypothesis import strategies as st

JSON = Any
Script = tuple[dict[str, JSON], bool]
"""A playbook, and whether all in it goes well."""

TURNS = 6
SCOPES = ("main", "child", "other")
MARKED = ("no_token_ids", "null_logprob_entry", "short_logprobs", "nan_logprob", "entry_ids_disagree", "no_request_id")
"""Faults that leave a whole answer for the client, and a record that is not valid."""
BROKEN = ("http_error", "close_before_headers", "bad_json")
"""Faults that leave no answer."""


def _look(path: str) -> JSON:
    return {"name": "look", "arguments": {"path": f"{path} {{tag}}"}}


CONTENTS: dict[str, JSON] = {
    "call": {"calls": [_look("main.py")]},
    "says": {"text": "{tag} I have looked into it."},
    "thought and call": {"reasoning": "I wonder why.", "calls": [_look("build.log")]},
    "two calls": {"calls": [_look("one.py"), _look("two.py")]},
    "thought and says": {"reasoning": "I wonder what follows.", "text": "{tag} It follows that it fails."},
    "text and call": {"text": "{tag} I look once more.", "calls": [_look("again.py")], "sampling": "drifting"},
    "cut": {"text": "{tag} This was going to be a longer", "finish": "length", "sampling": "drifting"},
    "only a thought": {
        "reasoning": "I think and think.",
        "returns": False,
        "attempts": [{"text": "{tag} Now I have something to say."}],
    },
    "nothing": {"text": "", "returns": False, "attempts": [{"text": "{tag} Something, this time."}]},
}


CALM = ("call", "says", "thought and call", "two calls", "thought and says")
"""Turns that a client can send back as they were sampled."""


@st.composite
def turns(draw: st.DrawFn, drifting: bool) -> JSON:
    kinds = [kind for kind in CONTENTS if not (drifting and kind == "nothing")]
    turn = dict(CONTENTS[draw(st.sampled_from(kinds))])
    if "attempts" not in turn:
        turn["attempts"] = draw(st.sampled_from(["same", "fresh"]))
    fault = draw(st.sampled_from([None] * 12 + [*MARKED, *BROKEN]))
    if fault is not None:
        turn["fault"] = {"name": fault, **({"status": 500} if fault == "http_error" else {})}
    return turn


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    """Of three scopes, so that a conversation may delegate twice. A title is a side call without tools."""
    calm = draw(st.booleans())
    sampling = "faithful" if calm else draw(st.sampled_from(["faithful", "drifting"]))
    turn = st.sampled_from(CALM).map(CONTENTS.__getitem__) if calm else turns(sampling == "drifting")
    each = st.lists(turn, min_size=1, max_size=TURNS)
    scopes = {name: {"turns": draw(each)} for name in SCOPES}
    title = {"name": "title", "when": {"tools": "none"}, "text": "A title for it"}
    about = "A calm conversation." if calm else "A random conversation."
    return {"about": about, "sampling": sampling, "scopes": scopes, "side_calls": [title]}, calm
