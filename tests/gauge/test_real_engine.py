"""``trackgauge run --real-engine``: what is played, skipped with its reason and left out. The engine here is a fake."""

import asyncio
from collections.abc import Iterator

import pytest

from conformance.systems import engine, routing
from tests.gauge.suite import Suite

SCENARIOS = """
from conformance.gauge.covers import scripted

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

TURN = {"text": "{tag} Well."}
FAULT = {**TURN, "fault": {"name": "cut_stream"}}


@pytest.fixture
def anyio_backend():
    return "asyncio"


@covers("CAP-001")
async def test_an_answer(scene, check):
    await scene.script("one_answer")
    reply = await scene.ask()
    rows = await scene.ledger()
    check("CAP-001", [row["request_id"] for row in rows] == [reply.answer.request_id], seen=rows)


@covers("CAP-002")
async def test_a_fault(scene, check):
    await scene.script("one_answer", fault={"name": "cut_stream"})
    check("CAP-002", False)


@covers("CAP-003")
async def test_another_length(scene, check):
    await scene.ask(model="short-context")
    check("CAP-003", False)


@scripted("it counts on no time at all")
@covers("CAP-004")
async def test_in_no_time(scene, check):
    check("CAP-004", False)


@covers("STR-001", "STR-002")
async def test_shapes(scene, check):
    played = await scene.script_shapes(
        {"about": "Two.", "scopes": {"cut": {"turns": [FAULT]}, "whole": {"turns": [TURN]}}}
    )
    check("STR-001", list(played["scopes"]) == ["whole"], seen=played)


@covers("REB-001")
def test_no_engine(check):
    check("REB-001", False)
"""

SKIPPED = {
    "CAP-002": "a real engine has no fault cut_stream (scopes.main.turns[0])",
    "CAP-003": "a real engine has max_model_len 131072, and not 2048",
    "CAP-004": "needs the fake engine: it counts on no time at all",
    "STR-002": "a real engine has no fault cut_stream (scopes.cut.turns[0])",
}


@pytest.fixture
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    started = engine.start_engine(tmp_path_factory.mktemp("engine"))
    asyncio.run(started.tenant("default", routing.tenants()["main"]))
    yield started.url
    started.close()


def test_what_a_real_engine_cannot_do_is_skipped_with_the_reason_and_the_rest_is_judged(suite: Suite, url: str) -> None:
    ran = suite.run(SCENARIOS, "--real-engine", url)
    assert ran.verdicts == {"CAP-001": "pass", "STR-001": "pass", **dict.fromkeys(SKIPPED, "skip")}, ran.output
    assert {identity: ran.result(identity)["reason"] for identity in SKIPPED} == SKIPPED
    assert ran.status == 0


def test_without_a_real_engine_nothing_is_played(suite: Suite) -> None:
    ran = suite.run(SCENARIOS, "--real-engine", "http://127.0.0.1:1")
    assert ran.status == 4
    assert "the recorder of a real vLLM did not start" in ran.output
    assert "expected a vLLM that lists its models" in ran.output
