"""Is what was captured what was sampled?"""

import math
import sys
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

from conformance.contract.difference import list_difference
from conformance.oracle.judgement import Judgement, nothing_to_judge
from conformance.oracle.matching import GENERATING, Matched, Record, Row, match

LOG_PROBS = "generation_log_probs"
LARGEST_LOG_PROB = 1e-3
"""Float noise above zero that the contract still takes for a log prob."""
NO_ENTRY = -9999.0
"""vLLM's value for a position without an entry."""


def triple(record: Record, row: Row) -> Judgement:
    """The three lists of a record equal the engine's, every id, and every log prob to the last bit of its float32.

    An engine computes log probs as float32, and a trainer reads them as such: what a JSON reader does to the last bit
    of a double that stands for one is nobody's loss.
    """
    for field in ("prompt_token_ids", "generation_token_ids", LOG_PROBS):
        judged = same_list(row[field], record.get(field), f"{name(record)} {field}", float32=field == LOG_PROBS)
        if not judged:
            return judged
    return Judgement(True, "the engine's three lists", "the engine's three lists", name(record))


def same_field(records: Iterable[Record], rows: Iterable[Row], field: str, *, float32: bool = True) -> Judgement:
    """One of the three lists, over all records that have a ledger row; records of which none has one are wrong too.

    Log probs as ``float32`` or to the last bit of a double.
    """
    records = list(records)
    if not records:
        return nothing_to_judge("record")
    pairs = match(records, rows).pairs
    for record, row in pairs:
        narrow = float32 and field == LOG_PROBS
        judged = same_list(row[field], record.get(field), f"{name(record)} {field}", float32=narrow)
        if not judged:
            return judged
    return Judgement(bool(pairs), f"the engine's {field}", f"{len(pairs)} records compared")


def same_list(expected: Sequence[Any] | None, seen: Any, where: str, *, float32: bool = False) -> Judgement:
    """Equality in values, types and, for floats, bits. The judgement shows a window around the first difference.

    With ``float32`` floats are the same that are the same as one.
    """
    if not isinstance(seen, list) or expected is None:
        return Judgement(seen is None and expected is None, _size(expected), _size(seen), where)
    difference = list_difference(expected, seen)
    if difference is not None and float32 and _all_floats(expected) and _all_floats(seen):
        difference = list_difference(array("f", expected), array("f", seen))
    if difference is None:
        return Judgement(True, _size(expected), _size(seen), where)
    wanted, found = difference.shown()
    return Judgement(False, wanted, found, f"{where} from index {difference.index} on")


def law(records: Iterable[Record], rows: Iterable[Row]) -> Judgement:
    """Every record that calls itself valid holds exactly what the engine sampled in one call of its own."""
    records = list(records)
    if not records:
        return nothing_to_judge("record")
    told = [record for record in records if record.get("is_valid") is not False]
    matched = match(told, rows)
    if matched.unmatched:
        stray = matched.unmatched[0]
        return Judgement(False, "a ledger row for each valid record", "no such row", name(stray))
    for record, row in matched.pairs:
        judged = triple(record, row)
        if not judged:
            return judged
    return Judgement(True, f"{len(told)} valid records, each its row", f"{len(matched.pairs)} pairs")


def none_lost(records: Iterable[Record], rows: Iterable[Row]) -> Judgement:
    """Every finished generation has its record. The rows are those of captured calls that carried a session."""
    rows = list(rows)
    if not any(row["endpoint"] in GENERATING and row["state"] == "finished" for row in rows):
        return nothing_to_judge("call that the engine finished")
    matched: Matched = match(records, rows)
    if matched.untold:
        row = matched.untold[0]
        return Judgement(
            False,
            "a record for each finished call",
            f"{len(matched.untold)} finished calls without one",
            f"ledger row {row['seq']} ({row['request_id']})",
        )
    return Judgement(True, "a record for each finished call", f"{len(matched.pairs)} records")


def thrown_away_told(records: Iterable[Record], rows: Iterable[Row], calls: int) -> Judgement:
    """What was generated beyond the ``calls`` of a client was thrown away; it has records, and they are invalid."""
    records = list(records)
    judged = none_lost(records, rows)
    if not judged:
        return judged
    valid = sum(record.get("is_valid") is not False for record in records)
    return Judgement(valid <= calls, f"at most {calls} valid records, one a call", f"{valid} of {len(records)} valid")


def broken_promise(record: Record) -> str | None:
    """The first promise of ``is_valid`` that a record breaks on its own, or None. Contract §1, "What is recorded"."""
    for rule, holds in (
        ("request_id is a non-empty string", _is_text(record.get("request_id"))),
        ("model is a non-empty string", _is_text(record.get("model"))),
        ("prompt_token_ids is a non-empty list of ids", _are_ids(record.get("prompt_token_ids"))),
        ("generation_token_ids is a non-empty list of ids", _are_ids(record.get("generation_token_ids"))),
        ("generation_log_probs are log probs", _are_log_probs(record.get("generation_log_probs"))),
    ):
        if not holds:
            return rule
    if len(record["generation_log_probs"]) != len(record["generation_token_ids"]):
        return "one log prob per generated id"
    return None


def is_log_prob(value: Any) -> bool:
    """A finite number that an engine may have reported, whatever its type."""
    if type(value) is int:  # of any size: math.isfinite cannot take those beyond every float
        return NO_ENTRY != value <= 0 and value > -sys.float_info.max
    return type(value) is float and math.isfinite(value) and NO_ENTRY != value <= LARGEST_LOG_PROB


def name(record: Record) -> str:
    return f"record {record.get('uuid')}"


def _all_floats(values: Sequence[Any]) -> bool:
    return set(map(type, values)) == {float}


def _size(values: Any) -> str:
    return f"{len(values)} values" if isinstance(values, list | tuple) else repr(values)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _are_ids(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(one) is int and one >= 0 for one in value)


def _are_log_probs(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_log_prob, value))
