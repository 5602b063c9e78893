"""Answers that the engine cut or told oddly, and clients that ask for more or in an odd way."""

import asyncio
from typing import Any

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.scene import MODEL, Scene
from conformance.oracle import chat_answers, chat_errors, chat_stream, records, same_answer
from conformance.scenarios.errors.faults import CUTS, body_of, play, send
from fakes.harnesses.plain import Reply


@covers("STR-019")
async def test_an_answer_that_the_engine_cut_never_looks_complete(scene: Scene, check: Check) -> None:
    cut = await play(scene, CUTS)
    ways = [(name, stream, model) for name in CUTS for stream in (False, True) for model in (MODEL, "uncaptured")]
    # A stream that is only passed on shows the engine's own odd event, and that it went on behind it.
    ways.remove(("half an object", True, "uncaptured"))
    replies = await asyncio.gather(*(cut.start(name, stream=stream, model=model) for name, stream, model in ways))
    for (name, stream, model), reply in zip(ways, replies, strict=True):
        where = f"{name}, {model}, {'streamed' if stream else 'buffered'}"
        whole = reply.ended == "complete"
        judged = chat_errors.never_complete(reply.status, reply.exchange.streamed, body_of(reply), where, whole=whole)
        check.that("STR-019", judged)


@covers("STR-014")
async def test_odd_usage_and_text_in_parts_do_not_keep_a_stream_from_its_end(scene: Scene, check: Check) -> None:
    odd = {name: {"name": name} for name in ("usage_malformed", "usage_missing", "list_content")}
    told = await play(scene, odd)
    replies = await asyncio.gather(*(told.start(name, stream=True) for name in odd))
    rows = {row["scope"]: row for row in await scene.ledger()}
    for name, reply in zip(odd, replies, strict=True):
        check("STR-014", reply.ok, expected="a stream with its proper end", seen=body_of(reply)[-200:], where=name)
        check.that("STR-014", chat_stream.grammar(body_of(reply)))
        text = chat_answers.reassemble(body_of(reply)).content
        check.that("STR-014", same_answer.same_text(rows[told.scopes[name]]["message"]["content"], text, name))


@covers("STR-020")
async def test_a_client_that_asked_for_log_probs_gets_the_engines(scene: Scene, check: Check) -> None:
    await scene.script("one_answer")
    for stream in (False, True):
        reply = await scene.ask(stream=stream, logprobs=True, top_logprobs=2)
        rows = await scene.ledger()
        if len(rows) != 1 + stream:
            raise Inconclusive(f"the engine generated {len(rows)} times for {1 + stream} calls")
        row = rows[-1]
        entries = chat_answers.log_prob_entries(body_of(reply)) if stream else _entries(reply)
        told = [entry.get("logprob") for entry in entries]
        check.that("STR-020", records.same_list(row[records.LOG_PROBS], told, f"stream {stream}", float32=True))
        tops = {len(entry.get("top_logprobs") or []) for entry in entries}
        check.equal("STR-020", expected=[2], seen=sorted(tops), where="alternatives a token")


def _entries(reply: Reply) -> list[Any]:
    choices = chat_answers.choices_of(chat_answers.json_object(body_of(reply)) or {})
    told = choices[0].get("logprobs") if choices else None
    return (told.get("content") or []) if isinstance(told, dict) else []


READ_BY_THE_ENGINE: dict[Any, bool | None] = {
    1: True,
    "true": True,
    0: False,
    "false": False,
    "maybe": None,
    2.5: None,
}
"""How a real vLLM reads a stream flag that is no boolean; None where it refuses the call."""


@covers("STR-021")
async def test_an_odd_stream_flag_is_refused_or_read_as_the_engine_reads_it(scene: Scene, check: Check) -> None:
    await scene.script("one_answer")
    for flag, streams in READ_BY_THE_ENGINE.items():
        messages = [{"role": "user", "content": scene.task()}]
        reply = await send(scene, {"model": MODEL, "messages": messages, "stream": flag})
        refused = reply.status == 400
        ok = refused or (streams is not None and reply.ok and reply.exchange.streamed is streams)
        seen = {"status": reply.status, "a stream": reply.exchange.streamed, "whole": reply.ok}
        check("STR-021", ok, expected={"status": 400, "or a stream": streams}, seen=seen, where=f"stream: {flag!r}")
