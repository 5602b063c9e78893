"""What a generation says, read as the engine itself would read it: reasoning, text, tool calls.

The engine parses chat answers only. These follow the behaviour of vLLM's parsers of the same names.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

THINK, THOUGHT = "<think>", "</think>"
CALL, CALLED = "<tool_call>", "</tool_call>"
UNSPOKEN = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>"),
    *("<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>"),
    *("<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"),
)
"""The special tokens of Qwen3's vocabulary: the parser of thoughts takes them out wherever they stand."""

_NO_THOUGHT = re.compile("|".join(map(re.escape, (THINK, *UNSPOKEN))))
_NO_TEXT = re.compile("|".join(map(re.escape, (THOUGHT, *UNSPOKEN))))


@dataclass(frozen=True)
class Said:
    """A parsed generation; ``calls`` are (name, arguments as JSON text)."""

    reasoning: str | None
    content: str | None
    calls: list[tuple[str, str]] = field(default_factory=list)


def parsed(text: str, *, reasons: bool, calls: bool) -> Said:
    """``reasons``: what comes first is reasoning; ``calls``: tools are on offer."""
    reasoning, content = _thought(text) if reasons else (None, text)
    if not calls or content is None or CALL not in content:
        return Said(reasoning, content)
    try:
        found = [_call(markup) for markup in _markup(content)]
    except (ValueError, KeyError, TypeError, RecursionError):
        # One call that cannot be read, or that was cut, and all of it stays text.
        return Said(reasoning, content)
    before = content[: content.index(CALL)]
    return Said(reasoning, before if before.strip() else None, found)


def _thought(text: str) -> tuple[str | None, str | None]:
    """All is reasoning up to its end, or up to a call, which ends it too."""
    ends = [at for at in (text.find(THOUGHT), text.find(CALL)) if at >= 0]
    if not ends:
        return _NO_THOUGHT.sub("", text) or None, None
    end = min(ends)
    return _NO_THOUGHT.sub("", text[:end]) or None, _NO_TEXT.sub("", text[end:]) or None


def _markup(content: str) -> Iterator[str]:
    """What stands between the marks of each call; the last one's end may be missing."""
    rest = content
    while CALL in rest:
        markup, _, rest = rest.partition(CALL)[2].partition(CALLED)
        yield markup


def _call(markup: str) -> tuple[str, str]:
    call = json.loads(markup)
    name, arguments = call["name"], call["arguments"]
    if not isinstance(name, str):
        raise TypeError(name)
    return name, json.dumps(arguments, ensure_ascii=False)
