"""The form of a request, and where two requests differ in it.

Method, path, header names in order and case, key order, types, nulls, string or list form, roles, literal values; not
the wording of prompts, the length of texts, or the schemas of tools. What the model said is compared as it stands,
since both clients were told the same; ids are compared by which of them are equal.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fakes.harnesses.exchanges import Exchange

JSON = Any
RUN = re.compile(r"(?:⟦|\\u27e6)(\d{6}):(\d{2}):\d{4}(?:⟧|\\u27e7)")
"""A tag, its brackets as they are or escaped."""

ID_KEYS = frozenset({"id", "tool_call_id", "call_id", "tool_use_id", "prompt_cache_key", "session_id", "thread_id"})
"""Compared by which of them are the same within a request, not by value."""
SCHEMA_KEYS = frozenset({"parameters", "input_schema"})
UNORDERED_KEYS = frozenset({"client_metadata"})
"""Objects that the real client itself writes in another order every time."""
LITERAL_KEYS = frozenset({"role", "type", "name", "model", "tool_choice", "effort", "status", "phase", "format"})
"""Strings whose value is part of the form."""
RUN_HEADERS = re.compile(
    r"host|content-length|authorization|x-api-key|.*session.*|.*thread-id|.*request-id|.*window-id|.*turn-metadata"
    r"|x-claude-code-.*-id|x-stainless-runtime-version|x-stainless-arch|traceparent"
)
"""Headers whose values depend on the run or the machine."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to compare. ``lane`` tells the conversation it belongs to: the scope of its first tag, and whether
    tools are offered; requests of one lane come in the same order from both clients.
    """

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: JSON
    lane: tuple[str, bool]

    @classmethod
    def all_of(cls, exchanges: Sequence[Exchange]) -> "list[Asked]":
        return [cls.of(exchange) for exchange in exchanges]

    @classmethod
    def of(cls, exchange: Exchange) -> "Asked":
        request = exchange.request
        text = request.body_text
        body = json.loads(text) if text else None
        first = RUN.search(json.dumps(body, ensure_ascii=False) if body is not None else "")
        lane = (first[2] if first else request.method, bool(isinstance(body, dict) and body.get("tools")))
        return cls(request.method, request.path, request.headers, body, lane)


def compare(real: Sequence[Asked], fake: Sequence[Asked]) -> list[str]:
    """Each difference as one line: the lane and number of the request, the key, what the fake and the real one sent."""
    found: list[str] = []
    for lane in dict.fromkeys(asked.lane for asked in (*real, *fake)):
        mine = [asked for asked in real if asked.lane == lane]
        theirs = [asked for asked in fake if asked.lane == lane]
        name = f"scope {lane[0]}{'' if lane[1] else ' without tools'}"
        if len(mine) != len(theirs):
            found.append(f"{name}: the real one sent {len(mine)} requests, the fake {len(theirs)}")
        for number, (one, other) in enumerate(zip(mine, theirs, strict=False)):
            found += [f"{name}, request {number}: {difference}" for difference in differences(one, other)]
    return found


def differences(real: Asked, fake: Asked) -> list[str]:
    if (real.method, real.path) != (fake.method, fake.path):
        return [f"real {real.method} {real.path}, fake {fake.method} {fake.path}"]
    return [*_headers(real, fake), *_Bodies().walk(real.body, fake.body, "body")]


def _headers(real: Asked, fake: Asked) -> list[str]:
    names, others = [name for name, _ in real.headers], [name for name, _ in fake.headers]
    if names != others:
        odd = [f"header {name}: only the real one sends it" for name in names if name not in others]
        odd += [f"header {name}: only the fake sends it" for name in others if name not in names]
        return odd or [f"header order: real {names}, fake {others}"]
    return [
        f"header {name}: real {value!r}, fake {other!r}"
        for (name, value), (_, other) in zip(real.headers, fake.headers, strict=True)
        if value != other and not RUN_HEADERS.fullmatch(name.lower())
    ]


class _Bodies:
    """One pair of bodies; it remembers which ids stand for each other."""

    def __init__(self) -> None:
        self._ids: tuple[dict[str, int], dict[str, int]] = ({}, {})

    def walk(self, real: JSON, fake: JSON, at: str, *, generated: bool = False) -> list[str]:
        key = at.rpartition(".")[2].partition("[")[0]
        if type(real) is not type(fake):
            return [f"{at}: real {_shown(real)}, fake {_shown(fake)}"]
        if isinstance(real, dict):
            if key in SCHEMA_KEYS:
                return []
            return self._objects(real, fake, at, key, generated=generated)
        if isinstance(real, list):
            if len(real) != len(fake):
                return [f"{at}: real {len(real)} items, fake {len(fake)}: {_shown(real)}, {_shown(fake)}"]
            pairs = enumerate(zip(real, fake, strict=True))
            return [
                found for n, (one, other) in pairs for found in self.walk(one, other, f"{at}[{n}]", generated=generated)
            ]
        same = self._same_text(real, fake, key, generated=generated) if isinstance(real, str) else real == fake
        return [] if same else [f"{at}: real {_shown(real)}, fake {_shown(fake)}"]

    def _objects(
        self, real: dict[str, JSON], fake: dict[str, JSON], at: str, key: str, *, generated: bool
    ) -> list[str]:
        if key in UNORDERED_KEYS:
            real, fake = dict(sorted(real.items())), dict(sorted(fake.items()))
        if list(real) != list(fake):
            odd = [f"{at}.{name}: only the real one sends it" for name in real if name not in fake]
            odd += [f"{at}.{name}: only the fake sends it" for name in fake if name not in real]
            return odd or [f"{at}: key order: real {list(real)}, fake {list(fake)}"]
        by_model = generated or real.get("role") == "assistant" or real.get("type") == "function_call"
        return [found for key in real for found in self.walk(real[key], fake[key], f"{at}.{key}", generated=by_model)]

    def _same_text(self, real: str, fake: str, key: str, *, generated: bool) -> bool:
        if key in ID_KEYS:
            mine, theirs = self._ids
            return mine.setdefault(real, len(mine)) == theirs.setdefault(fake, len(theirs))
        if key in LITERAL_KEYS or generated:
            return _without_run(real) == _without_run(fake)
        return bool(real) == bool(fake)


def _without_run(text: str) -> str:
    return RUN.sub(lambda tag: tag[0].replace(tag[1], "000000", 1), text)


def _shown(value: JSON) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 160 else f"{text[:160]}… ({len(text)} characters)"
