"""What happened in a scenario at a glance, from its evidence: the clients' calls, the engine's, the records kept."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance.report.lines import printable
from conformance.report.plain import JSON

MOST = 12
"""Steps that a column shows."""


@dataclass(frozen=True, slots=True)
class Step:
    """One call or record in a line; ``bad`` where it did not end well."""

    text: str
    bad: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """``more`` counts the steps that are left out."""

    title: str
    steps: tuple[Step, ...]
    more: int


def of(report_folder: Path, evidence: str) -> tuple[Column, ...]:
    """The columns that hold anything; none where the evidence cannot be read."""
    try:
        parts = json.loads((report_folder / evidence).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ()
    if not isinstance(parts, dict):
        return ()
    columns = {
        "client → system": list(_calls(parts.get("hops"))),
        "system → engine": list(_generations(parts.get("ledger"))),
        "records": list(_records(parts.get("records"))),
        "rebuild": list(_rebuilds(parts.get("rebuilds"))),
    }
    return tuple(
        Column(title, tuple(steps[:MOST]), max(len(steps) - MOST, 0)) for title, steps in columns.items() if steps
    )


def _calls(clients: JSON) -> Iterator[Step]:
    for client in _objects(clients):
        for exchange in _objects(client.get("exchanges")):
            request, response = _object(exchange.get("request")), _object(exchange.get("response"))
            ended, status = exchange.get("ended"), response.get("status")
            stream = " stream" if exchange.get("streamed") is True else ""
            outcome = f"{status or 'no answer'}{stream}{'' if ended == 'complete' else f', {ended}'}"
            text = f"{request.get('method')} {request.get('path')} → {outcome}"
            yield Step(_line(text), ended != "complete" or not isinstance(status, int) or status >= 400)


def _generations(rows: JSON) -> Iterator[Step]:
    for row in _objects(rows):
        sampled = row.get("generation_token_ids")
        count = f", {len(sampled)} tokens" if isinstance(sampled, list) else ""
        fault = f", fault {row['fault']}" if row.get("fault") else ""
        text = f"{row.get('endpoint')} → {row.get('status') or 'no answer'} {row.get('state')}{count}{fault}"
        yield Step(_line(text), row.get("state") != "finished")


def _records(sessions: JSON) -> Iterator[Step]:
    for session, records in _object(sessions).items():
        if isinstance(records, str):
            yield Step(_line(f"{session}: {records}"), bad=True)
        for record in _objects(records):
            sampled, valid = record.get("generation_token_ids"), record.get("is_valid") is True
            count = f"{len(sampled)} tokens" if isinstance(sampled, list) else "no tokens"
            yield Step(_line(f"{session}: {'valid' if valid else 'not valid'}, {count}"), not valid)


def _rebuilds(asked: JSON) -> Iterator[Step]:
    for one in _objects(asked):
        answer = _object(one.get("answer"))
        why = answer.get("reason_code") or _object(answer.get("error")).get("rule")
        withheld = ", withheld" if answer.get("withheld") is True else ""
        yield Step(_line(f"{answer.get('outcome') or 'no outcome'}{withheld}{f': {why}' if why else ''}"))


def _objects(value: JSON) -> Iterator[Mapping[str, JSON]]:
    if isinstance(value, list):
        yield from (entry for entry in value if isinstance(entry, dict))


def _object(value: JSON) -> Mapping[str, JSON]:
    return value if isinstance(value, dict) else {}


def _line(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= 160 else f"{shown[:120]} … {shown[-32:]}"
