"""What the model does in a random conversation: playbooks of the fake engine, drawn so that they shrink."""

from typing import Any

from hypothesis import strategies as st

JSON = Any
Script = tuple[dict[str, JSON], str]
"""A playbook, and the mood of the run."""

CALM, WILD = "calm", "wild"
MOODS = (
    *(CALM, WILD, WILD, "lose", "nudge", "ask_twice_at_once", "back", "compact", "edit", "change_model"),
    *("tell_otherwise", "move", "kill"),
)
"""What may go wrong in a run: nothing, anything, or one kind of thing, whose traces nothing else then covers."""
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
    "call with a word for a truth": {"calls": [{"name": "look", "arguments": {"path": "all {tag}", "all": "true"}}]},
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


SECOND_THOUGHTS = {"calls": [_look("elsewhere.py")]}
THIRD_THOUGHTS = {"text": "{tag} On third thoughts it is done."}
WHOLE = ("call", "says", "thought and call", "two calls", "thought and says", "call with a word for a truth")
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


def whole(kind: str) -> st.SearchStrategy[JSON]:
    """Asked again, it says the same or something else; either can be sent back as it was sampled."""
    again = st.sampled_from(["same", [SECOND_THOUGHTS], [SECOND_THOUGHTS, THIRD_THOUGHTS]])
    return again.map(lambda attempts: {**CONTENTS[kind], "attempts": attempts})


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    """Of three scopes, so that a conversation may delegate twice. A title is a side call without tools."""
    mood = draw(st.sampled_from((*MOODS, CALM, CALM)))
    wild = mood == WILD
    sampling = draw(st.sampled_from(["faithful", "drifting"]))
    turn = turns(sampling == "drifting") if wild else st.sampled_from(WHOLE).flatmap(whole)
    each = st.lists(turn, min_size=1, max_size=TURNS)
    scopes = {name: {"turns": draw(each)} for name in SCOPES}
    title = {"name": "title", "when": {"tools": "none"}, "text": "A title for it"}
    about = f"A conversation in which all goes {mood}." if wild or mood == CALM else f"A conversation with: {mood}."
    return {"about": about, "sampling": sampling, "scopes": scopes, "side_calls": [title]}, mood
