"""What a client and a route ask for holds on every turn alike, whether its tokens are injected or not."""

import asyncio
import copy
import json
from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import Row, Scene
from conformance.gauge.together import together
from conformance.oracle import continuity
from conformance.scenarios.continuity.talk import BY_COMPLETIONS, BY_PREFIX, CHAT_TOOLS, Talk, Transport, transports
from conformance.scenarios.dialects.tongues import Heard
from conformance.systems.routing import SHORT_LENGTH, route

JSON = Any

SAMPLING = {
    "temperature": 0.7,
    "top_p": 0.95,
    "seed": 11,
    "presence_penalty": 0.25,
    "frequency_penalty": 0.125,
    "repetition_penalty": 1.0625,
    "stop": ["NEVER SAID"],
    "stop_token_ids": [1999],
    "logit_bias": {"17": -1},
    "min_tokens": 2,
}
NOT_THE_TRAINERS = ("temperature", "top_p")
"""The server that takes prefixes refuses any sampling but the trainer's."""

RESULTS = ("one\n", "Größe: 3\n")


async def _run(talk: Talk, calls: int = 3, **last: JSON) -> list[Heard]:
    """So many calls; the last one with settings of its own."""
    heard = []
    for turn in range(calls):
        heard.append(await talk.ask(**(last if turn == calls - 1 else {})))
        talk.results(*RESULTS)
    return heard


def _body(row: Row) -> dict[str, JSON]:
    found: dict[str, JSON] = json.loads(row["request"]["body_text"])
    return found


def _limit(row: Row) -> JSON:
    body = _body(row)
    return body.get("max_completion_tokens", body.get("max_tokens"))


@covers(*(f"CON-{number:03}" for number in range(11, 20)), "CON-050", "CON-051")
async def test_settings_hold_on_every_turn(scene: Scene, check: Check) -> None:
    await asyncio.gather(
        *(scene.script("continuity/settings", tenant=each.tenant) for each in transports(scene)),
        scene.script("continuity/settings", tenant="short"),
        scene.script("continuity/settings", tenant="spoken"),
        scene.script("continuity/settings"),
    )
    await together(*(_sampling(scene, check, each) for each in transports(scene)))
    if BY_COMPLETIONS in transports(scene):
        await together(
            *(judge(scene, check) for judge in (_pins, _limits, _room, _unlike, _forms, _unread, _misread)),
        )


async def _sampling(scene: Scene, check: Check, transport: Transport) -> None:
    settings = {key: value for key, value in SAMPLING.items() if not _is_trainers(transport, key)}
    talk = Talk(scene, transport.model, transport.tenant, 0, settings=settings)
    await _run(talk)
    fill = route(transport.model).extra_body
    for number, row in enumerate(await talk.rows()):
        where = f"{transport.model}, turn {number}"
        body = _body(row)
        check.equal("CON-011", expected=settings, seen={key: body.get(key) for key in settings}, where=where)
        check.equal("CON-012", expected=dict(fill), seen={key: body.get(key) for key in fill}, where=where)


def _is_trainers(transport: Transport, key: str) -> bool:
    return transport is BY_PREFIX and key in NOT_THE_TRAINERS


async def _pins(scene: Scene, check: Check) -> None:
    if "pins" not in scene.proxy.capabilities:
        return
    talk = Talk(scene, "continued-pinned", BY_COMPLETIONS.tenant, 1, settings={"temperature": 0.1, "top_p": 0.2})
    await _run(talk)
    pins = dict(route("continued-pinned").pins)
    for number, row in enumerate(await talk.rows()):
        seen = {key: _body(row).get(key) for key in pins}
        check.equal("CON-013", expected=pins, seen=seen, where=f"turn {number}")


async def _limits(scene: Scene, check: Check) -> None:
    unlimited = Talk(scene, BY_COMPLETIONS.model, BY_COMPLETIONS.tenant, 2, settings={"max_tokens": None})
    await _run(unlimited)
    finishes = [row["finish_reason"] for row in await unlimited.rows()]
    check.equal("CON-014", expected=["stop"] * 3, seen=finishes, where="no limit asked for")
    limited = Talk(scene, BY_COMPLETIONS.model, BY_COMPLETIONS.tenant, 3)
    await _run(limited, 2, max_tokens=7)
    ended = [[len(row["generation_token_ids"]), row["finish_reason"]] for row in (await limited.rows())[1:]]
    check.equal("CON-014", expected=[[7, "length"]], seen=ended, where="7 tokens asked for")


async def _room(scene: Scene, check: Check) -> None:
    """A conversation that fills a short context, and then more than that."""
    talk = Talk(scene, "continued-short", "short", 4, settings={"max_tokens": SHORT_LENGTH - 1})
    await talk.ask()
    talk.results("one\n" * 100)
    await talk.ask()
    row = (await talk.rows())[-1]
    asked, room = _limit(row), SHORT_LENGTH - len(row["prompt_token_ids"])
    ok = type(asked) is int and 0 < asked <= room
    check("CON-015", ok, expected=f"a limit of at most {room}", seen=asked, where=f"ledger row {row['seq']}")
    talk.results("two\n" * SHORT_LENGTH, "three")
    reply = await talk.send()
    told = [reply.status, "context_length_exceeded" in reply.text]
    check.equal("CON-016", expected=[400, True], seen=told, where="longer than the model")


async def _unlike(scene: Scene, check: Check) -> None:
    """What decides how an answer is read, or what it may be, decides it on a continued turn too."""
    quiet = {"chat_template_kwargs": {"enable_thinking": False}}
    heard = {}
    for model, tenant in ((BY_COMPLETIONS.model, BY_COMPLETIONS.tenant), ("policy-model", "main")):
        talk = Talk(scene, model, tenant, 5, settings=quiet)
        plain = []
        for _ in range(2):
            plain.append(await talk.plain())
            await talk.ask()
            talk.results(*RESULTS)
        single = Talk(scene, model, tenant, 8, settings={"parallel_tool_calls": False})
        last = [one[0] for one in talk.past if not isinstance(one, str)] + await _run(single, 2)
        heard[model] = [[one.text, one.reasoning, [list(call[1:]) for call in one.calls]] for one in last]
        if model == BY_COMPLETIONS.model:
            rows = await talk.rows()
            end = rows[0]["generation_token_ids"][-1]
            check.that("CON-017", continuity.adds(rows[0], rows[1], plain[1], 1, end), "thinking switched off")
    check.equal("CON-018", expected=heard["policy-model"], seen=heard[BY_COMPLETIONS.model])


async def _unread(scene: Scene, check: Check) -> None:
    """A route that does not say how the engine reads answers."""
    heard = {}
    for model, tenant in (("continued-unread", BY_COMPLETIONS.tenant), ("policy-model", "main")):
        told = await _run(Talk(scene, model, tenant, 9))
        heard[model] = [[one.text, one.reasoning, [list(call[1:]) for call in one.calls]] for one in told]
    check.equal("CON-050", expected=heard["policy-model"], seen=heard["continued-unread"])


async def _misread(scene: Scene, check: Check) -> None:
    """A route that says how thoughts are told from text, before an engine that does not tell them apart."""
    heard = {}
    for model in ("continued-misread", "spoken"):
        told = await _run(Talk(scene, model, "spoken", 10))
        heard[model] = [[one.text, one.reasoning, [list(call[1:]) for call in one.calls]] for one in told]
    check.equal("CON-051", expected=heard["spoken"], seen=heard["continued-misread"])


async def _forms(scene: Scene, check: Check) -> None:
    """A constraint that only a chat call can have keeps the call one."""
    named = {"type": "function", "function": {"name": "note"}}
    forced = Talk(scene, BY_COMPLETIONS.model, BY_COMPLETIONS.tenant, 6)
    heard = (await _run(forced, 2, tool_choice=named))[-1]
    names = [call[1] for call in heard.calls]
    check.equal("CON-019", expected=["note"], seen=names, where="a tool named by the client")
    exact: JSON = copy.deepcopy(CHAT_TOOLS)
    for one in exact:
        one["function"]["strict"] = True
    strict = Talk(scene, BY_COMPLETIONS.model, BY_COMPLETIONS.tenant, 11, settings={"tools": exact})
    await _run(strict, 2)
    seen = _body((await strict.rows())[-1]).get("tools")
    check.equal("CON-019", expected=exact, seen=seen, where="tools that hold to their schemas")
    form = {"type": "json_object"}
    formed = Talk(scene, BY_COMPLETIONS.model, BY_COMPLETIONS.tenant, 7)
    await _run(formed, 2, response_format=form)
    seen = _body((await formed.rows())[-1]).get("response_format")
    check.equal("CON-019", expected=form, seen=seen, where="a form asked for")
