"""The three lists of a record are the engine's own, for that call and no other."""

import asyncio
from collections.abc import Iterable

from conformance.contract.difference import tree_difference
from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.scene import Record, Row, Scene
from conformance.oracle import records
from conformance.systems import routing
from conformance.systems.calls import call

LISTS = (
    ("CAP-002", "prompt_token_ids"),
    ("CAP-003", "generation_token_ids"),
    ("CAP-004", "generation_log_probs"),
)

BEYOND_ANY_VOCABULARY = [201_087, 2**31 - 1, 0, 999_999]
NEAR_THE_EDGES = [-0.0, 0.0, -1.401298464324817e-45, -9998.9990234375, -1.1920928955078125e-07]
"""Values of a float32 that a careless writer rounds, drops or takes for nothing."""


def same_lists(check: Check, captured: Iterable[Record], rows: Iterable[Row]) -> None:
    captured, rows = list(captured), list(rows)
    for requirement, field in LISTS:
        check.that(requirement, records.same_field(captured, rows, field))


@covers("CAP-001", "CAP-002", "CAP-003", "CAP-004")
async def test_two_agents_whose_tokens_no_tokenizer_gives_back(scene: Scene, check: Check) -> None:
    await scene.script("records/two_agents")
    first, second = scene.session("first"), scene.session("second")
    talks = await asyncio.gather(
        scene.openhands_nv(scene.task(scope=0), session=first),
        scene.openhands_sdk(scene.task(scope=1), session=second, stream=True),
    )
    rows = await scene.ledger()
    for scope, (session, talk) in enumerate(zip((first, second), talks, strict=True)):
        captured = await scene.records(session)
        own = [row for row in rows if row["scope"] == scope]
        asked = f"{len(talk.exchanges)} calls, each answered by the engine and recorded once"
        seen = f"{len(own)} calls at the engine, {len(captured)} records"
        check("CAP-001", len(captured) == len(talk.exchanges) == len(own), expected=asked, seen=seen)
        check.that("CAP-001", records.none_lost(captured, own))
        same_lists(check, captured, own)


@covers("CAP-002", "CAP-003", "CAP-004")
async def test_ids_and_log_probs_at_the_edges_of_their_types_are_kept(scene: Scene, check: Check) -> None:
    odd_ids = {"ids": ["{tag} Odd ones: ", *BEYOND_ANY_VOCABULARY]}
    odd_log_probs = {
        "returns": False,
        "attempts": [{"ids": [100 + n for n in range(len(NEAR_THE_EDGES))], "log_probs": NEAR_THE_EDGES}],
    }
    script = {
        "about": "Ids outside of the vocabulary, and log probs at the edges of float32.",
        "sampling": "drifting",
        "scopes": {"ids": {"turns": [odd_ids]}, "log_probs": {"turns": [odd_log_probs]}},
    }
    await scene.script(script)
    await asyncio.gather(*(scene.ask(scene.task(scope=scope), stream=scope == 0) for scope in (0, 1)))
    captured, rows = await scene.records(), await scene.ledger()
    same_lists(check, captured, rows)
    check("CAP-003", len(captured) == 2, expected="2 records", seen=f"{len(captured)} records")


@covers("CAP-005")
async def test_log_probs_of_64_bits_are_kept(scene: Scene, check: Check) -> None:
    await scene.script("tool_loop", tenant="precise")
    await scene.openhands_nv(model="precise")
    captured, rows = await scene.records(), await scene.ledger()
    check.that("CAP-005", records.same_field(captured, rows, records.LOG_PROBS, float32=False))


@covers("CAP-006")
async def test_the_tokenize_endpoint_knows_less_than_the_answer(scene: Scene, check: Check) -> None:
    """An effort of none changes the template; only the chat endpoint is told of it."""
    await scene.script("one_answer")
    messages = [{"role": "user", "content": scene.task()}]
    await scene.ask(messages, reasoning_effort="none")
    body = {"model": routing.SERVED, "messages": messages}
    url = scene.engine.address("main").removesuffix("/v1")
    other: list[int] = (await call("POST", url, path="/tokenize", json_body=body)).json()["tokens"]
    rows = await scene.ledger()
    if not rows:
        raise Inconclusive("the call did not reach the engine")
    if tree_difference(rows[0]["prompt_token_ids"], other) is None:
        raise Inconclusive("the engine's tokenize endpoint gave the ids of the answer")
    check.that("CAP-006", records.same_field(await scene.records(), rows, "prompt_token_ids"))
