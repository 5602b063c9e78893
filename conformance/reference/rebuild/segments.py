"""Whether a conversation that starts anew is the one before it, shortened: it keeps a turn of it, or quotes a summary.

A harness that only begins again, with the same system and tools, has no claim to the episode before.
"""

from collections.abc import Iterator, Sequence

from conformance.reference.rebuild.rewrites import plain_text
from conformance.reference.rebuild.turns import Turn

TELLING = 24
"""Characters of a line that no two texts share by accident. Shorter ones tell nothing: OK stands in every LOOK."""


def carries_on(earlier: Sequence[Turn], beside: Sequence[Turn], start: Turn) -> bool:
    """Whether the request of ``start`` holds a turn of ``earlier``, or words of one of them or of a call ``beside``."""
    kept = {start.normal[i] for i in range(start.request_length) if start.messages[i]["role"] == "assistant"}
    if any(turn.answer in kept for turn in earlier):
        return True
    told = "\n".join(_texts(start))
    return any(line in told for turn in (*earlier, *beside) if turn.place < start.place for line in telling_lines(turn))


def telling_lines(turn: Turn) -> list[str]:
    """The lines of an answer by which it is known again, even where a harness passes on a part of it."""
    lines = [line.strip() for line in (plain_text(turn.messages[-1].get("content")) or "").splitlines()]
    return [line for line in lines if len(line) >= TELLING]


def _texts(turn: Turn) -> Iterator[str]:
    for message in turn.messages[len(turn.system) : turn.request_length]:
        content = message.get("content")
        if isinstance(content, str):
            yield content
        elif isinstance(content, list):
            yield from (part["text"] for part in content if part.get("type") == "text")
