"""Parsing a generation while it streams: what each step lets the client see.

The reasoning half goes by token ids, so ``<think>`` spelled out in plain tokens is text; the tool half goes by
text. Both hold back what may still turn out to be markup.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from fakes.vllm.detokenize import HIDDEN
from fakes.vllm.parsers import CALL_END, CALL_START, THINK_END, THINK_START

_HELD_IN_REASONING = (
    THINK_START,
    THINK_END,
    CALL_START,
    CALL_END,
    "<function=",
    "</function>",
    "<parameter=",
    "</parameter>",
    *HIDDEN,
)
_HELD_PREFIXES = frozenset(mark[:size] for mark in _HELD_IN_REASONING for size in range(1, len(mark)))
_LONGEST_HELD = max(map(len, _HELD_PREFIXES))
_NAME = re.compile(r'"name"\s*:\s*"([^"]+)"')
_ARGUMENTS = re.compile(r'"arguments"\s*:\s*')


@dataclass(frozen=True, slots=True)
class Released:
    """A piece of text that may be shown now; ``mark`` is the added token it is the whole of, if any."""

    text: str
    mark: str | None = None


@dataclass(slots=True)
class CallDelta:
    """A change to call ``index``: its name when it begins, else more of its arguments."""

    index: int
    name: str | None = None
    arguments: str | None = None
    id: str | None = None


@dataclass(slots=True)
class Delta:
    """What one step shows. All empty means nothing to show (vLLM's parser returned None)."""

    reasoning: str | None = None
    content: str | None = None
    calls: list[CallDelta] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.reasoning is not None or self.content is not None or bool(self.calls)


class ReasoningStream:
    """The reasoning phase: feeds on released pieces until ``</think>`` or a tool call ends it."""

    def __init__(self) -> None:
        self.held = ""
        self.ended = False

    def feed(self, pieces: Iterable[Released], *, finished: bool) -> tuple[str, list[Released]]:
        """Reasoning to show now, and the pieces that belong to the content."""
        shown: list[str] = []
        content: list[Released] = []
        for piece in pieces:
            if self.ended:
                content.append(piece)
            elif piece.mark == THINK_START or piece.mark in HIDDEN:
                shown.append(self._flush())
            elif piece.mark == THINK_END:
                shown.append(self._flush())
                self.ended = True
            elif piece.mark == CALL_START:
                shown.append(self._flush())
                self.ended = True
                content.append(piece)
            else:
                shown.append(self._hold(piece.text))
        if finished and not self.ended:
            shown.append(self._flush())
        return "".join(shown), content

    def _flush(self) -> str:
        text, self.held = self.held, ""
        return text

    def _hold(self, text: str) -> str:
        """Add text; give back all but the longest end that may be the beginning of markup."""
        text = self.held + text
        keep = 0
        for size in range(min(len(text), _LONGEST_HELD), 0, -1):
            if text[-size:] in _HELD_PREFIXES:
                keep = size
                break
        self.held = text[len(text) - keep :]
        return text[: len(text) - keep]


def overlap(text: str, mark: str) -> int:
    """Length of the longest end of ``text`` that ``mark`` begins with, the whole mark excluded."""
    for size in range(min(len(text), len(mark) - 1), 0, -1):
        if text.endswith(mark[:size]):
            return size
    return 0


class CallStream:
    """The hermes phase: content up to the first call, then names and raw argument text."""

    def __init__(self) -> None:
        self.outside = ""
        self.inside: str | None = None
        self.index = -1
        self.named = False
        self.sent = ""
        self.seen_a_call = False
        self.blocked = False

    def feed(self, text: str) -> Delta:
        """What the text so far lets the client see.

        Text after the first call is never shown, nor is anything after a call that closed without a name.
        """
        delta = Delta()
        if self.blocked:
            return delta
        if self.inside is None:
            self.outside += text
        else:
            self.inside += text
        while True:
            if self.inside is None:
                if not self._open(delta):
                    return delta
            elif not self._continue(delta):
                return delta

    def _open(self, delta: Delta) -> bool:
        at = self.outside.find(CALL_START)
        if at < 0:
            keep = overlap(self.outside, CALL_START)
            shown, self.outside = self.outside[: len(self.outside) - keep], self.outside[len(self.outside) - keep :]
        else:
            shown, self.inside = self.outside[:at], self.outside[at + len(CALL_START) :]
            self.outside = ""
        if shown and not self.seen_a_call:
            delta.content = (delta.content or "") + shown
        if at < 0:
            return False
        self.seen_a_call = True
        self.index += 1
        self.named, self.sent = False, ""
        return True

    def _continue(self, delta: Delta) -> bool:
        """Show more of the open call; True when it closed and text is left."""
        text = self.inside or ""
        at = text.find(CALL_END)
        body = text[: at if at >= 0 else len(text) - overlap(text, CALL_END)].strip()
        complete = at >= 0 or _is_complete(body)
        if not self.named:
            name = _NAME.search(body)
            if name is None:
                self.blocked = at >= 0
                return False
            self.named = True
            delta.calls.append(CallDelta(self.index, name=name[1]))
        arguments = _raw_arguments(body, complete)
        if arguments is not None and len(arguments) > len(self.sent):
            delta.calls.append(CallDelta(self.index, arguments=arguments[len(self.sent) :]))
            self.sent = arguments
        return self._close(at)

    def _close(self, at: int) -> bool:
        if at < 0:
            return False
        self.outside, self.inside = (self.inside or "")[at + len(CALL_END) :], None
        return True


def _is_complete(body: str) -> bool:
    if not body.endswith("}"):
        return False
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return False
    return True


def _raw_arguments(body: str, complete: bool) -> str | None:
    found = _ARGUMENTS.search(body)
    if found is None:
        return None
    raw = body[found.end() :]
    if complete:
        raw = raw.rstrip()
        if raw.endswith("}"):
            raw = raw[:-1].rstrip()
    return raw


@dataclass(frozen=True, slots=True)
class StreamParsing:
    """Which parsers a stream goes through.

    ``reasoning_open``: the prompt leaves reasoning open. ``needs_start_tag``: the parser of 0.16 and before, for
    which a generation that does not begin with ``<think>`` has no reasoning.
    """

    reasoning: bool
    reasoning_open: bool
    calls: bool
    include_reasoning: bool = True
    needs_start_tag: bool = False

    @property
    def any(self) -> bool:
        return self.reasoning or self.calls


class DeltaParser:
    """All parsers of one choice, in vLLM's order."""

    def __init__(self, parsing: StreamParsing) -> None:
        self.parsing = parsing
        self.reasoning = ReasoningStream()
        self.calls = CallStream()
        self._first = True
        if not (parsing.reasoning and parsing.reasoning_open):
            self.reasoning.ended = True

    def feed(self, pieces: Sequence[Released], *, finished: bool) -> Delta:
        """What this step shows; falsy when it shows nothing."""
        if self._first and pieces:
            self._first = False
            if self.parsing.needs_start_tag and pieces[0].mark != THINK_START:
                self.reasoning.ended = True
        shown = ""
        content: Sequence[Released] = pieces
        if not self.reasoning.ended:
            shown, content = self.reasoning.feed(pieces, finished=finished)
        text = "".join(piece.text for piece in content)
        delta = self.calls.feed(text) if self.parsing.calls else Delta(content=text or None)
        if shown and self.parsing.include_reasoning:
            delta.reasoning = shown
        return delta
