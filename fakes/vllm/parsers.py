"""Parsing a finished generation: the qwen3 reasoning parser and the hermes tool parser, buffered.

Buffered parsing reads the text; streamed parsing (``deltas``) reads token ids. The two disagree on purpose where
vLLM's do: arguments are re-dumped here and passed through raw there.
"""

import json
import re
from dataclasses import dataclass

from fakes.vllm.detokenize import HIDDEN

THINK_START = "<think>"
THINK_END = "</think>"
CALL_START = "<tool_call>"
CALL_END = "</tool_call>"

_SPECIAL = re.compile("|".join(map(re.escape, HIDDEN)))
_CALLS = re.compile(f"{CALL_START}(.*?){CALL_END}|{CALL_START}(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """A tool call by name, arguments as the JSON text the answer shows."""

    name: str
    arguments: str


def split_reasoning(text: str, *, thinking: bool, needs_both_tags: bool = False) -> tuple[str | None, str | None]:
    """Reasoning and the rest, each None when empty.

    With ``thinking`` off all is content, else special tokens are taken out, wherever they stand. ``needs_both_tags`` is
    the parser of 0.16 and before: without both tags nothing is reasoning.
    """
    if not thinking:
        return None, text
    if not needs_both_tags:
        text = _SPECIAL.sub("", text)
    if needs_both_tags:
        return _split_by_both_tags(text)
    end, call = text.find(THINK_END), text.find(CALL_START)
    if end < 0 and call < 0:
        return text.replace(THINK_START, "") or None, None
    if end >= 0 and (call < 0 or end < call):
        reasoning, content = text[:end], text[end + len(THINK_END) :]
    else:
        reasoning, content = text[:call], text[call:]
    return reasoning.replace(THINK_START, "") or None, content.replace(THINK_END, "") or None


def _split_by_both_tags(text: str) -> tuple[str | None, str | None]:
    before, start, rest = text.partition(THINK_START)
    reasoning, end, content = rest.partition(THINK_END)
    if not start or not end:
        return None, text
    return reasoning or None, (before + content) or None


def extract_calls(content: str) -> tuple[list[ParsedCall], str | None]:
    """Hermes calls and the text before the first of them.

    One bad call spoils all: then there are none and the markup stays in the text. Text after a call is lost.
    """
    if CALL_START not in content:
        return [], content
    try:
        found = [json.loads(closed or open_ended) for closed, open_ended in _CALLS.findall(content)]
        calls = [ParsedCall(c["name"], json.dumps(c["arguments"], ensure_ascii=False)) for c in found]
    except (ValueError, KeyError, TypeError, RecursionError):
        return [], content
    if not all(isinstance(call.name, str) for call in calls):
        return [], content
    before = content[: content.index(CALL_START)]
    return calls, before if before.strip() else None
