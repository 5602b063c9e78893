"""Calls that name no session: as if there were no proxy."""

import asyncio
import json
from typing import Any

from conformance.contract.difference import tree_difference
from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.oracle import chat_answers
from conformance.scenarios.sessions.filing import places
from fakes.harnesses.plain import Reply

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "execute_bash",
            "description": "Runs a command.",
            "parameters": {"type": "object", "properties": {"timeout": {"type": "number"}, "command": {}}},
        },
    }
]
PLAIN: dict[str, Any] = {
    "temperature": 0,
    "top_p": 0.9,
    "seed": 11,
    "max_tokens": 400,
    "logprobs": False,
    "include_reasoning": False,
    "user": "an-evaluation",
    "metadata": {"z": 1.0, "a": None},
    "tools": TOOLS,
}
CURIOUS: dict[str, Any] = {"temperature": 1.0, "n": 2, "logprobs": True, "top_logprobs": 2, "return_token_ids": True}
STREAMED: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": False}}
BODIES = tuple({**body, **streaming} for body in (PLAIN, CURIOUS) for streaming in ({"stream": False}, STREAMED))
ROUTES = ("policy-model", "uncaptured")
HEADERS = (("X-Request-Id", "f3c1"), ("Cookie", "session_id=cookie"), ("Authorization", "Bearer none-needed"))

OF_THE_PROXY = ("id", "created", "model")
"""What a proxy may write anew, at any depth: the name by which a client knows the model, and that of the answer."""


@covers("SES-014", "SES-015", "SES-016")
async def test_a_call_without_a_session_passes_as_if_no_proxy_were_there(scene: Scene, check: Check) -> None:
    calls = [(route, body) for route in ROUTES if scene.takes(model=route, session=False) for body in BODIES]
    turn = {
        "reasoning": "I should look.",
        "text": "{tag} I look.",
        "calls": [{"name": "execute_bash", "arguments": {"command": "ls", "timeout": 1.5}}],
    }
    scopes = {f"call_{scope}": {"turns": [turn]} for scope in range(len(calls) + 1)}
    await scene.script({"about": "One answer a call.", "sampling": "drifting", "scopes": scopes})
    bodies = [
        {"model": route, "messages": [{"role": "user", "content": scene.task(scope=scope)}], **body}
        for scope, (route, body) in enumerate(calls)
    ]
    answers = await asyncio.gather(
        *(scene.client.post("/v1/chat/completions", body, headers=HEADERS) for body in bodies)
    )
    await scene.ask(scene.task(scope=len(calls)))
    await _leave_no_record(scene, check, [f"{route}, {json.dumps(body)}" for route, body in calls])
    rows = {row["scope"]: row for row in await scene.engine.ledger(run=scene.run, answers=True)}
    for scope, (body, answer) in enumerate(zip(bodies, answers, strict=True)):
        row = rows.get(scope)
        _as_sent(check, body, scene.proxy.served(body["model"]), row)
        where = f"{body['model']}, stream {body['stream']}, n {body.get('n', 1)}"
        due = "no answer of the engine" if row is None or row["answer"] is None else _said_by_engine(row["answer"])
        check.equal("SES-016", expected=due, seen=_said_to_client(answer), where=where)


async def _leave_no_record(scene: Scene, check: Check, calls: list[str]) -> None:
    """The call behind these did name its session, and shows that records can be seen."""
    found = await places(scene, {scene.session()})
    check.equal("SES-014", expected=[scene.session()], seen=found.get(len(calls), []), where="the call with a session")
    for scope, call in enumerate(calls):
        check.equal("SES-014", expected=[], seen=found.get(scope, []), where=call)


def _as_sent(check: Check, body: dict[str, Any], served: str, row: dict[str, Any] | None) -> None:
    sent = {} if row is None else json.loads(row["request"]["body_text"])
    due = {**body, "model": served}
    difference = tree_difference(due, sent) or tree_difference(due.get("tools"), sent.get("tools"), key_order=True)
    where = f"{body['model']}: {difference}"
    check("SES-015", difference is None, expected=due, seen=sent, where=where)
    streamed = None if row is None else row["streamed"]
    check.equal("SES-015", expected=body["stream"], seen=streamed, where=f"{body['model']}: streamed by the engine")


def _said_to_client(reply: Reply) -> Any:
    text = "" if reply.exchange.response is None else reply.exchange.response.body_text
    return _said(reply.status, text, reply.ended, streamed=reply.exchange.streamed)


def _said_by_engine(sent: dict[str, Any]) -> Any:
    kinds = [value for name, value in sent["headers"] if name.lower() == "content-type"]
    streamed = any(kind.startswith("text/event-stream") for kind in kinds)
    return _said(sent["status"], sent["body_text"], "complete", streamed=streamed)


def _said(status: int | None, text: str, ended: str, *, streamed: bool) -> Any:
    """All that an answer tells; of a stream what its chunks say together, choice by choice."""
    if not streamed:
        return _lasting(chat_answers.json_object(text) or {"status": status, "text": text})
    choices = {index: _said_in(pieces) for index, pieces in chat_answers.by_index(text).items()}
    return {"ended": ended, "usage": chat_answers.reassemble(text).usage, "choices": choices}


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lasting(one) for key, one in value.items() if key not in OF_THE_PROXY}
    return [_lasting(one) for one in value] if isinstance(value, list) else value


def _said_in(pieces: list[dict[str, Any]]) -> dict[str, Any]:
    deltas = [chat_answers.delta_of(piece) for piece in pieces]
    calls = [chat_answers.function_of(call) for call in chat_answers.call_pieces(pieces)]
    told = [piece.get("logprobs") or {} for piece in pieces]
    return {
        "text": "".join(delta.get("content") or "" for delta in deltas),
        "reasoning": "".join(delta.get("reasoning") or "" for delta in deltas),
        "functions": [call["name"] for call in calls if call.get("name")],
        "arguments": "".join(call.get("arguments") or "" for call in calls),
        "finish_reason": [piece["finish_reason"] for piece in pieces if piece.get("finish_reason")],
        "log_probs": [entry for one in told for entry in one.get("content") or []],
        "token_ids": [token for piece in pieces for token in piece.get("token_ids") or []],
    }
