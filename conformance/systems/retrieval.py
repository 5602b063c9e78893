"""Records as a system hands them out, read into the contract's field names."""

import json
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
class DiskRecord:
    """A file where a record is expected. ``record`` is None if it does not hold a JSON object."""

    path: Path
    record: Record | None

    def place(self) -> tuple[bool, str, str]:
        """In the contract's order, by (``captured_at``, ``uuid``); without a record at the end."""
        record = self.record or {}
        return self.record is None, str(record.get("captured_at", "")), str(record.get("uuid", self.path.name))


def in_contract_form(raw: Record, fields: Mapping[str, str]) -> Record:
    """``raw`` itself if its names are the contract's; else the mapped fields that it has."""
    if not fields:
        return raw
    found = {name: _at(raw, path.split(".")) for name, path in fields.items()}
    return {name: value for name, value in found.items() if value is not _ABSENT}


_ABSENT = object()


def _at(value: JSON, path: list[str]) -> JSON:
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return _ABSENT
        value = value[name]
    return value


def read_file(path: Path, fields: Mapping[str, str]) -> DiskRecord:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        found = None
    return DiskRecord(path, in_contract_form(found, fields) if isinstance(found, dict) else None)


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
