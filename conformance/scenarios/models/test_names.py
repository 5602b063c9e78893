"""Where a model name leads: to its route, exactly, or nowhere."""

import asyncio
import json
from typing import Any

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.scene import MODEL, Scene
from conformance.oracle import record_form
from conformance.systems import routing
from fakes.harnesses.plain import Reply

NO_ROUTES = (
    *("gpt-4o-mini", "tiny-background-model", "default", "*", routing.SERVED, "models"),
    *(MODEL.upper(), MODEL.title(), f"{MODEL} ", f" {MODEL}", MODEL[:-1], f"{MODEL}2", MODEL.replace("-", "_")),
    *(f"openai/{MODEL}", f"{MODEL}/", f"{MODEL}:latest", f"{MODEL}\n", f"vllm/{routing.SERVED}"),
)
NAMELESS = "Whoever reads this."
NO_MODELS: tuple[dict[str, Any], ...] = ({}, {"model": None}, {"model": ""}, {"model": 7}, {"model": [MODEL]})


@covers("MOD-007", "MOD-008", "MOD-009", "MOD-011")
async def test_a_name_that_is_no_route_leads_nowhere(scene: Scene, check: Check) -> None:
    await scene.script("one_answer")
    calls = [(name, stream, session) for name in NO_ROUTES for stream, session in ((False, ""), (True, None))]
    answers = await asyncio.gather(
        *(scene.ask(model=name, stream=stream, session=session) for name, stream, session in calls)
    )
    nameless = await asyncio.gather(*(_without_model(scene, model) for model in NO_MODELS))
    routes = [route.name for route in scene.proxy.routes]
    for (name, stream, _), answer in zip(calls, answers, strict=True):
        where = f"model {name!r}, stream {stream}"
        check.equal("MOD-007", expected=404, seen=answer.status, where=where)
        missing = [route for route in routes if route not in answer.text]
        check("MOD-008", not missing, expected=routes, seen=answer.text, where=where)
    for model, answer in zip(NO_MODELS, nameless, strict=True):
        seen = answer.status
        check(
            "MOD-011", seen is not None and 400 <= seen < 500, expected="a status of 4xx", seen=seen, where=str(model)
        )
    reached = [row["request"]["body_text"] for row in await scene.ledger(everything=True)]
    check.equal("MOD-009", expected=[], seen=[body[:200] for body in reached if NAMELESS not in body])
    await scene.ask()
    if len(await scene.ledger()) == len(reached):
        raise Inconclusive("the engine does not account for a call of a route either")


async def _without_model(scene: Scene, model: dict[str, Any]) -> Reply:
    body = {"messages": [{"role": "user", "content": scene.task(NAMELESS)}], **model}
    return await scene.client.post("/v1/chat/completions", body)


@covers("MOD-010")
async def test_two_names_of_one_target_are_served_and_recorded_alike(scene: Scene, check: Check) -> None:
    await scene.script("one_answer")
    messages = [{"role": "system", "content": "You are an agent."}, {"role": "user", "content": scene.task()}]
    answers = [await scene.ask(messages, model=name, temperature=0.5) for name in ("policy-model", "policy-twin")]
    captured, rows = await scene.records(), await scene.ledger()
    check.equal("MOD-010", expected=[200, 200], seen=[answer.status for answer in answers])
    check.equal("MOD-010", expected=answers[0].message, seen=answers[1].message, where="what the client was told")
    check.need("MOD-010", len(captured) == len(rows) == 2, expected="2 records", seen=f"{len(captured)} records")
    bodies = [json.loads(row["request"]["body_text"]) for row in rows]
    check.equal("MOD-010", expected=bodies[0], seen=bodies[1], where="what the engine was asked")
    check.that("MOD-010", record_form.same_but_for_ids_and_times(*captured))
