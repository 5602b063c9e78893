"""Which captured record tells of which ledger row. One to one, never by guess."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Record = dict[str, Any]
Row = dict[str, Any]

GENERATING = frozenset({"chat", "completions", "generate"})
"""The ledger's endpoints that sample tokens."""

_Key = Callable[[dict[str, Any]], object]


@dataclass(frozen=True, slots=True)
class Matched:
    """``unmatched`` are records no row explains; ``untold`` are rows of generated answers that no record tells of."""

    pairs: list[tuple[Record, Row]]
    unmatched: list[Record]
    untold: list[Row]


def match(records: Iterable[Record], rows: Iterable[Row]) -> Matched:
    """Match by request id, else by exact generation ids, else by exact prompt ids."""
    left = list(records)
    open_rows = [row for row in rows if row["endpoint"] in GENERATING]
    pairs: list[tuple[Record, Row]] = []
    for of_record, of_row in _KEYS:
        left, open_rows = _pair_up(left, open_rows, of_record, of_row, pairs)
    untold = [row for row in open_rows if row["state"] == "finished"]
    return Matched(pairs, left, untold)


def _pair_up(
    records: Sequence[Record],
    rows: Sequence[Row],
    of_record: _Key,
    of_row: _Key,
    pairs: list[tuple[Record, Row]],
) -> tuple[list[Record], list[Row]]:
    waiting: dict[object, list[Row]] = {}
    for row in rows:
        key = of_row(row)
        if key is not None:
            waiting.setdefault(key, []).append(row)
    left: list[Record] = []
    taken: set[int] = set()
    for record in records:
        key = of_record(record)
        candidates = waiting.get(key) if key is not None else None
        if candidates:
            row = candidates.pop(0)
            taken.add(id(row))
            pairs.append((record, row))
        else:
            left.append(record)
    return left, [row for row in rows if id(row) not in taken]


def _request_id(value: dict[str, Any]) -> object:
    found = value.get("request_id")
    return found if isinstance(found, str) and found else None


def _ids(field: str) -> _Key:
    def key(value: dict[str, Any]) -> object:
        found = value.get(field)
        if not isinstance(found, list) or not found:
            return None
        return tuple(found) if all(type(one) is int for one in found) else None

    return key


_KEYS: tuple[tuple[_Key, _Key], ...] = (
    (_request_id, _request_id),
    (_ids("generation_token_ids"), _ids("generation_token_ids")),
    (_ids("prompt_token_ids"), _ids("prompt_token_ids")),
)
