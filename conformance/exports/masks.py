"""A check of the loss mask that any consumer can run on its own rows: ``tokens``, ``mask``, ``log_probs``.

What a row says of itself is held against the contract; with the engine's ledger, every token that is masked in is
held against what was sampled.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.exports.columns import read_columns
from conformance.exports.errors import ExportError
from conformance.oracle.law import Breach, by_prompt_length, sampled_in
from conformance.oracle.records import LARGEST_LOG_PROB, is_log_prob

JSON = Any

COLUMNAR = (".parquet", ".arrow")
LISTS = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")


@dataclass
class Checked:
    """What was looked at. ``faults`` are lines: which row, what was expected, what was seen."""

    rows: int = 0
    tokens: int = 0
    trained: int = 0
    withheld: int = 0
    sampled: int | None = None
    faults: list[str] = field(default_factory=list)

    def line(self) -> str:
        known = "" if self.sampled is None else f" · {self.sampled} in the ledger"
        counts = f"{self.tokens} tokens · {self.trained} trained · {self.withheld} withheld{known}"
        return f"{self.rows} rows · {counts} · {len(self.faults)} faults"


def check(file: Path, ledger: Path | None = None) -> Checked:
    """Looks at every row. Raises ExportError for a file that cannot be read; a faulty row hides no other."""
    found = Checked()
    engine = None if ledger is None else _ledger_rows(ledger)
    by_size = None if engine is None else by_prompt_length(engine)
    taken: set[int] = set()
    seen_uuids: dict[str, int] = {}
    for number, row in enumerate(read_rows(file), start=1):
        where = f"row {number}" + (f" (session {row['session_id']})" if row.get("session_id") else "")
        found.rows += 1
        faults = [f"{where}: {fault}" for fault in row_faults(row)]
        found.faults += faults
        for uuid in _uuids(row):
            if uuid in seen_uuids:
                found.faults.append(f"{where}: record {uuid} stands in row {seen_uuids[uuid]} too; it is for one")
            seen_uuids.setdefault(uuid, number)
        if faults:
            continue
        _count(found, row)
        if by_size is not None:
            try:
                for _ in sampled_in({**row, "record_uuids": _uuids(row)}, by_size, taken):
                    pass
            except Breach as breach:
                told = breach.judgement
                found.faults.append(f"{where}: expected {told.expected}, seen {told.seen!r}, {told.where}")
    if engine is not None:
        found.sampled = sum(len(row["generation_token_ids"] or ()) for row in engine)
    if not found.rows:
        found.faults.append(f"{file}: no row, so nothing was checked")
    return found


def _uuids(row: Mapping[str, JSON]) -> list[str]:
    uuids = row.get("record_uuids")
    return [uuid for uuid in uuids if isinstance(uuid, str)] if isinstance(uuids, list) else []


def _count(found: Checked, row: Mapping[str, JSON]) -> None:
    sampled = sum(row["mask"])
    found.tokens += len(row["tokens"])
    if row.get("withheld"):
        found.withheld += sampled
    else:
        found.trained += sampled


def row_faults(row: Mapping[str, JSON]) -> Iterator[str]:
    """What one row breaks by itself; nothing more is looked at once a column is missing or of another length."""
    columns = {name: row.get(name) for name in ("tokens", "mask", "log_probs")}
    for name, values in columns.items():
        if not isinstance(values, list):
            yield f"{name}: expected a list, seen {type(values).__name__}"
            return
    lengths = {name: len(values or ()) for name, values in columns.items()}
    if len(set(lengths.values())) != 1:
        yield f"tokens, mask and log_probs: expected one length, seen {lengths}"
        return
    uuids, withheld = row.get("record_uuids"), row.get("withheld")
    if uuids is not None and not (isinstance(uuids, list) and all(isinstance(uuid, str) for uuid in uuids)):
        yield f"record_uuids: expected a list of strings, seen {uuids!r:.80}"
    if withheld is not None and type(withheld) is not bool:
        yield f"withheld: expected true or false, seen {withheld!r:.80}"
    tokens, mask, log_probs = columns["tokens"] or [], columns["mask"] or [], columns["log_probs"] or []
    yield from _first(tokens, lambda value: type(value) is int and value >= 0, "tokens", "an id, 0 or more")
    odd = list(_first(mask, lambda value: type(value) is int and value in (0, 1), "mask", "0 or 1"))
    yield from odd
    if odd:
        return
    yield from _log_prob_faults(mask, log_probs)
    if not any(mask) and not row.get("withheld"):
        yield "mask: expected a sampled token in a row that is not withheld, seen none"


def _log_prob_faults(mask: Sequence[int], log_probs: Sequence[JSON]) -> Iterator[str]:
    present = [0 if value is None else 1 for value in log_probs]
    if present != mask:
        at = next(n for n, (bit, own) in enumerate(zip(mask, present, strict=True)) if bit != own)
        expected = "a log prob where mask is 1" if mask[at] else "null where mask is 0"
        yield f"log_probs[{at}]: expected {expected}, seen {log_probs[at]!r}"
    given = [value for value in log_probs if value is not None]
    yield from _first(given, is_log_prob, "log_probs", f"a finite number, at most {LARGEST_LOG_PROB}")


def _first(values: Sequence[JSON], holds: Callable[[JSON], bool], name: str, expected: str) -> Iterator[str]:
    wrong = next((value for value in values if not holds(value)), _NONE)
    if wrong is not _NONE:
        yield f"{name}: expected {expected}, seen {wrong!r:.80}"


_NONE = object()


def read_rows(file: Path) -> Iterator[dict[str, JSON]]:
    """Rows of a Parquet or Arrow file, by its ending; else one JSON object a line."""
    if not file.is_file():
        raise ExportError(f"{file}: there is no such file")
    if file.suffix in COLUMNAR:
        yield from read_columns(file)
        return
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _object(line, f"{file}:{number}")
    except (OSError, UnicodeDecodeError) as error:
        raise ExportError(f"{file}: {error}") from None


def _object(line: str, where: str) -> dict[str, JSON]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ExportError(f"{where}: no JSON: {error}") from None
    if not isinstance(value, dict):
        raise ExportError(f"{where}: expected an object, seen {type(value).__name__}")
    return value


def _ledger_rows(file: Path) -> list[dict[str, JSON]]:
    """As the fake engine's ``GET /_fake/ledger`` answers, or one row a line."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ExportError(f"{file}: {error}") from None
    try:
        value = json.loads(text)
        rows = value["rows"] if isinstance(value, dict) and "rows" in value else [value]
    except (ValueError, RecursionError):
        rows = [_object(line, str(file)) for line in text.splitlines() if line.strip()]
    if not isinstance(rows, list):
        raise ExportError(f"{file}: rows: expected a list, seen {type(rows).__name__}")
    for row in rows:
        if not isinstance(row, dict) or not {"seq", "prompt_token_ids", "generation_token_ids"} <= row.keys():
            raise ExportError(
                f"{file}: a row of a ledger has seq, prompt_token_ids, generation_token_ids; seen {row!r:.80}"
            )
    sampled = [row for row in rows if row["generation_token_ids"]]
    for row in sampled:
        if not all(isinstance(row.get(key), list) for key in LISTS):
            raise ExportError(f"{file}: a generation in a ledger has lists {', '.join(LISTS)}; seen {row!r:.80}")
    return sampled


def summary(checked: Iterable[str], most: int = 20) -> list[str]:
    """The first faults, and how many more there are."""
    lines = list(checked)
    return [*lines[:most], *([f"and {len(lines) - most} more"] if len(lines) > most else [])]
