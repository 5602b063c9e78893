"""Every shape of answer, streamed and buffered, beside the engine's own account of it."""

from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.oracle import chat_answers, chat_stream, same_answer
from conformance.oracle.chat_answers import function_of
from conformance.scenarios.streams.shapes import BROKEN_CALLS, TOOLS, WITHOUT_ARGUMENTS, Told, told
from fakes.harnesses.plain import Reply


@covers(
    *("STR-001", "STR-002", "STR-003", "STR-004", "STR-005", "STR-006", "STR-007"),
    *("STR-010", "STR-011", "STR-012", "STR-015"),
)
async def test_a_stream_is_well_formed_and_says_what_the_engine_said(scene: Scene, check: Check) -> None:
    [streamed] = await told(scene, lambda task: scene.start(task, stream=True, tools=TOOLS))
    for one in streamed:
        body = _body(one.got)
        check.that("STR-001", chat_stream.framing(one.got.header("content-type"), body))
        check.that("STR-002", chat_stream.ends_once(body))
        check.that("STR-007", chat_stream.calls_opened_once(body))
        check.that("STR-010", chat_stream.one_finish(body))
        check.that("STR-011", chat_stream.nothing_behind_finish(body))
        check.that("STR-012", chat_stream.usage_once(body))
        check.that("STR-015", chat_stream.one_head(body))
        _says_what_the_engine_said(check, one, chat_answers.reassemble(body))


def _says_what_the_engine_said(check: Check, one: Told, seen: chat_answers.ChatAnswer) -> None:
    where, engine = f"{one.shape}, streamed", one.engine
    check.equal("STR-010", expected=engine.finish_reason, seen=seen.finish_reason, where=where)
    check.that("STR-012", same_answer.same_usage(one.row["usage"], seen.usage, where))
    check.that("STR-003", same_answer.same_text(engine.content, seen.content, where))
    check.that("STR-004", same_answer.same_text(engine.reasoning, seen.reasoning, where))
    check.that("STR-006", same_answer.same_order(engine.tool_calls, seen.tool_calls, where))
    if one.shape not in BROKEN_CALLS:
        check.that("STR-005", same_answer.same_calls(engine.tool_calls, seen.tool_calls, where))


@covers("STR-008", "STR-009", "STR-013", "STR-016", "STR-017")
async def test_a_buffered_answer_is_the_engines_and_a_stream_means_the_same(scene: Scene, check: Check) -> None:
    whole, bare = await told(
        scene,
        lambda task: scene.start(task, tools=TOOLS),
        lambda task: scene.start(task, tools=TOOLS, stream=True, stream_options=None),
    )
    for one, other in zip(whole, bare, strict=True):
        where = f"{one.shape}, buffered"
        body, stream = _body(one.got), _body(other.got)
        answer = chat_answers.json_object(body) or {}
        seen, streamed = chat_answers.buffered(answer), chat_answers.reassemble(stream)
        check.equal("STR-017", expected=_plain(one.engine), seen=_plain(seen), where=where)
        check.that("STR-017", same_answer.same_usage(one.row["usage"], seen.usage, where))
        check.that("STR-013", chat_stream.choice_everywhere(stream))
        check.that("STR-016", chat_answers.unasked([answer]))
        check.that("STR-016", chat_answers.unasked(chat_answers.chunks(stream)[1]))
        if one.shape in WITHOUT_ARGUMENTS:
            check.equal("STR-008", expected=_meaning(seen), seen=_meaning(streamed), where=one.shape)
        if one.shape in BROKEN_CALLS:
            for due, got, how in ((one.engine, seen, where), (other.engine, streamed, f"{one.shape}, streamed")):
                check.equal("STR-009", expected=_but_thoughts(due), seen=_but_thoughts(got), where=how)


def _meaning(answer: chat_answers.ChatAnswer) -> list[Any]:
    """What the arguments of each call read as; null and empty text are no JSON, and read as nothing."""
    found = [function_of(call).get("arguments") for call in answer.tool_calls]
    return [chat_answers.json_object(one) if isinstance(one, str) else one for one in found]


def _plain(answer: chat_answers.ChatAnswer) -> dict[str, Any]:
    calls = [{"id": call.get("id"), "function": call.get("function")} for call in answer.tool_calls]
    return {
        "content": answer.content or "",
        "reasoning": answer.reasoning or "",
        "tool_calls": calls,
        "finish_reason": answer.finish_reason,
    }


def _but_thoughts(answer: chat_answers.ChatAnswer) -> dict[str, Any]:
    return {key: value for key, value in _plain(answer).items() if key != "reasoning"}


def _body(reply: Reply) -> str:
    return "" if reply.exchange.response is None else reply.exchange.response.body_text
