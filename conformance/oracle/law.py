"""The law on a rollout, token by token, from the engine's ledger alone.

Every token that is masked in was sampled; it stands once, with its own log prob, behind exactly the tokens that were
in the model's window when it was sampled. And none is missing: trained + withheld + excluded = sampled.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conformance.oracle.judgement import Judgement
from conformance.oracle.matching import Record, Row, match
from conformance.oracle.rollouts import Answer, Trajectory, trained, view_shape

HELD = Judgement(True, "each sampled token once, as it was sampled", "each sampled token once, as it was sampled")


@dataclass
class Account:
    """What became of each generation: sequence numbers of ledger rows. ``law`` tells the first breach, if any."""

    trained: list[int] = field(default_factory=list)
    withheld: list[int] = field(default_factory=list)
    excluded: list[int] = field(default_factory=list)
    law: Judgement = HELD


class Breach(Exception):
    """Raised where a sequence masks in what the ledger does not know; ``judgement`` says what and where."""

    def __init__(self, expected: Any, seen: Any, where: str) -> None:
        self.judgement = Judgement(False, expected, seen, where)


def account(answer: Answer, records: Sequence[Record], rows: Sequence[Row]) -> Account:
    """Places every generation that was recorded. ``rows`` may hold others, which nothing may be trained of."""
    found = Account()
    row_of = {record["uuid"]: row for record, row in match(records, rows).pairs}
    try:
        _place(found, answer, row_of)
    except Breach as breach:
        found.law = breach.judgement
    return found


def _place(found: Account, answer: Answer, row_of: Mapping[str, Row]) -> None:
    told = sorted(row_of.values(), key=lambda row: int(row["seq"]))
    by_size = by_prompt_length(told)
    taken: set[int] = set()
    trainable = [id(one) for one in trained(answer)]
    for trajectory in answer["trajectories"]:
        home = found.trained if id(trajectory) in trainable else found.withheld
        for row in sampled_in(trajectory, by_size, taken):
            home.append(row["seq"])
    _place_excluded(found, answer, row_of, taken)
    lost = [row["seq"] for row in told if row["seq"] not in taken]
    if lost:
        raise Breach("trained, withheld or excluded", "nowhere", f"the generation of ledger row {lost[0]}")


def by_prompt_length(rows: Iterable[Row]) -> dict[int, list[Row]]:
    """The generations of a ledger by where in a sequence they can stand."""
    found: dict[int, list[Row]] = {}
    for row in rows:
        if row["generation_token_ids"]:
            found.setdefault(len(row["prompt_token_ids"]), []).append(row)
    return found


def sampled_in(trajectory: Trajectory, by_size: Mapping[int, list[Row]], taken: set[int]) -> Iterator[Row]:
    """The rows whose generations are masked in, each found by its whole context and all of its log probs.

    ``taken`` are sequence numbers of rows that are placed already; those found are added. Raises Breach.
    """
    tokens, mask, log_probs = trajectory["tokens"], trajectory["mask"], trajectory["log_probs"]
    where = f"trajectory of {trajectory['record_uuids']}"
    shaped = view_shape(trajectory)
    if not shaped:
        raise Breach(shaped.expected, shaped.seen, where)
    sampled = bytes(mask)
    at = sampled.find(1)
    while at >= 0:
        row = _row_at(at, tokens, mask, log_probs, by_size.get(at, []), taken, where)
        taken.add(row["seq"])
        yield row
        at = sampled.find(1, at + len(row["generation_token_ids"]))


def _row_at(
    at: int,
    tokens: Sequence[int],
    mask: Sequence[int],
    log_probs: Sequence[float | None],
    candidates: Sequence[Row],
    taken: set[int],
    where: str,
) -> Row:
    again = False
    for row in candidates:
        end = at + len(row["generation_token_ids"])
        if (
            tokens[at:end] == row["generation_token_ids"]
            and log_probs[at:end] == row["generation_log_probs"]
            and tokens[:at] == row["prompt_token_ids"]
            and all(mask[at:end])
        ):
            if row["seq"] not in taken:
                return row
            again = True
    seen = "a generation that is masked in already" if again else tokens[at : at + 8]
    expected = "a generation of the ledger, once, behind its own prompt, with its own log probs"
    raise Breach(expected, seen, f"{where}, position {at}")


def _place_excluded(found: Account, answer: Answer, row_of: Mapping[str, Row], taken: set[int]) -> None:
    """An excluded record stands for a row that no trajectory holds: its own, or that of an equal call."""
    named = Counter(one["record_uuid"] for one in answer["excluded"])
    for uuid, count in named.items():
        row = row_of.get(uuid)
        if row is None:
            continue
        if count > 1:
            raise Breach("excluded once", f"excluded {count} times", f"record {uuid}")
        if row["seq"] in taken:
            row = next((one for one in row_of.values() if one["seq"] not in taken and _equal(one, row)), None)
        if row is None:
            raise Breach("excluded or in a trajectory", "both", f"record {uuid}")
        taken.add(row["seq"])
        found.excluded.append(row["seq"])


def _equal(one: Row, other: Row) -> bool:
    keys = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")
    return all(one[key] == other[key] for key in keys)
