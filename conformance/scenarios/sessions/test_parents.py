"""Whose child a session is, and which of a harness's own ids are kept beside an explicit one."""

from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import Record, Scene
from conformance.oracle.record_form import EXTRAS
from conformance.scenarios.sessions.filing import BODY_KEY, HEADER, OPENCODE, PARENT

AGENT, PARENT_AGENT = "x-claude-code-agent-id", "x-claude-code-parent-agent-id"
NO_PARENT: list[tuple[str, str]] = []
BLANK_PARENT = [(PARENT, "  ")]


@covers("SES-017", "SES-018", "SES-019")
async def test_the_first_parent_of_a_session_stays(scene: Scene, check: Check) -> None:
    await scene.script("one_answer")
    own = "session-opencode" if "session-opencode" in scene.proxy.capabilities else scene.proxy.default_carrier()
    child, late, root = (scene.session(label) for label in ("child", "late", "root"))
    first, second = ([(PARENT, scene.session(label))] for label in ("first", "second"))
    # Many later ones: whoever takes any record's parent is right by chance as seldom as that.
    others = [second] * 15
    for session, parents in (
        (child, (first, NO_PARENT, *others)),
        (late, (NO_PARENT, first, *others)),
        (root, (NO_PARENT, BLANK_PARENT)),
    ):
        for parent in parents:
            await scene.ask(session=session, by=own, headers=parent)
    check.equal("SES-017", expected=scene.session("first"), seen=parents_of(await scene.records(child))[0])
    check.equal("SES-018", expected=[None, None], seen=parents_of(await scene.records(root)))
    if "retrieval-http" in scene.proxy.capabilities:
        due = {child: scene.session("first"), late: scene.session("first"), root: None}
        for time in ("first", "second"):
            listed = {row["session_id"]: row.get("parent_session_id") for row in await scene.proxy.sessions()}
            seen = {session: listed.get(session, "not listed") for session in due}
            check.equal("SES-019", expected=due, seen=seen, where=f"the list, read for the {time} time")


def parents_of(records: list[Record]) -> list[Any]:
    return [record.get("parent_session_id", "no such key") for record in records] or ["no record"]


@covers("SES-022", "SES-023")
async def test_beside_an_explicit_id_the_harness_ids_are_kept_apart(scene: Scene, check: Check) -> None:
    await scene.script("one_answer")
    native = [(OPENCODE, scene.session("native")), (PARENT, scene.session("native parent"))]
    by_header, by_body = scene.session("by header"), scene.session("by body")
    if "session-header" in scene.proxy.capabilities:
        await scene.ask(session=None, headers=[(HEADER, by_header), *native])
        _are_apart(check, scene, await scene.records(by_header), "explicit id in the header")
    if "session-body" in scene.proxy.capabilities:
        await scene.ask(session=None, headers=native, **{BODY_KEY: by_body})
        _are_apart(check, scene, await scene.records(by_body), "explicit id in the body")


def _are_apart(check: Check, scene: Scene, records: list[Record], where: str) -> None:
    kept = (records[0].get(EXTRAS) or {}) if records else {}
    due = {"native_session_id": scene.session("native"), "native_parent_id": scene.session("native parent")}
    check.equal("SES-022", expected=due, seen={key: kept.get(key) for key in due}, where=where)
    check.equal("SES-023", expected=[None], seen=parents_of(records), where=where)


@covers("SES-024")
async def test_the_ids_of_agents_within_a_session_are_kept(scene: Scene, check: Check) -> None:
    await scene.script("one_answer")
    for headers in ([], [(AGENT, "a7f3")], [(AGENT, "b801"), (PARENT_AGENT, "a7f3")]):
        await scene.ask(headers=headers)
    extras = [record.get(EXTRAS) or {} for record in await scene.records()]
    seen = [[extra.get("agent_id"), extra.get("parent_agent_id")] for extra in extras]
    check.equal("SES-024", expected=[[None, None], ["a7f3", None], ["b801", "a7f3"]], seen=seen)
