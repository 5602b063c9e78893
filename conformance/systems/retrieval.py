"""Records as a system hands them out, read into the contract's field names."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.systems.calls import Answer, SystemFailed

JSON = Any
Record = dict[str, JSON]


class RetrievalFailed(SystemFailed):
    """Raised when the proxy does not hand out what it is declared to hand out. The message is one line."""


@dataclass(frozen=True, slots=True)
class Form:
    """How a system's record becomes the contract's: ``fields`` as in a profile; ``flagged`` if it marks invalid ones.

    Where it marks none, a record counts as valid that is whole: nothing else tells its reader not to train on it.
    """

    fields: Mapping[str, str]
    flagged: bool = True


@dataclass(frozen=True, slots=True)
class DiskRecord:
    """A file where a record is expected. ``record`` is None if it does not hold a JSON object."""

    path: Path
    record: Record | None

    def place(self) -> tuple[bool, str, str]:
        """In the contract's order, by (``captured_at``, ``uuid``); without a record at the end."""
        record = self.record or {}
        return self.record is None, str(record.get("captured_at", "")), str(record.get("uuid", self.path.name))


def in_contract_form(raw: Record, form: "Form") -> Record:
    """``raw`` itself if its names are the contract's; else the mapped fields that it has."""
    found = raw
    if form.fields:
        at = {name: _first(raw, paths.split("|")) for name, paths in form.fields.items()}
        found = {name: value for name, value in at.items() if value is not _ABSENT}
    return found if form.flagged else {**found, "is_valid": looks_whole(found)}


def looks_whole(record: Record) -> bool:
    """Whether whoever trains on a record without a mark would take it: ids in both lists, and a number for each id."""
    prompt, generation = record.get("prompt_token_ids"), record.get("generation_token_ids")
    log_probs = record.get("generation_log_probs")
    if not all(isinstance(one, list) and one for one in (prompt, generation, log_probs)):
        return False
    ids = [*(prompt or ()), *(generation or ())]
    whole = all(map(_is_id, ids)) and all(map(_is_number, log_probs or ()))
    return whole and len(generation or ()) == len(log_probs or ())


def _is_id(value: JSON) -> bool:
    return type(value) is int and value >= 0


def _is_number(value: JSON) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


_ABSENT = object()


def _first(value: JSON, paths: list[str]) -> JSON:
    """What the first of these paths leads to that leads anywhere."""
    found = (_at(value, path.split(".")) for path in paths)
    return next((one for one in found if one is not _ABSENT), _ABSENT)


def _at(value: JSON, path: list[str]) -> JSON:
    """A step is a key, a place in a list, or ``*``: what the rest leads to in each entry, null where nowhere."""
    for number, name in enumerate(path):
        if name == "*" and isinstance(value, list):
            found = [_at(entry, path[number + 1 :]) for entry in value]
            return [None if entry is _ABSENT else entry for entry in found]
        if isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        elif isinstance(value, dict) and name in value:
            value = value[name]
        else:
            return _ABSENT
    return value


def read_file(path: Path, form: "Form") -> DiskRecord:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        found = None
    return DiskRecord(path, in_contract_form(found, form) if isinstance(found, dict) else None)


def rows_of(answer: Answer, key: str, what: str) -> list[dict[str, JSON]]:
    """The list of objects under ``key``, the answer itself for "". Raises :class:`RetrievalFailed` naming ``what``."""
    if answer.status != 200:
        raise RetrievalFailed(f"{what}: expected 200, seen {answer.status} {answer.text[:200]}")
    try:
        found = answer.json()
    except (ValueError, RecursionError):
        raise RetrievalFailed(f"{what}: expected JSON, seen {answer.text[:200]!r}") from None
    rows = found if not key else found.get(key) if isinstance(found, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise RetrievalFailed(
            f"{what}: expected a list of objects in {key or 'the answer'!r}, seen {answer.text[:200]!r}"
        )
    return rows
