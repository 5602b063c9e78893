"""A conversation that nobody edits goes on in its own tokens, in each dialect, over each transport."""

import asyncio
from itertools import pairwise
from typing import Any

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.scene import Row, Scene
from conformance.gauge.together import together
from conformance.oracle import continuity, records
from conformance.scenarios.continuity.talk import BY_COMPLETIONS, Talk, Transport, tongue, transports
from conformance.scenarios.dialects.tongues import Heard

JSON = Any

SCOPES = ("chat", "messages", "responses")
PLAIN = 3
CALLS = 5
AFTER = (("one\n", "Größe: 3\n"), ("There is no such file.", "Kept."), "And then?", "Are you sure?")
"""What follows each answer: the results of its calls, or what the user says."""


async def spoken(talk: Talk) -> tuple[list[Heard], list[list[int]]]:
    """The whole conversation, every other call streamed; what was heard, and each call as the template renders it."""
    heard, plain = [], []
    for turn in range(CALLS):
        if talk.tongue.capability == "chat":
            plain.append(await talk.plain())
        streams = talk.tongue.capability != "chat" or "streams" in talk.scene.proxy.capabilities
        heard.append(await talk.ask(stream=streams and turn % 2 == 1))
        if turn < len(AFTER):
            after = AFTER[turn]
            if isinstance(after, str):
                talk.say(after)
            else:
                talk.results(*after)
    return heard, plain


@covers(*(f"CON-{number:03}" for number in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)))
async def test_a_conversation_goes_on_in_its_own_tokens(scene: Scene, check: Check) -> None:
    await asyncio.gather(
        *(scene.script("continuity/straight", tenant=each.tenant) for each in transports(scene)),
        scene.script("continuity/straight"),
    )
    control = Talk(scene, "policy-model", "main", PLAIN)
    as_usual, _ = await spoken(control)
    await together(*(_judge(scene, check, each) for each in transports(scene)))
    rows = await control.rows()
    if all(continuity.starts_with(*pair) for pair in pairwise(rows)):
        raise Inconclusive("a capture without continuity was contiguous as well")
    if BY_COMPLETIONS in transports(scene):
        talk = Talk(scene, BY_COMPLETIONS.model, BY_COMPLETIONS.tenant, PLAIN)
        heard, _ = await spoken(talk)
        generated = [len(row["generation_token_ids"]) for row in await talk.rows()]
        for turn, (mine, usual) in enumerate(zip(heard, as_usual, strict=True)):
            identity = "CON-008" if turn % 2 == 1 else "CON-007"
            check.equal(identity, expected=_content(usual), seen=_content(mine), where=f"turn {turn}")
            if len(generated) == len(heard):
                check.equal(identity, expected=generated[turn], seen=mine.counts[1], where=f"turn {turn}, its tokens")


async def _judge(scene: Scene, check: Check, transport: Transport) -> None:
    dialects = [each for each in SCOPES if each in scene.proxy.capabilities]
    talks = [Talk(scene, transport.model, transport.tenant, SCOPES.index(each), tongue(each)) for each in dialects]
    spoken_in = await asyncio.gather(*map(spoken, talks))
    for talk, (_, plain) in zip(talks, spoken_in, strict=True):
        dialect = talk.tongue.capability
        where = f"{transport.model}, {dialect}"
        rows = await talk.rows()
        check.equal("CON-006", expected=CALLS, seen=len(rows), where=where)
        of_dialect = {"messages": "CON-003", "responses": "CON-004"}
        identity = of_dialect.get(dialect, "CON-001" if transport is BY_COMPLETIONS else "CON-002")
        for before, row in pairwise(rows):
            check.that(identity, continuity.continues(before, row), where)
        if dialect == "chat":
            _judge_what_is_new(check, rows, plain, where)
        held = await scene.records(talk.session)
        check.equal("CON-009", expected=[True] * CALLS, seen=[one["is_valid"] for one in held], where=where)
        check.that("CON-009", records.law(held, rows), where)
        told = [(one.get("x_trackgauge") or {}).get("injected") for one in held]
        check.equal("CON-010", expected=[False] + [True] * (CALLS - 1), seen=told, where=where)


def _judge_what_is_new(check: Check, rows: list[Row], plain: list[list[int]], where: str) -> None:
    turn_end = rows[0]["generation_token_ids"][-1]
    for (before, row), rendered in zip(pairwise(rows), plain[1:], strict=False):
        check.that("CON-005", continuity.adds(before, row, rendered, 1, turn_end), where)


def _content(heard: Heard) -> JSON:
    """Without its counts, which are those of other tokens."""
    return [heard.text, heard.reasoning, [list(call[1:]) for call in heard.calls]]
