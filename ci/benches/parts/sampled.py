"""What rollouts trained, held against what the engines sampled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conformance.systems.engine import FakeEngine

JSON = Any


@dataclass
class Verdict:
    """Sampled tokens of all rollouts against the ledgers."""

    calls: int = 0
    lost: int = 0
    mixed: int = 0
    broken: list[str] = field(default_factory=list)


def compared(
    answers: Mapping[str, JSON], ledgers: dict[int, list[JSON]], first_run: int, turns: int, count: int
) -> Verdict:
    """Ids and log probs, to the last bit, in their order; of ``count`` runs from ``first_run`` on."""
    verdict = Verdict()
    for number in range(count):
        run = first_run + number
        rows = [row for row in ledgers.get(run, []) if row["state"] == "finished"]
        verdict.calls += len(rows)
        sampled = [pair for row in rows for pair in _pairs(row)]
        answer = answers.get(f"r{run}", {"outcome": None, "trajectories": [], "error": "no answer"})
        trained = [
            (token, probability)
            for each in answer["trajectories"]
            for token, mask, probability in zip(each["tokens"], each["mask"], each["log_probs"], strict=True)
            if mask
        ]
        known = set(sampled)
        verdict.lost += len(rows) if not trained else sum(_missing(row, set(trained)) for row in rows)
        verdict.mixed += sum(pair not in known for pair in trained)
        if answer["outcome"] != "clean" or trained != sampled or len(rows) != turns:
            why = answer.get("error") or answer.get("reason") or f"{len(trained)} of {len(sampled)} tokens"
            verdict.broken.append(f"r{run}: {answer['outcome']}, {len(rows)} calls, {why}")
    return verdict


def _missing(row: JSON, trained: set[tuple[int, float]]) -> bool:
    return any(pair not in trained for pair in _pairs(row))


def _pairs(row: JSON) -> list[tuple[int, float]]:
    return list(zip(row["generation_token_ids"], row["generation_log_probs"], strict=True))


async def ledgers_of(engines: Sequence[FakeEngine]) -> dict[int, list[JSON]]:
    """By run, the rows of its calls."""
    found: dict[int, list[JSON]] = {}
    for engine in engines:
        for row in await engine.ledger(tenant="main"):
            if row["endpoint"] == "chat":
                found.setdefault(row["run"], []).append(row)
    return found
