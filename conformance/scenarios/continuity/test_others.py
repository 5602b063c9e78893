"""Nobody gets the tokens of a chain but the call whose history ends with it."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.gauge.together import together
from conformance.oracle import continuity
from conformance.scenarios.continuity.talk import CHAT_TOOLS, Asked, Talk, Transport, transports

JSON = Any
Messages = list[JSON]

SYSTEM, TASK, ANSWER, RESULT, LAST = range(5)
"""The messages of a conversation of two turns, by their places."""


def _said(place: int, text: str) -> Callable[[Messages], Messages]:
    """Another text in one of the messages."""

    def changed(messages: Messages) -> Messages:
        messages[place]["content"] += text
        return messages

    return changed


def _called_otherwise(messages: Messages) -> Messages:
    function = messages[ANSWER]["tool_calls"][0]["function"]
    function["arguments"] = json.dumps(json.loads(function["arguments"]) | {"path": "elsewhere"})
    return messages


def _without_an_exchange(messages: Messages) -> Messages:
    del messages[ANSWER : RESULT + 1]
    return messages


def _summarised(messages: Messages) -> Messages:
    task, tag = messages[TASK]["content"], messages[LAST]["content"].split()[0]
    return [messages[SYSTEM], {"role": "user", "content": f"{task}\nSo far: {tag} it was looked at. Go on."}]


EDITS: dict[str, tuple[str, Callable[[Messages], Messages]]] = {
    "answer": ("CON-024", _said(LAST, " I think.")),
    "earlier answer": ("CON-024", _said(ANSWER, "\nBut first something else.")),
    "call": ("CON-024", _called_otherwise),
    "turn left out": ("CON-024", _without_an_exchange),
    "task": ("CON-025", _said(TASK, " Be quick.")),
    "system prompt": ("CON-025", _said(SYSTEM, "\nToday is Monday.")),
    "result": ("CON-025", _said(RESULT, " (edited)")),
    "summary": ("CON-026", _summarised),
}


@covers(*(f"CON-{number:03}" for number in range(24, 35)), "CON-049")
async def test_only_the_call_that_ends_a_history_lends_its_tokens(scene: Scene, check: Check) -> None:
    each = transports(scene)
    await asyncio.gather(*(scene.script("continuity/others", tenant=one.tenant) for one in each))
    await together(
        *(judge(scene, check, one) for one in each for judge in (_edits, _retries, _twins, _agents, _thinkers))
    )


async def _edits(scene: Scene, check: Check, transport: Transport) -> None:
    """Two turns, then every kind of edit of them in the same session, and then the conversation itself again."""
    talk = Talk(scene, transport.model, transport.tenant, 0)
    await talk.ask()
    talk.results("one")
    await talk.ask()
    talk.say("Are you sure?")
    latest = (await talk.rows())[-1]
    for name, (identity, edited) in EDITS.items():
        call = await talk.asked(edited(talk.messages()))
        check.that(identity, continuity.is_plain(call.row, call.plain), f"{transport.model}, edited {name}")
    await _side_calls(talk, check, transport)
    call = await talk.asked(talk.messages(), tools=CHAT_TOOLS[:1])
    check.that("CON-027", continuity.is_plain(call.row, call.plain), transport.model)
    call = await talk.asked(talk.messages())
    check.that("CON-029", continuity.continues(latest, call.row), transport.model)
    summarised = _summarised(talk.messages())
    first = await talk.asked(summarised)
    second = await talk.asked(_behind(summarised, first, "And then?"))
    check.that("CON-030", continuity.continues(first.row, second.row), f"{transport.model}, behind a compaction")


async def _side_calls(talk: Talk, check: Check, transport: Transport) -> None:
    history = talk.messages()
    title = [{"role": "system", "content": "Give it a title."}, history[TASK]]
    for name, messages in (("a title", title), ("a summary of it all", history)):
        call = await talk.asked(messages, tools=None)
        check.that("CON-028", continuity.is_plain(call.row, call.plain), f"{transport.model}, {name}")


async def _retries(scene: Scene, check: Check, transport: Transport) -> None:
    """A first call asked for twice, with two answers, both gone on with; then a turn asked for three times."""
    talk = Talk(scene, transport.model, transport.tenant, 1)
    where = transport.model
    opening = talk.messages()
    firsts = [await talk.asked(opening) for _ in range(2)]
    if firsts[0].reply.text == firsts[1].reply.text:
        raise Inconclusive("two first calls were answered alike")
    check.that("CON-032", continuity.is_plain(firsts[1].row, firsts[1].plain), f"{where}, a first call asked for again")
    # The later one first: whoever takes the oldest chain that fits would be right by chance the other way round.
    for first in reversed(firsts):
        call = await talk.asked(_behind(opening, first, "Go on."))
        check.that("CON-031", continuity.continues(first.row, call.row), f"{where}, a first call asked for again")
    told = _behind(opening, firsts[0], "Go on.")
    again = [await talk.asked(told) for _ in range(2)]
    prompts = [call.row["prompt_token_ids"] for call in again]
    check.that("CON-032", continuity.continues(firsts[0].row, again[0].row), f"{where}, asked again")
    check.equal("CON-032", expected=prompts[0], seen=prompts[1], where=f"{where}, asked once more")
    for call in again:
        later = await talk.asked(_behind(told, call, "Are you sure?"))
        check.that("CON-031", continuity.continues(call.row, later.row), f"{where}, a turn asked for again")


def _behind(messages: Messages, call: Asked, text: str) -> Messages:
    answer = {"role": "assistant", "content": call.reply.text}
    return [*messages, answer, {"role": "user", "content": text}]


async def _thinkers(scene: Scene, check: Check, transport: Transport) -> None:
    """Two first calls answered in the same words behind other thoughts, which the history tells; both gone on with."""
    talk = Talk(scene, transport.model, transport.tenant, 4)
    opening = talk.messages()
    firsts = [await talk.asked(opening) for _ in range(2)]
    heard = [talk.tongue.heard(first.reply) for first in firsts]
    if heard[0].text != heard[1].text or heard[0].reasoning == heard[1].reasoning:
        raise Inconclusive("two first calls were not answered in the same words behind other thoughts")
    for first, one in zip(firsts, heard, strict=True):
        call = await talk.asked([*opening, *one.again, {"role": "user", "content": "Go on."}])
        where = f"{transport.model}, the same words behind other thoughts"
        check.that("CON-049", continuity.plain_or_from(first.row, call.row, call.plain), where)


async def _twins(scene: Scene, check: Check, transport: Transport) -> None:
    """The same words in two sessions, in other tokens."""
    talks = [Talk(scene, transport.model, transport.tenant, 2, label=label) for label in ("-one", "-other")]
    await _told_apart(check, "CON-033", f"{transport.model}, two sessions", [(talk, {}) for talk in talks])


async def _agents(scene: Scene, check: Check, transport: Transport) -> None:
    """The same words of two agents in one session, in other tokens."""
    if "agent-fields" not in scene.proxy.capabilities:
        return
    talk = Talk(scene, transport.model, transport.tenant, 3)
    callers = [(talk, {"x-claude-code-agent-id": name}) for name in ("one", "other")]
    await _told_apart(check, "CON-034", f"{transport.model}, two agents", callers)


async def _told_apart(check: Check, identity: str, where: str, callers: list[tuple[Talk, dict[str, str]]]) -> None:
    opening = callers[0][0].messages()
    firsts = [await talk.asked(opening, headers=headers) for talk, headers in callers]
    if firsts[0].row["generation_token_ids"] == firsts[1].row["generation_token_ids"]:
        raise Inconclusive("the same words were not sampled in other tokens")
    for (talk, headers), first in zip(callers, firsts, strict=True):
        call = await talk.asked(_behind(opening, first, "Go on."), headers=headers)
        check.that(identity, continuity.plain_or_from(first.row, call.row, call.plain), where)
