"""Trees of live harnesses: each call lies with the agent that made it, and says whose child that is."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.oracle.record_form import EXTRAS
from conformance.scenarios.trees.trees import (
    agents,
    by_scope,
    calls,
    claude_agent,
    opencode_task,
    says,
    script,
    turns,
    with_scopes,
)
from conformance.systems.engine import EngineLate
from fakes.harnesses.conversation import Conversation

JSON = Any

BASH = {"name": "bash", "arguments": {"command": "true  # {tag}", "description": "Look"}}


@covers("TRE-001", "TRE-002", "TRE-003", "TRE-004", "TRE-005")
async def test_an_opencode_tree_keeps_its_links(scene: Scene, check: Check) -> None:
    root, first, second, deep, orphan, nowhere = (_id(scene, name) for name in "abcdef")
    gate = f"both {scene.run}"
    await script(
        scene,
        root=turns(
            calls(opencode_task("first"), opencode_task("second", "explore")),
            calls(opencode_task("first", task_id=first, prompt="Go on.")),
            says("Done."),
        ),
        first=turns({**calls(BASH), "gate": gate}, says("One."), says("More.")),
        second=turns({**says("Two."), "gate": gate}),
        alone=turns(says("Deep.")),
    )
    await asyncio.gather(
        scene.opencode(session=root, child_sessions=[first, second]),
        _open_when_both_wait(scene, gate),
    )
    for session, parent in ((deep, first), (orphan, nowhere)):
        await scene.ask(scene.task(scope=3), session=session, by="session-opencode", parent=parent)
    rows = await scene.ledger()
    found = {each: with_scopes(await scene.records(each), rows) for each in (root, first, second, deep)}
    scopes = {session: [scope for _, scope in held] for session, held in found.items()}
    parents = {session: [record.get("parent_session_id") for record, _ in held] for session, held in found.items()}
    due = {root: [0, 0, 0], first: [1, 1, 1], second: [2], deep: [3]}
    check.equal("TRE-002", expected=due, seen=scopes, where="the scopes of each session's calls")
    check.equal("TRE-001", expected=[first], seen=parents[deep])
    check.equal("TRE-003", expected=[root] * 3, seen=parents[first], where="a child and its second task")
    if "retrieval-http" in scene.proxy.capabilities:
        listed = [(row.get("session_id"), row.get("parent_session_id")) for row in await scene.proxy.sessions()]
        tree = {root: None, first: root, second: root, deep: first}
        seen = {session: [parent for each, parent in listed if each == session] for session in (*tree, orphan)}
        check.equal("TRE-005", expected=[nowhere], seen=seen.pop(orphan))
        check.equal("TRE-004", expected={each: [parent] for each, parent in tree.items()}, seen=seen)


def _id(scene: Scene, name: str) -> str:
    """In opencode's form: its task tool takes no other."""
    return f"ses_run-{scene.run:06d}-{name}"


async def _open_when_both_wait(scene: Scene, gate: str) -> None:
    """So that two children are at work at once; a proxy that lets one call through at a time is judged elsewhere."""
    with suppress(EngineLate):
        await scene.engine.wait("held", run=scene.run, count=2)
    await scene.engine.open_gate("main", gate)


@covers("TRE-009")
async def test_under_an_explicit_id_the_children_of_opencode_can_be_told_apart(scene: Scene, check: Check) -> None:
    explicit = "session-header" if "session-header" in scene.proxy.capabilities else "session-body"
    await script(scene, root=turns(calls(opencode_task("child")), says("Done.")), child=turns(says("One.")))
    talk = await scene.opencode(by=explicit)
    child = _only_child(talk).conversation
    extras = [record.get(EXTRAS) or {} for record in await scene.records()]
    seen = [[extra.get("native_session_id"), extra.get("native_parent_id")] for extra in extras]
    root = [talk.conversation, None]
    check.equal("TRE-009", expected=[root, [child, talk.conversation], root], seen=seen)


@covers("TRE-006", "TRE-007")
async def test_the_agents_of_claude_code_keep_their_ids(scene: Scene, check: Check) -> None:
    bash = {"name": "Bash", "arguments": {"command": "true  # {tag}"}}
    await script(
        scene,
        root=turns(calls(claude_agent("front"), claude_agent("behind", behind=True)), calls(bash), says("Done.")),
        front=turns(calls(bash), calls(claude_agent("nested")), says("One.")),
        behind=turns(calls(bash), says("Two.")),
        nested=turns(says("Three.")),
    )
    talk = await scene.claude_code()
    tree, parents = by_scope(talk), _parents(talk)
    names = {scope: None if agent is talk else agent.conversation for scope, agent in tree.items()}
    found = with_scopes(await scene.records(), await scene.ledger())
    check.equal("TRE-006", expected=[9, 4], seen=[len(found), len(tree)], where="records and agents")
    for record, scope in found:
        extras = record.get(EXTRAS) or {}
        named = extras.get("agent_id")
        check.equal("TRE-006", expected=names.get(scope or 0), seen=named, where=f"a call of scope {scope}")
        if scope == 3:
            check.equal("TRE-007", expected=parents[names[3] or ""], seen=extras.get("parent_agent_id"))


def _only_child(talk: Conversation) -> Conversation:
    if len(talk.children) != 1:
        raise Inconclusive(f"the agent was to start one child and started {len(talk.children)}")
    return talk.children[0]


def _parents(talk: Conversation) -> Mapping[str, str]:
    return {child.conversation: agent.conversation for agent in agents(talk) for child in agent.children}


@covers("TRE-008")
async def test_a_subagent_of_the_sdk_has_no_parent_but_its_own_id(scene: Scene, check: Check) -> None:
    task = {"name": "task", "arguments": {"prompt": "{tag:child} Look.", "description": "{tag} Look"}}
    finish = {"name": "finish", "arguments": {"message": "{tag} Done."}}
    await script(scene, root=turns(calls(task), calls(finish)), child=turns(calls(finish)))
    talk = await scene.openhands_sdk(by="session-litellm", subagents=True)
    rows = await scene.ledger()
    for agent, due in ((talk, [0, 0]), (_only_child(talk), [1])):
        found = with_scopes(await scene.records(agent.conversation), rows)
        check.equal("TRE-008", expected=due, seen=[scope for _, scope in found], where="the scopes of its calls")
        links = [(record.get("parent_session_id"), _native_parent(record)) for record, _ in found]
        check.equal("TRE-008", expected=[(None, None)] * len(due), seen=links, where="its parents")


def _native_parent(record: Mapping[str, JSON]) -> JSON:
    return (record.get(EXTRAS) or {}).get("native_parent_id")
