"""A real vLLM as it tells of itself."""

import json
import urllib.request
from dataclasses import dataclass
from typing import Any

PATIENCE_SECONDS = 10


class NoRealEngine(Exception):
    """Raised when nothing at an address answers as vLLM does; the message is one line."""


@dataclass(frozen=True, slots=True)
class RealEngine:
    """``url`` has no path; ``models`` are the names it serves, ``max_model_len`` is in tokens."""

    url: str
    models: tuple[str, ...]
    max_model_len: int
    version: str


def look_at(url: str) -> RealEngine:
    """Asks it for its models and its version. Blocks. Raises :class:`NoRealEngine`."""
    base = url.rstrip("/")
    try:
        cards = _asked(f"{base}/v1/models")["data"]
        version = str(_asked(f"{base}/version")["version"])
        lengths = {int(card["max_model_len"]) for card in cards}
        models = tuple(str(card["id"]) for card in cards)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise NoRealEngine(f"--engine {url}: expected a vLLM that lists its models, seen: {error}") from None
    if len(lengths) != 1:
        raise NoRealEngine(f"--engine {url}: expected models of one length, seen {sorted(lengths)}")
    return RealEngine(base, models, lengths.pop(), version)


def _asked(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:
        return json.load(answer)
