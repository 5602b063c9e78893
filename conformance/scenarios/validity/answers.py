"""Answers of the engine, healthy and odd, each asked for once buffered and once streamed, in a session of its own."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from conformance.gauge.scene import MODEL, Record, Row, Scene
from conformance.systems import routing
from conformance.systems.retrieval import RetrievalFailed
from fakes.harnesses.plain import Call, Reply

JSON = Any

TEXT = "{tag} The build fails because the header is missing."


@dataclass(frozen=True, slots=True)
class Case:
    """``what`` is said in the report; ``body`` goes into the client's call; ``turn`` is the model's whole turn.

    ``gives`` are the lists of sampled tokens that the engine's answer holds in the chat dialect, or a part of them.
    """

    requirement: str
    what: str
    fault: dict[str, JSON] | None = None
    body: dict[str, JSON] = field(default_factory=dict)
    turn: dict[str, JSON] = field(default_factory=lambda: {"text": TEXT})
    model: str = MODEL
    gives: frozenset[str] = frozenset({"generation_token_ids", "generation_log_probs"})


@dataclass(frozen=True, slots=True)
class Played:
    """What came of one call: the client's answer, the session's records and the engine's row.

    ``unreadable`` says why the records could not be had: an answer may spoil the session that it is recorded in.
    """

    case: Case
    stream: bool
    reply: Reply
    records: list[Record]
    row: Row
    unreadable: str | None = None

    @property
    def where(self) -> str:
        return f"{self.case.what}, {'streamed' if self.stream else 'buffered'}"

    @property
    def record(self) -> Record:
        """The record of the call; empty if there is none."""
        return self.records[0] if self.records else {}

    @property
    def says_valid(self) -> bool:
        """Whether any record of the call may be taken for valid: what is not marked as invalid counts as valid."""
        return any(record.get("is_valid") is not False for record in self.records)


def odd(at: str, value: JSON) -> dict[str, JSON]:
    """The fault that puts another value at a JSON pointer into the answer."""
    return {"name": "odd_value", "options": {"at": at, "value": value}}


async def play(scene: Scene, cases: Sequence[Case]) -> list[Played]:
    """All calls at once. Each case is a scope of the run; both ways of asking get the same sample."""
    scopes = {f"case-{number:02}": {"turns": [_turn(case)]} for number, case in enumerate(cases)}
    about = "Answers of one turn each, healthy and odd."
    for tenant in {routing.route(case.model).tenant for case in cases}:
        await scene.script({"about": about, "sampling": "drifting", "scopes": scopes}, tenant=tenant)
    modes = [stream for stream in (False, True) if scene.takes(stream=stream)]
    played = [(number, case) for number, case in enumerate(cases) if scene.takes(model=case.model)]
    ways = [(number, case, stream) for number, case in played for stream in modes]
    replies = await asyncio.gather(*(_ask(scene, *way) for way in ways))
    captured = await asyncio.gather(*(_records(scene, _session(scene, number, stream)) for number, _, stream in ways))
    rows = {row["scope"]: row for row in await scene.ledger()}
    return [
        Played(case, stream, reply, records, rows[number], unreadable)
        for (number, case, stream), reply, (records, unreadable) in zip(ways, replies, captured, strict=True)
    ]


async def _records(scene: Scene, session: str) -> tuple[list[Record], str | None]:
    try:
        return await scene.records(session), None
    except RetrievalFailed as error:
        return [], str(error)


def _ask(scene: Scene, number: int, case: Case, stream: bool) -> Call:
    session = _session(scene, number, stream)
    return scene.start(scene.task(scope=number), session=session, model=case.model, stream=stream, **case.body)


def _turn(case: Case) -> dict[str, JSON]:
    return case.turn if case.fault is None else {**case.turn, "fault": {**case.fault, "on_attempts": "all"}}


def _session(scene: Scene, number: int, stream: bool) -> str:
    return scene.session(f"{number:02}-{'streamed' if stream else 'buffered'}")
