"""Does a client get what the engine said: text, calls, counts."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from conformance.contract.difference import tree_difference
from conformance.oracle.chat_answers import function_of
from conformance.oracle.judgement import Judgement

Call = dict[str, Any]
COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")


def same_text(expected: str | None, seen: Any, where: str) -> Judgement:
    """Equal to the character; no text and empty text are the same."""
    given = "" if seen is None else seen
    if given == (expected or ""):
        return Judgement(True, expected, seen, where)
    return Judgement(False, *_around(expected or "", given), where)


def same_calls(expected: Iterable[Call], seen: Iterable[Call], where: str) -> Judgement:
    """Each of the engine's calls by its id, in whatever order: its name, and its arguments equal as JSON."""
    given = {call.get("id"): call for call in seen}
    for call in expected:
        wanted, got = function_of(call), function_of(given.get(call["id"], {}))
        place = f"{where}, call {call['id']}"
        if got.get("name") != wanted.get("name"):
            return Judgement(False, wanted.get("name"), got.get("name"), place)
        if not same_arguments(wanted.get("arguments"), got.get("arguments")):
            return Judgement(False, *_around(wanted.get("arguments") or "", got.get("arguments")), place)
    return Judgement(True, "the engine's calls", "the engine's calls", where)


def same_order(expected: Iterable[Call], seen: Iterable[Call], where: str) -> Judgement:
    """As many calls as the engine made, in its order."""
    ids, given = [call.get("id") for call in expected], [call.get("id") for call in seen]
    return Judgement(ids == given, ids, given, where)


def same_arguments(expected: Any, seen: Any) -> bool:
    """The same text, or equal as JSON: numbers by form, key order kept. No arguments are ``{}``, however written."""
    if expected == seen:
        return True
    try:
        return tree_difference(_read(expected), _read(seen)) is None
    except (ValueError, RecursionError):
        return False


def same_usage(expected: Any, seen: Any, where: str) -> Judgement:
    """The engine's numbers, whatever details stand beside them."""
    wanted, told = _counts(expected), _counts(seen)
    return Judgement(bool(told) and tree_difference(wanted, told) is None, wanted, told, where)


def _counts(usage: Any) -> dict[str, Any]:
    return {key: usage[key] for key in COUNTS if key in usage} if isinstance(usage, dict) else {}


def _read(arguments: Any) -> Any:
    if not isinstance(arguments, str | None):
        raise ValueError("arguments are a text of JSON")
    return json.loads(arguments or "{}")


def _around(expected: str, seen: Any) -> tuple[Any, Any]:
    """The two texts from a little before their first difference."""
    if not isinstance(seen, str):
        return expected[:80], seen
    at = max(0, _first_difference(expected, seen) - 20)
    return f"{len(expected)} characters, from {at}: {expected[at : at + 60]}", f"{len(seen)}: {seen[at : at + 60]}"


def _first_difference(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
