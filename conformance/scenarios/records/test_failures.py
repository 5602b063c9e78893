"""What is recorded of calls that went wrong somewhere, and of those that were made again."""

import asyncio
import json
from typing import Any

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.scene import Playbook, Record, Scene
from conformance.oracle import record_form, records
from conformance.oracle.chat_answers import json_object
from conformance.oracle.matching import match
from conformance.scenarios.errors.faults import body_of
from conformance.systems import routing

JSON = Any

PLAUSIBLE = json.dumps(
    {
        "id": "chatcmpl-from-nowhere",
        "object": "chat.completion",
        "created": 1,
        "model": routing.SERVED,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Nobody sampled this."},
                "logprobs": {"content": [{"token": "token_id:7", "logprob": -0.5, "bytes": [], "top_logprobs": []}]},
                "finish_reason": "stop",
                "stop_reason": None,
                "token_ids": [7],
            }
        ],
        "usage": {"prompt_tokens": 2, "completion_tokens": 1, "total_tokens": 3},
        "prompt_token_ids": [5, 6],
    }
)
"""A whole answer as far as its body goes."""

IS_JSON = {"Content-Type": "application/json"}
ERRORS: dict[str, JSON] = {
    "fails": {"name": "http_error", "status": 500},
    "refuses": {"name": "http_error", "status": 400},
    "is too busy": {"name": "http_error", "status": 503, "headers": {"Retry-After": "1"}},
    "fails with an answer": {"name": "http_error", "status": 500, "headers": IS_JSON, "raw": PLAUSIBLE},
    "fails with status 200": {
        "name": "not_json",
        "headers": IS_JSON,
        "raw": '{"error": {"message": "EngineDeadError", "type": "InternalServerError", "param": null, "code": 500}}',
    },
}
FRAGMENTS: dict[str, JSON] = {
    "is a page": {"name": "not_json"},
    "is cut": {"name": "cut_stream", "at_token": 3},
    "ends early": {"name": "cut_clean", "at_token": 3},
    "breaks off inside": {"name": "bad_json", "at_token": 3},
    "never begins": {"name": "close_before_headers"},
    "is a list": {"name": "list_body"},
    "goes on behind its end": {"name": "not_json", "headers": IS_JSON, "raw": f"{PLAUSIBLE}\n<html>reset</html>"},
}


def all_going_wrong(faults: dict[str, JSON]) -> Playbook:
    """A scope for each fault, which strikes at every attempt, and a healthy one behind them."""
    scopes = {
        what: {"turns": [{"text": "{tag} This is never told whole.", "fault": {**fault, "on_attempts": "all"}}]}
        for what, fault in faults.items()
    }
    scopes["is well"] = {"turns": [{"text": "{tag} This is told whole."}]}
    return {"about": "An engine that fails in many ways.", "sampling": "drifting", "scopes": scopes}


async def valid_after(scene: Scene, faults: dict[str, JSON]) -> dict[str, list[Record]]:
    """The records that call themselves valid after a call, buffered and streamed, of each fault.

    Raises Inconclusive where a healthy call leaves no record either.
    """
    await scene.script(all_going_wrong(faults))
    plays = [(what, scope, stream) for scope, what in enumerate(faults) for stream in (False, True)]
    sessions = [scene.session(f"{what}, streamed: {stream}") for what, _, stream in plays]
    calls = zip(plays, sessions, strict=True)
    await asyncio.gather(
        *(scene.ask(scene.task(scope=scope), session=session, stream=stream) for (_, scope, stream), session in calls)
    )
    asked = {row["scope"] for row in await scene.ledger()}
    if len(asked) < len(faults):
        raise Inconclusive(f"the engine was asked in {len(asked)} of {len(faults)} scopes")
    healthy = scene.session("healthy")
    await scene.ask(scene.task(scope=len(faults)), session=healthy)
    if not await scene.records(healthy):
        raise Inconclusive("a healthy call left no record either")
    captured = {session: await scene.records(session) for session in sessions}
    return {session: [one for one in of_it if one.get("is_valid") is not False] for session, of_it in captured.items()}


@covers("CAP-025")
async def test_engine_answers_that_are_errors(scene: Scene, check: Check) -> None:
    for session, valid in (await valid_after(scene, ERRORS)).items():
        check("CAP-025", not valid, expected="no valid record", seen=valid[:1], where=session)


@covers("CAP-026")
async def test_engine_answers_that_are_no_answers(scene: Scene, check: Check) -> None:
    for session, valid in (await valid_after(scene, FRAGMENTS)).items():
        check("CAP-026", not valid, expected="no valid record", seen=valid[:1], where=session)


@covers("CAP-025", "CAP-001")
async def test_an_agent_that_tries_again_after_an_error(scene: Scene, check: Check) -> None:
    await scene.script("one_answer", fault={"name": "http_error", "status": 503})
    talk = await scene.openhands_sdk()
    captured, rows = await scene.records(), await scene.ledger()
    valid = [one for one in captured if one.get("is_valid") is not False]
    if [row["state"] for row in rows] != ["failed", "finished"]:
        raise Inconclusive(f"expected an error and an answer, seen {[row['state'] for row in rows]}")
    if not valid:
        check.nothing("CAP-025", "valid record, even of the answer,")
    check("CAP-025", len(valid) <= 1, expected="one valid record, of the answer", seen=f"{len(valid)} valid records")
    check.that("CAP-001", records.none_lost(captured, rows))
    answers = len(talk.answers)
    check("CAP-001", len(valid) == answers, expected=f"{answers} valid records", seen=f"{len(valid)} valid records")


@covers("CAP-029")
async def test_a_client_that_lost_the_answer_and_asks_again(scene: Scene, check: Check) -> None:
    await scene.script("one_answer", attempts="fresh")
    lost = scene.start(stream=True)
    lost.watch.after_events = 1
    await lost
    for _ in range(2):
        await scene.ask()
    captured, rows = await scene.records(), await scene.ledger()
    check.that("CAP-029", records.law(captured, rows))
    check.that("CAP-029", records.none_lost(captured, rows[1:]))


@covers("CAP-028")
async def test_lone_surrogates_on_either_side_do_no_harm(scene: Scene, check: Check) -> None:
    """A proxy may refuse those in a request; what it answers it records."""
    answer = {"turns": [{"text": "{tag} An emoji that broke: ", "fault": {"name": "lone_surrogate"}}]}
    plain = {"turns": [{"text": "{tag} I see no emoji."}]}
    script = {"about": "Half of an emoji.", "sampling": "drifting", "scopes": {"asked": plain, "answered": answer}}
    await scene.script(script)
    asked = [{"role": "user", "content": f"{scene.task(scope=0)} \ud83d \udc00 end"}]
    carried = scene.proxy.carry(scene.session())
    body = {"model": "policy-model", "messages": asked, **(carried.body or {})}
    path = f"{carried.base_path}/chat/completions"
    replies = await asyncio.gather(
        scene.client.post(path, json.dumps(body).encode(), headers=list(carried.headers)),
        scene.ask(scene.task(scope=1)),
    )
    read = [(json_object(body_of(reply)), reply.message) for reply in replies if reply.status == 200]
    answers = {body.get("id"): message for body, message in read if body is not None}
    captured, rows = await scene.records(), await scene.ledger()
    seen = f"{len(captured)} records"
    check("CAP-028", len(captured) == len(answers), expected=f"{len(answers)} records, one an answer", seen=seen)
    check.that("CAP-028", records.law(captured, rows))
    for record, row in match(captured, rows).pairs:
        if row["request_id"] in answers:
            check.that("CAP-028", record_form.tells_answer(record, {"message": answers[row["request_id"]]}))
        if row["scope"] == 0:
            check.that("CAP-028", record_form.tells_request(record, asked))
