"""Where a request of a fake departs from the recorded one: the walk that all recordings share.

Recordings have forms of their own for what they leave out, as ``<text:3 chars>``; each client's tests read theirs.
"""

from collections.abc import Callable, Set
from typing import Any

from fakes.harnesses.exchanges import Sent
from tests.fakes.harnesses.conftest import Seen

OwnForms = Callable[[Any, Any, str], list[str] | None]
"""Of what was seen, the recorded shape and its place: the differences, or None if the shape is none of those forms."""


def departures(seen: Any, shape: Any, own_forms: OwnForms, at: str = "body") -> list[str]:
    """One line each: types, keys and their order, lengths and values are those of the recording."""
    told = own_forms(seen, shape, at)
    if told is not None:
        return told
    if type(seen) is not type(shape):
        return [f"{at}: expected {shape!r}, seen {seen!r}"]
    if isinstance(shape, dict):
        if list(seen) != list(shape):
            return [f"{at}: expected keys {list(shape)}, seen {list(seen)}"]
        return [found for key in shape for found in departures(seen[key], shape[key], own_forms, f"{at}.{key}")]
    if isinstance(shape, list):
        if len(seen) != len(shape):
            return [f"{at}: expected {len(shape)} items, seen {len(seen)}"]
        pairs = enumerate(zip(seen, shape, strict=True))
        return [found for n, (one, other) in pairs for found in departures(one, other, own_forms, f"{at}[{n}]")]
    return [] if seen == shape else [f"{at}: expected {shape!r}, seen {seen!r}"]


def head_departures(seen: Seen | Sent, request: dict[str, Any], of_the_run: Set[str]) -> list[str]:
    """Method, path, header names in order and case, and values, but for those of the headers ``of_the_run``."""
    if (seen.method, seen.path) != (request["method"], request["path"]):
        return [f"expected {request['method']} {request['path']}, seen {seen.method} {seen.path}"]
    names, wanted = [name for name, _ in seen.headers], [name for name, _ in request["headers"]]
    if names != wanted:
        return [f"expected headers {wanted}, seen {names}"]
    pairs = zip(seen.headers, request["headers"], strict=True)
    return [
        f"{name}: expected {want!r}, seen {got!r}"
        for (name, got), (_, want) in pairs
        if name not in of_the_run and got != want
    ]
