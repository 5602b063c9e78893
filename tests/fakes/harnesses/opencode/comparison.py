"""Whether the fake's requests have the form of the recorded ones, session by session."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fakes.harnesses.exchanges import Sent
from tests.fakes.harnesses.recorded_form import departures, head_departures

RECORDINGS = Path(__file__).parents[3] / "data" / "opencode"
OF_THE_RUN = frozenset(
    {"Host", "Content-Length", "Authorization", "x-session-id", "x-session-affinity", "x-parent-session-id"}
)
"""Headers whose values no two runs share; which sessions they name is compared by `families`."""

_SAME_TOOLS = re.compile(r"<same as first tools list in this file: (\d+) tools>")


def recorded(name: str) -> list[dict[str, Any]]:
    requests: list[dict[str, Any]] = json.loads((RECORDINGS / f"{name}.json").read_text())["requests"]
    return requests


def text_length(shape: str) -> int | None:
    found = re.fullmatch(r"<text:(\d+) chars>", shape)
    return None if found is None else int(found[1])


def body_differences(seen: Any, shape: Any) -> list[str]:
    """Where a body departs from the recorded form; tools are compared by their names and the form around them."""
    offered = tool_differences(seen["tools"], shape["tools"]) if "tools" in seen and "tools" in shape else []
    if list(seen) != list(shape):
        return [f"expected keys {list(shape)}, seen {list(seen)}"]
    return [*offered, *differences_of({**seen, "tools": None}, {**shape, "tools": None})]


def tool_differences(seen: Any, shape: Any) -> list[str]:
    names = [tool["function"]["name"] for tool in seen]
    if isinstance(shape, str):
        same = _SAME_TOOLS.fullmatch(shape)
        return [] if same is not None and len(names) == int(same[1]) else [f"expected {shape}, seen {len(names)} tools"]
    wanted = [tool if isinstance(tool, str) else tool["function"]["name"] for tool in shape]
    if names != wanted:
        return [f"expected tools {wanted}, seen {names}"]
    pairs = [(mine, theirs) for mine, theirs in zip(seen, shape, strict=True) if not isinstance(theirs, str)]
    forms = [(_keys(mine), _keys(theirs)) for mine, theirs in pairs]
    return [f"expected a tool of the form {theirs}, seen {mine}" for mine, theirs in forms if mine != theirs]


def _keys(tool: dict[str, Any]) -> tuple[list[str], ...]:
    return list(tool), list(tool["function"]), list(tool["function"]["parameters"])


def differences_of(seen: Any, shape: Any, at: str = "body") -> list[str]:
    """Where a value departs from the recorded form."""
    return departures(seen, shape, _own_forms, at)


def _own_forms(seen: Any, shape: Any, at: str) -> list[str] | None:
    if isinstance(shape, str) and (length := text_length(shape)) is not None:
        as_told = isinstance(seen, str) and bool(seen) == bool(length)
        return [] if as_told else [f"{at}: expected {shape}, seen {seen!r}"]
    if isinstance(shape, dict) and "__json_string__" in shape:
        return _json_string_differences(seen, shape["keys"], at)
    return None


def _json_string_differences(seen: Any, keys: Any, at: str) -> list[str]:
    try:
        value = json.loads(seen)
    except (TypeError, ValueError):
        return [f"{at}: expected JSON, seen {seen!r}"]
    if json.dumps(value, separators=(",", ":"), ensure_ascii=False) != seen:
        return [f"{at}: expected compact JSON, seen {seen!r}"]
    return differences_of(value, keys, at)


def head_differences(seen: Sent, request: dict[str, Any]) -> list[str]:
    return head_departures(seen, request, OF_THE_RUN)


def by_session(requests: list[Sent]) -> list[list[Sent]]:
    grouped: dict[str | None, list[Sent]] = {}
    for request in requests:
        grouped.setdefault(request.header("x-session-id"), []).append(request)
    return list(grouped.values())


def recorded_by_session(name: str) -> list[list[dict[str, Any]]]:
    grouped: dict[str, list[dict[str, Any]]] = {}
    for request in recorded(name):
        grouped.setdefault(dict(map(tuple, request["headers"]))["x-session-id"], []).append(request)
    return list(grouped.values())


def families(requests: list[Sent]) -> set[tuple[int, ...]]:
    return set(_numbered({name.lower(): value for name, value in request.headers} for request in requests))


def recorded_families(name: str) -> set[tuple[int, ...]]:
    return set(_numbered(dict(map(tuple, request["headers"])) for request in recorded(name)))


def _numbered(heads: Iterator[dict[str, str]] | Any) -> Iterator[tuple[int, ...]]:
    """Per request the session, the affinity and the parent it names, numbered by first appearance."""
    numbers: dict[str | None, int] = {None: 0}
    for head in heads:
        named = (head.get(name) for name in ("x-session-id", "x-session-affinity", "x-parent-session-id"))
        yield tuple(numbers.setdefault(one, len(numbers)) for one in named)
