"""Faults of the line between proxy and engine, and answers that nobody can read."""

import asyncio

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import MODEL, Scene
from conformance.oracle import chat_errors
from conformance.oracle.chat_stream import error_in_band
from conformance.scenarios.errors.faults import Fault, Faulty, answers_200, body_of, everything_in, faulty
from fakes.harnesses.plain import Reply

ENGINE_ERROR = '{"error": {"message": "The engine is overloaded.", "type": "overloaded", "code": 503}}'
DROPPED: dict[str, Fault] = {
    "dropped before the head": {"name": "close_before_headers"},
    "dropped in the body": {"name": "cut_stream", "at_token": 3},
}
UNREADABLE: dict[str, Fault] = {
    "half an answer": {"name": "bad_json"},
    "a page": {"name": "not_json"},
    "a list": {"name": "list_body"},
    "null": answers_200("null"),
    "a number": answers_200("42"),
    "nothing": answers_200(""),
}
GATEWAY = (502, 503)


@covers("ERR-008", "ERR-009", "ERR-010", "ERR-011", "ERR-012", "ERR-013")
async def test_a_fault_of_the_line_reaches_the_client_as_an_error(scene: Scene, check: Check) -> None:
    faults = {**DROPPED, **UNREADABLE, "only an error": answers_200(ENGINE_ERROR)}
    turns = {name: faulty(fault) for name, fault in faults.items()}
    engine = await Faulty(scene, {**turns, "slow": {"gate": f"never-{scene.run}"}, "healthy": {}}).script()
    ways = [(name, MODEL) for name in faults]
    ways += [("slow", "impatient"), ("healthy", "dead")]
    both = [(name, model, stream) for name, model in ways for stream in (False, True)]
    replies = await asyncio.gather(*(engine.start(name, model=model, stream=stream) for name, model, stream in both))
    for (name, model, stream), reply in zip(both, replies, strict=True):
        where = f"{name}, {model}, {'streamed' if stream else 'buffered'}"
        told = everything_in(reply)
        check.that("ERR-008", chat_errors.silent_on(scene.engine.url.removeprefix("http://"), told, where))
        if name in DROPPED or model == "dead":
            _is_an_error(check, "ERR-009", reply, where)
            _is_told_as(check, "ERR-010", GATEWAY, reply, where)
        elif name in UNREADABLE:
            _is_an_error(check, "ERR-012", reply, where)
            _is_told_as(check, "ERR-010", GATEWAY, reply, where)
        elif name == "slow":
            _is_told_as(check, "ERR-011", (504,), reply, where)
        else:
            _is_an_error(check, "ERR-013", reply, where)
        if model == "dead":
            check.that("ERR-008", chat_errors.silent_on("127.0.0.1:1", told, where))


def _is_an_error(check: Check, requirement: str, reply: Reply, where: str) -> None:
    check.that(
        requirement, chat_errors.told_as_error(reply.status, reply.header("content-type"), body_of(reply), where)
    )


def _is_told_as(check: Check, requirement: str, allowed: tuple[int, ...], reply: Reply, where: str) -> None:
    # An error inside a stream that had begun when the line broke has no status of its own.
    in_band = reply.status == 200 and error_in_band(body_of(reply)) is not None
    ok = in_band or reply.status in allowed
    check(requirement, ok, expected=list(allowed), seen=reply.status, where=where)
