"""One call, one generation: a sample that was drawn is never drawn again behind the client's back."""

import asyncio
from typing import Any

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.scenarios.upstream.asking import Ask, Asked, ask_all

JSON = Any

CALLS_AFTER = 8

EMPTY = {"text": None, "returns": False, "attempts": [{"text": "", "returns": False, "sampling": "faithful"}]}

ANSWERS = {
    "plain": Ask(),
    "streamed": Ask(stream=True),
    "uncaptured": Ask(model="uncaptured", stream=True),
    "no session": Ask(session=False),
    "cut by its limit": Ask({"max_tokens": 2}),
    "cut by its limit, streamed": Ask({"max_tokens": 2}, stream=True),
    "empty": Ask(turn=EMPTY),
    "without log probs": Ask(turn={"fault": {"name": "no_logprobs"}}),
    "aborted": Ask(turn={"fault": {"name": "abort"}}),
    "two choices": Ask(turn={"fault": {"name": "two_choices"}}),
}
"""Whole answers of the engine, some of a kind that a gateway likes to ask for anew."""

FAILURES: dict[str, dict[str, JSON]] = {
    "cut": {"name": "cut_stream", "at_token": 3},
    "closed before its head": {"name": "close_before_headers"},
    "half of its JSON": {"name": "bad_json"},
    "no JSON at all": {"name": "not_json"},
    "a list": {"name": "list_body"},
    "no choices": {"name": "no_choices"},
    "error in the stream": {"name": "error_event", "at_token": 3},
}


@covers("UPS-024", "UPS-025")
async def test_each_call_is_generated_once(scene: Scene, check: Check) -> None:
    failures = {
        f"{label}{how}": Ask(stream=bool(how), turn={"fault": {**fault, "on_attempts": "all"}})
        for label, fault in FAILURES.items()
        for how in ("", ", streamed")
    }
    asked = await ask_all(scene, {**ANSWERS, **failures})
    for label in [one for one in ANSWERS if one in asked]:
        one = asked[label]
        check("UPS-024", len(one.generations) == 1, expected="one generation", seen=_told(one), where=label)
    for label in [one for one in failures if one in asked]:
        one = asked[label]
        if one.generations and one.generations[0]["generation_token_ids"] is None:
            raise Inconclusive(f"{label}: the engine failed before it had generated")
        check("UPS-025", len(one.generations) == 1, expected="one generation", seen=_told(one), where=label)


@covers("UPS-027")
async def test_an_answer_that_came_twice_is_no_other_calls_answer(scene: Scene, check: Check) -> None:
    """The second one lies on its connection when the proxy asks for the next calls, one of which gets it.

    Connections of earlier scenarios are closed first: the answer would wait behind them for a call of a later one.
    """
    gate = f"again-{scene.run:06d}"
    twice: dict[str, JSON] = {"text": "{tag} It is the header.", "fault": {"name": "answered_twice", "raw": gate}}
    scopes = {f"call-{n}": {"turns": [{"text": "{tag} It is the footer."}]} for n in range(CALLS_AFTER)}
    await scene.script({"about": "An answer comes twice.", "scopes": {"twice": {"turns": [twice]}, **scopes}})
    await scene.engine.close_idle()
    replies = [await scene.ask(session=scene.session("twice"))]
    await scene.engine.open_gate("main", gate)
    await scene.ledger()
    asked = [scene.start(scene.task(scope=n + 1), session=scene.session(name)) for n, name in enumerate(scopes)]
    replies += await asyncio.gather(*asked)
    await scene.engine.close_idle()  # a proxy that is one answer off on a connection stays so
    rows = await scene.ledger()
    rows_of = {name: [row for row in rows if row["scope"] == scope] for scope, name in enumerate(("twice", *scopes))}
    for (name, own), reply in zip(rows_of.items(), replies, strict=True):
        if len(own) > 1:
            raise Inconclusive(f"the engine was asked {len(own)} times for {name}, not once")
        said = [row["message"]["content"] for row in own]
        honest = not reply.answered or [reply.text] == said
        check("UPS-027", honest, expected=said, seen=reply.text, where=f"the answer to {name}")
    # All answers first: a proxy without records is not judged any further.
    for name, own in rows_of.items():
        told = [record["generation_token_ids"] for record in await scene.records(scene.session(name))]
        due = [row["generation_token_ids"] for row in own]
        check("UPS-027", told in ([], due), expected="its own ids, or no record", seen=told, where=name)


def _told(asked: Asked) -> list[JSON]:
    return [{key: row[key] for key in ("attempt", "state", "finish_reason")} for row in asked.generations]
