"""Hundreds of conversations at once: none lost, none mixed."""

import asyncio
from collections.abc import Sequence

import pytest

from conformance.gauge.check import Check
from conformance.gauge.covers import covers, scripted
from conformance.gauge.scene import Record, Row, Scene
from conformance.gauge.world import World
from conformance.oracle import records
from conformance.oracle.same_answer import same_calls
from conformance.scenarios.concurrency.crowd import TURNS, Talk, play

RUNS = 4


@pytest.mark.timeout(160)  # a thousand calls, at a hundred a second and less
@scripted("its crowd is for an engine that answers at once")
@covers("CNC-001", "CNC-002")
async def test_256_conversations_of_4_turns_at_once(scene: Scene, world: World, check: Check) -> None:
    scenes = [scene, *(Scene(scene.engine, scene.proxy, world.next_run()) for _ in range(1, RUNS))]
    talks = [talk for of_run in await asyncio.gather(*map(play, scenes)) for talk in of_run]
    rows = {each.run: _by_scope(await each.ledger()) for each in scenes}
    captured = await asyncio.gather(*(talk.scene.records(talk.session) for talk in talks))
    for talk, of_session in zip(talks, captured, strict=True):
        own = rows[talk.scene.run].get(talk.scope, [])
        _check_records(check, talk, of_session, own)
        _check_answers(check, talk, own)


def _by_scope(rows: Sequence[Row]) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for row in rows:
        found.setdefault(row["scope"], []).append(row)
    return found


def _check_records(check: Check, talk: Talk, captured: list[Record], rows: list[Row]) -> None:
    seen = [len(captured), len(rows)]
    check("CNC-001", seen == [TURNS, TURNS], expected=f"{TURNS} records, {TURNS} calls", seen=seen, where=talk.name)
    check.that("CNC-001", records.none_lost(captured, rows), talk.name)
    check.that("CNC-001", records.law(captured, rows), talk.name)
    foreign = [record["session_id"] for record in captured if record.get("session_id") != talk.session]
    check("CNC-001", not foreign, expected=talk.session, seen=foreign, where=talk.name)


def _check_answers(check: Check, talk: Talk, rows: list[Row]) -> None:
    told = talk.conversation
    check("CNC-002", told.ended == "finished", expected="finished", seen=[told.ended, told.error], where=talk.name)
    for row, answer in zip(rows, told.answers, strict=False):
        where = f"{talk.name}, turn {row['turn']}"
        check.that("CNC-002", same_calls(row["message"]["tool_calls"], answer.get("tool_calls") or [], where))
