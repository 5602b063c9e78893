"""A real vLLM as it tells of itself."""

import json
import urllib.request
from dataclasses import dataclass
from typing import Any

from fakes.vllm.tokenizer import END_OF_TEXT

PATIENCE_SECONDS = 10
MARKUP = ("<think>", "</think>", "<tool_call>", "</tool_call>")


class NoRealEngine(Exception):
    """Raised when nothing at an address answers as vLLM does; the message is one line."""


@dataclass(frozen=True, slots=True)
class RealEngine:
    """``url`` has no path; ``models`` are the names it serves, ``max_model_len`` is in tokens.

    ``markup`` are the tokens of tags that models write as one token, where this one has such; ``other_ends`` the end
    tokens besides that of a turn. A model that speaks noise would spell the one and take the other.
    """

    url: str
    models: tuple[str, ...]
    max_model_len: int
    version: str
    markup: tuple[int, ...]
    other_ends: tuple[int, ...]


def look_at(url: str) -> RealEngine:
    """Asks it for its models and its version. Blocks. Raises :class:`NoRealEngine`."""
    base = url.rstrip("/")
    try:
        cards = _asked(f"{base}/v1/models")["data"]
        version = str(_asked(f"{base}/version")["version"])
        lengths = {int(card["max_model_len"]) for card in cards}
        models = tuple(str(card["id"]) for card in cards)
        ends, markup = _single(base, models[0], (END_OF_TEXT,)), _single(base, models[0], MARKUP)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise NoRealEngine(f"--engine {url}: expected a vLLM that lists its models, seen: {error}") from None
    if len(lengths) != 1:
        raise NoRealEngine(f"--engine {url}: expected models of one length, seen {sorted(lengths)}")
    return RealEngine(base, models, lengths.pop(), version, markup, ends)


def _single(base: str, model: str, texts: tuple[str, ...]) -> tuple[int, ...]:
    """The tokens of those texts that are one token."""
    found = [_asked(f"{base}/tokenize", {"model": model, "prompt": text})["tokens"] for text in texts]
    return tuple(ids[0] for ids in found if len(ids) == 1)


def _asked(url: str, body: object = None) -> Any:
    sent = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, sent, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
        return json.load(answer)
