"""Single traits of what harnesses send: substitutes, last words of the assistant, kept connections, codings."""

import asyncio
from typing import Any

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.oracle import record_form
from conformance.oracle.chat_answers import json_object
from conformance.scenarios.harnesses.loops import generations, script
from conformance.systems.retrieval import Record
from fakes.harnesses.conversation import Conversation
from fakes.harnesses.plain import PlainClient, Reply

JSON = Any

BROKEN = '{"command": "ls'
"""Arguments that end too early."""


@covers("HAR-016")
async def test_the_substitute_for_a_malformed_call_is_recorded_as_it_was_sent(scene: Scene, check: Check) -> None:
    scopes = {name: [_malformed(tool), {"text": "{tag} Done."}] for name, tool in (("a", "bash"), ("b", "terminal"))}
    await script(scene, **scopes)
    substitutes = {"opencode": "invalid", "sdk": "_openhands_malformed_tool_call"}
    talks = await asyncio.gather(
        scene.opencode(scene.task(), session=scene.session("opencode")),
        scene.openhands_sdk(scene.task(scope=1), session=scene.session("sdk")),
    )
    for talk, (label, substitute) in zip(talks, substitutes.items(), strict=True):
        _sends_a_substitute(talk, substitute)
        captured = await scene.records(scene.session(label))
        check.equal("HAR-016", expected=2, seen=len(captured), where=f"records of {label}")
        sent: list[Record] = generations(talk)[-1].request.json_body()["messages"]
        for record in captured[1:]:
            check.that("HAR-016", record_form.tells_request(record, sent), label)


def _malformed(tool: str) -> dict[str, JSON]:
    call = {"id": "call_4f1e", "type": "function", "function": {"name": tool, "arguments": BROKEN}}
    said = "{tag} I look at all the files first."
    return {"text": said, "message": {"content": said, "tool_calls": [call]}}


def _sends_a_substitute(talk: Conversation, substitute: str) -> None:
    sent = generations(talk)[-1].request.body_text
    if substitute not in sent:
        raise Inconclusive(f"{talk.harness} sent no {substitute}: {talk.ended}, {talk.error}")


@covers("HAR-011", "HAR-012", "HAR-014")
async def test_kept_connections_codings_and_last_words_of_the_assistant_are_borne(scene: Scene, check: Check) -> None:
    scopes: dict[str, list[dict[str, JSON]]] = {f"kept_{n}": [{"text": "{tag} I look."}] for n in range(3)}
    scopes |= {"cut": [{"text": "{tag} I look."}, {"text": "{tag} Done."}]}
    scopes |= {f"coded_{n}": [{"text": "{tag} größer", "fault": fault}] for n, fault in enumerate((None, GZIP))}
    await script(scene, **scopes)
    await _over_one_connection(scene, check)
    await _last_words(scene, check)
    await _coded(scene, check)


async def _over_one_connection(scene: Scene, check: Check) -> None:
    """Session by session, and the first one once more."""
    if "session-opencode" not in scene.proxy.capabilities:
        return
    async with PlainClient(scene.proxy.url, keep_alive=True) as client:
        for scope in (0, 1, 2, 0):
            headers = dict(scene.proxy.carry(scene.session(f"kept {scope}"), by="session-opencode").headers)
            await client.chat(scene.task(scope=scope), model="policy-model", headers=headers)
    due = {f"kept {scope}": [scope] * (2 if scope == 0 else 1) for scope in range(3)}
    rows = {row["request_id"]: row["scope"] for row in await scene.ledger()}
    seen = {
        label: [rows.get(one.get("request_id")) for one in await scene.records(scene.session(label))] for label in due
    }
    check.equal("HAR-011", expected=due, seen=seen, where="the scopes of the calls in each session")


async def _last_words(scene: Scene, check: Check) -> None:
    """As opencode sends them, and takes them for a start of what comes."""
    said = [
        {"role": "system", "content": "You look at files."},
        {"role": "user", "content": scene.task(scope=3)},
        {"role": "assistant", "content": f"{scene.tag(1, 3)} I lo"},
    ]
    for stream in (True, False):
        reply = await scene.ask(said, stream=stream)
        seen = [reply.status, reply.ok, reply.text.strip()]
        check.equal("HAR-012", expected=[200, True, f"{scene.tag(2, 3)} Done."], seen=seen, where=f"stream {stream}")


GZIP = {"name": "gzip", "on_attempts": "all"}
ACCEPTED = ("gzip, deflate, br, zstd", "zstd,gzip", "identity", "")


async def _coded(scene: Scene, check: Check) -> None:
    """Whatever the engine did, the client can read what it gets by the head of the answer.

    Where an engine zips although the proxy had not said that it can read that, an error that can be read will do.
    """
    for scope, engine in ((4, "plain engine"), (5, "zipping engine")):
        for accepted in ACCEPTED:
            for model, stream in (("policy-model", False), ("policy-model", True), ("uncaptured", False)):
                headers = [("Accept-Encoding", accepted)] if accepted else []
                reply = await scene.ask(scene.task(scope=scope), model=model, stream=stream, headers=headers)
                coding = reply.header("content-encoding") or "identity"
                said = reply.text.strip() == f"{scene.tag(1, scope)} größer"
                unasked = scope == 5 and not _asks_for_gzip((await scene.ledger())[-1])
                readable = said or (unasked and json_object(body_of(reply)) is not None)
                ok = readable and (coding == "identity" or coding in accepted)
                where = f"{engine}, accepting {accepted or 'anything'}, {model}, stream {stream}"
                check("HAR-014", ok, expected="a body as its head says", seen=[coding, reply.text[:80]], where=where)


def _asks_for_gzip(row: dict[str, JSON]) -> bool:
    return any(name.lower() == "accept-encoding" and "gzip" in value for name, value in row["request"]["headers"])


def body_of(reply: Reply) -> str:
    return "" if reply.exchange.response is None else reply.exchange.response.body_text
