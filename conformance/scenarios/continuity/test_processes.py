"""Chains after a restart, and chains whose calls are spread over two processes on one log directory."""

import asyncio
from dataclasses import replace
from itertools import pairwise

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.own import OwnProxies
from conformance.gauge.scene import Scene
from conformance.gauge.together import together
from conformance.oracle import continuity
from conformance.scenarios.continuity.talk import Talk, Transport, transports

RESULTS = ("one",)


@covers("CON-043", "CON-044", "CON-045", "CON-046", "CON-047")
async def test_chains_outlive_processes_and_are_never_stale(scene: Scene, own_proxy: OwnProxies, check: Check) -> None:
    each = transports(scene)
    await asyncio.gather(*(scene.script("continuity/processes", tenant=one.tenant) for one in each))
    other = scene.at(await own_proxy(log_dir=scene.proxy.log_dir))
    await together(*(judge(scene, other, check, one) for one in each for judge in (_moving, _twice)))
    talks = [Talk(other, one.model, one.tenant, 0) for one in each]
    plain = [await _asked(talk) for talk in talks]
    plain = [[*one, *await _asked(talk)] for one, talk in zip(plain, talks, strict=True)]
    await other.proxy.kill()
    await other.proxy.restart()
    for talk, told in zip(talks, plain, strict=True):
        told += await _asked(talk) + await _asked(talk)
        rows = await talk.rows()
        for number, (before, row) in enumerate(pairwise(rows)):
            where = f"{talk.model}, call {number + 1}"
            check.that("CON-043", continuity.plain_or_from(before, row, told[number + 1]), where)
            check.that("CON-044", continuity.continues(before, row), where)


async def _asked(talk: Talk) -> list[list[int]]:
    """One call of the conversation; how the template would have rendered it."""
    plain = await talk.plain()
    heard = await talk.ask()
    if heard.calls:
        talk.results(*RESULTS)
    else:
        talk.say("And then?")
    return [plain]


async def _moving(scene: Scene, other: Scene, check: Check, transport: Transport) -> None:
    """Each call of one conversation at another of the two."""
    talk = Talk(scene, transport.model, transport.tenant, 1)
    plain: list[list[int]] = []
    for turn in range(4):
        talk = replace(talk, scene=(scene, other)[turn % 2])
        plain += await _asked(talk)
    for number, (before, row) in enumerate(pairwise(await talk.rows())):
        where = f"{transport.model}, call {number + 1}"
        check.that("CON-045", continuity.plain_or_from(before, row, plain[number + 1]), where)
        check.that("CON-046", continuity.continues(before, row), where)


async def _twice(scene: Scene, other: Scene, check: Check, transport: Transport) -> None:
    """One turn asked for at both, with two answers, and gone on with at the one that gave the other answer."""
    talk = Talk(scene, transport.model, transport.tenant, 2)
    await talk.ask()
    talk.say("And then?")
    elsewhere = replace(talk, scene=other)
    answers = [await one.asked(talk.messages()) for one in (talk, elsewhere)]
    for one, answer in zip((talk, elsewhere), reversed(answers), strict=True):
        echo = {"role": "assistant", "content": answer.reply.text}
        call = await one.asked([*talk.messages(), echo, {"role": "user", "content": "Are you sure?"}])
        check.that("CON-047", continuity.plain_or_from(answer.row, call.row, call.plain), transport.model)
