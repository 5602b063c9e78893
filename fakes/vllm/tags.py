"""Tags: how a text says which run, which scope and which next turn it belongs to.

A tag is ``⟦RRRRRR:SS:TTTT⟧``: run, scope and next turn in decimal, zero-padded to six, two and four digits. The task
prompt carries turn 0; the text, or a free-text argument, of generated turn n carries n + 1. Clients that dump arguments
again as plain ASCII send the brackets as JSON escapes; that is a tag too.
"""

import re
from typing import NamedTuple

_TAG = re.compile(r"(?:⟦|\\+u27[eE]6)(\d{6}):(\d{2}):(\d{4})(?:⟧|\\+u27[eE]7)", re.ASCII)

RUN_LIMIT = 1_000_000
SCOPE_LIMIT = 100
TURN_LIMIT = 10_000


class Tag(NamedTuple):
    """One tag: the run, the scope inside its playbook, and the turn that is asked for next."""

    run: int
    scope: int
    turn: int


def format_tag(run: int, scope: int, turn: int) -> str:
    """Write a tag; raises ``ValueError`` for a number that does not fit its width."""
    if not (0 <= run < RUN_LIMIT and 0 <= scope < SCOPE_LIMIT and 0 <= turn < TURN_LIMIT):
        raise ValueError(f"tag {run}:{scope}:{turn} does not fit six, two and four digits")
    return f"⟦{run:06d}:{scope:02d}:{turn:04d}⟧"


def find_tags(text: str) -> list[Tag]:
    """All tags of a text in order of appearance; anything not of the exact width is no tag."""
    if "⟦" not in text and "\\u27" not in text:
        return []
    return [Tag(int(run), int(scope), int(turn)) for run, scope, turn in _TAG.findall(text)]


def asked_for(tags: list[Tag]) -> Tag | None:
    """The turn a prompt asks for: the first tag gives run and scope, the highest turn of that scope is asked for."""
    if not tags:
        return None
    run, scope, _ = tags[0]
    return Tag(run, scope, max(tag.turn for tag in tags if tag.run == run and tag.scope == scope))
