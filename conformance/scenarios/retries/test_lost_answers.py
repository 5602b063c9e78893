"""Answers that get lost between the proxy and a harness, and what a rebuild makes of both sides' records."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from conformance.gauge.agents import Agents
from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene, load_playbook
from conformance.oracle import rollouts, triples, views
from conformance.scenarios.retries.rebuilt import Rebuilt, rebuilt
from conformance.scenarios.retries.wire import Loss, Wire
from conformance.systems.rebuild import RebuildUnderTest
from fakes.harnesses.claude_code import Environment
from fakes.harnesses.conversation import Conversation

PLAYBOOK = "retries/lost_answers"
BROKEN = Loss(keeps=2)
PIECE = Loss(before=b'"tool_calls"', clean=True)
"""The text of an answer, and not the call behind it."""

Play = Callable[[Agents, str, str], Awaitable[Conversation]]
"""From who plays, a task and a session to a run."""


async def opencode(agents: Agents, task: str, session: str) -> Conversation:
    return await agents.opencode(task, session=session)


async def titled(agents: Agents, task: str, session: str) -> Conversation:
    return await agents.opencode(task, session=session, title=True)


async def claude_code(agents: Agents, task: str, session: str) -> Conversation:
    return await agents.claude_code(task, session=session, env=Environment(haiku_model="policy-model"))


async def codex(agents: Agents, task: str, session: str) -> Conversation:
    return await agents.codex(task, session=session)


@covers("RTY-001", "RTY-003", "RTY-004", "RTY-005", "RTY-011", "RTY-012")
async def test_what_was_asked_again_is_trained_once_and_what_was_not_gone_on_from_is_not(
    scene: Scene, rebuild: RebuildUnderTest, check: Check
) -> None:
    await scene.script(PLAYBOOK)
    other, same, by_codex, late, fragment, buffered, account = await asyncio.gather(
        _lived(scene, rebuild, "other", opencode, [BROKEN]),
        _lived(scene, rebuild, "same", opencode, [BROKEN, BROKEN]),
        _lived(scene, rebuild, "codex", codex, [BROKEN] * 4),
        _lived(scene, rebuild, "late", opencode, [Loss(late=True)]),
        _lived(scene, rebuild, "fragment", opencode, [PIECE]),
        _lived(scene, rebuild, "buffered", claude_code, [Loss(keeps=1)]),
        _lived(scene, rebuild, "account", titled, [BROKEN]),
    )
    for requirement, lived, attempts in (
        ("RTY-001", other, 2),
        ("RTY-001", same, 3),
        ("RTY-003", buffered, 2),
        ("RTY-011", by_codex, 5),
    ):
        _asked(lived, attempts)
        check.that(requirement, views.each_trained_once(lived.answer, lived.last_attempts(2)), f"{attempts} attempts")
        check.that(requirement, rollouts.never_wrong(lived.answer, lived.truth), f"{attempts} attempts")
    _asked(late, 2)
    continued = [late.only(turn=0, attempt=0), late.only(turn=1)]
    check.that("RTY-005", triples.one_clean_chain(late.answer, continued))
    _asked(fragment, 1)
    check.that("RTY-004", triples.none_trained(fragment.answer, [fragment.only(turn=0)]))
    _asked(account, 2)
    check.that("RTY-012", rollouts.conserved(account.answer, account.truth))
    check.that("RTY-012", views.each_trained_once(account.answer, account.last_attempts(3)))
    side = [account.only(turn=0, attempt=0), account.only(rule="title")]
    check.that("RTY-012", rollouts.excludes(account.answer, side))


async def _lived(scene: Scene, rebuild: RebuildUnderTest, name: str, play: Play, losses: Sequence[Loss]) -> Rebuilt:
    """One scope of the playbook, played over a wire with losses under a session of its own."""
    session, scope = scene.session(name), list(load_playbook(PLAYBOOK)["scopes"]).index(name)
    async with Wire(scene.proxy.url, losses) as wire:
        talk = await play(scene.over(wire.url), scene.task(scope=scope), session)
        await wire.deliver()
    if talk.ended != "answered" or not wire.met:
        raise Inconclusive(f"{name}: {talk.harness} ended {talk.ended}, {talk.error}; all losses met: {wire.met}")
    return await rebuilt(scene, rebuild, session)


def _asked(lived: Rebuilt, attempts: int) -> None:
    found = len(lived.calls(turn=0))
    if found != attempts or not lived.calls(turn=1):
        raise Inconclusive(f"the first turn was recorded {found} times, not {attempts}, of {len(lived.told)} calls")
