"""What a rebuild makes of the records of live trees: agents stay apart, and the root is not spoiled by its children."""

import copy
from collections.abc import Callable, Iterable
from typing import Any

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.scene import Record, Scene
from conformance.oracle import placing, records, triples
from conformance.oracle.judgement import Judgement
from conformance.oracle.record_form import EXTRAS
from conformance.oracle.rollouts import Answer, Sampled, Trajectory, never_wrong, sampled, trained
from conformance.scenarios.trees.trees import (
    by_scope,
    calls,
    claude_agent,
    opencode_task,
    says,
    script,
    turns,
    with_scopes,
)
from conformance.systems.rebuild import RebuildUnderTest

JSON = Any
Recording = Callable[..., Scene]

BASH = {"name": "Bash", "arguments": {"command": "true  # {tag}"}}
OF_AGENTS = ("agent_id", "parent_agent_id")


@covers("TRE-010", "TRE-011", "TRE-014")
async def test_the_agents_of_one_claude_code_session_are_never_mixed(
    recording: Recording, rebuild: RebuildUnderTest, check: Check
) -> None:
    scene = recording("messages", "session-claude", "agent-fields")
    await script(
        scene,
        root=turns(calls(claude_agent("front"), claude_agent("behind", behind=True)), calls(BASH), says("Done.")),
        front=turns(calls(BASH), calls(claude_agent("nested")), says("One.")),
        behind=turns(calls(BASH), says("Two.")),
        nested=turns(calls(BASH), says("Three.")),
    )
    talk = await scene.claude_code()
    found, tree = await _captured(scene, scene.session()), by_scope(talk)
    if [len(tree), len(found)] != [4, 10]:
        raise Inconclusive(f"expected 4 agents with 10 calls, seen {len(tree)} with {len(found)}")
    truth = sampled(record for record, _ in found)
    answer = await rebuild.ask({"sessions": [_envelope(scene.session(), found)]})
    for scope in tree:
        own = [truth[record["uuid"]] for record, of in found if of == scope]
        others = [truth[record["uuid"]] for record, of in found if of != scope]
        check.that("TRE-010", placing.apart(answer, own, others), f"the agent of scope {scope}")
    check.that("TRE-010", never_wrong(answer, truth))
    if scene.renders_as_sampled():
        check.that("TRE-011", _root_is_clean(answer, [truth[record["uuid"]] for record, scope in found if scope == 0]))
    nameless = [(_without_agents(record), scope) for record, scope in found]
    check.that("TRE-014", triples.withheld(await rebuild.ask({"sessions": [_envelope(scene.session(), nameless)]})))


@covers("TRE-012", "TRE-013")
async def test_an_opencode_tree_is_rebuilt_as_a_tree(
    recording: Recording, rebuild: RebuildUnderTest, check: Check
) -> None:
    scene = recording("session-opencode", "parent-header")
    look = {"name": "bash", "arguments": {"command": "true  # {tag}", "description": "Look"}}
    first, second = (f"ses_run-{scene.run:06d}-{name}" for name in "ab")
    await script(
        scene,
        root=turns(
            calls(opencode_task("first"), opencode_task("second", "explore")),
            calls(opencode_task("first", task_id=first, prompt="Go on.")),
            says("Done."),
        ),
        first=turns(calls(look), says("One."), says("More.")),
        second=turns(calls(look), says("Two.")),
    )
    await scene.opencode(child_sessions=[first, second])
    found = {session: await _captured(scene, session) for session in (scene.session(), first, second)}
    if list(map(len, found.values())) != [3, 3, 2]:
        raise Inconclusive(f"expected 3, 3 and 2 calls, seen {list(map(len, found.values()))}")
    truth = sampled(record for held in found.values() for record, _ in held)
    # The root neither first nor last: only its parent, which is none, says that it is the root.
    order = (second, scene.session(), first)
    answer = await rebuild.ask({"sessions": [_envelope(session, found[session]) for session in order]})
    root = [truth[record["uuid"]] for record, _ in found[scene.session()]]
    if scene.renders_as_sampled():
        check.that("TRE-012", _root_is_clean(answer, root))
    for child in (first, second):
        own = [truth[record["uuid"]] for record, _ in found[child]]
        # What was said before the second task may be rendered anew, so that there may be two.
        named = {(one["session_id"], one["parent"]) for one in answer["trajectories"] if _holds_some(one, own)}
        ok = named == {(child, scene.session())}
        check("TRE-013", ok, expected=[child, scene.session()], seen=sorted(map(str, named)))


async def _captured(scene: Scene, session: str) -> list[tuple[Record, int | None]]:
    """The records of a session, each of them proved against the engine's account; the rest is told of them."""
    captured, rows = await scene.records(session), await scene.ledger()
    judged = records.law(captured, rows)
    if not judged:
        raise Inconclusive(f"what was recorded is not what was sampled: {judged.where}")
    return with_scopes(captured, rows)


def _envelope(session: str, found: Iterable[tuple[Record, int | None]]) -> dict[str, JSON]:
    return {"schema_version": 1, "session_id": session, "completions": [record for record, _ in found]}


def _without_agents(record: Record) -> Record:
    bare = copy.deepcopy(record)
    bare[EXTRAS] = {key: value for key, value in bare[EXTRAS].items() if key not in OF_AGENTS}
    return bare


def _root_is_clean(answer: Answer, calls_of_root: list[Sampled]) -> Judgement:
    """The rollout is clean, and of the root's calls one trainable trajectory is made, of all of them."""
    if answer["outcome"] != "clean" or answer["withheld"]:
        return Judgement(False, "clean", triples.standing(answer))
    return triples.delivers({**answer, "trajectories": trained(answer)}, calls_of_root)


def _holds_some(trajectory: Trajectory, own: list[Sampled]) -> bool:
    held = [triple["generation_token_ids"] for triple in triples.triples(trajectory)]
    return any(list(call.generation) in held for call in own)
