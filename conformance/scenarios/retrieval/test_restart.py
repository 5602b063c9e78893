"""A proxy of its own over its life: empty, filled, started again, and without its disk."""

import json

from conformance.contract.difference import tree_difference
from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.own import OwnProxies
from conformance.gauge.scene import Scene
from conformance.oracle.chat_answers import json_object
from conformance.systems.calls import Answer


@covers("RET-007", "RET-008", "RET-014")
async def test_a_store_outlives_its_proxy_and_is_missed_when_it_is_gone(
    scene: Scene, own_proxy: OwnProxies, check: Check
) -> None:
    proxy = await own_proxy()
    scene = scene.at(proxy)
    empty = await proxy.sessions_answer()
    check.equal("RET-007", expected=(200, []), seen=(empty.status, (json_object(empty.text) or {}).get("sessions")))

    await scene.script("retrieval_agents")
    root, child = scene.session("root"), scene.session("child")
    parent = root if "parent-header" in proxy.capabilities else None
    for turn in (0, 1, 2):
        await scene.ask(scene.tag(turn), session=root)
        await scene.ask(scene.tag(turn, scope=1), session=child, parent=parent)

    before = [await proxy.sessions_answer(), *[await proxy.completions_answer(each) for each in (root, child)]]
    await proxy.restart()
    again = [await proxy.sessions_answer(), *[await proxy.completions_answer(each) for each in (root, child)]]
    for where, one, other in zip(("the list", root, child), before, again, strict=True):
        check("RET-008", _same(one, other), expected=_brief(one), seen=_brief(other), where=where)

    assert proxy.log_dir is not None
    away = proxy.log_dir.with_name("away")
    proxy.log_dir.rename(away)
    for state in ("no directory", "a file in its place"):
        if state != "no directory":
            proxy.log_dir.touch()
        blind = [await proxy.sessions_answer(), await proxy.completions_answer(root)]
        for where, one, other in zip(("the list", "the root"), before, blind, strict=False):
            honest = other.status >= 500 or _same(one, other)
            check("RET-014", honest, expected="5xx", seen=_brief(other), where=f"{where}, {state}")


def _same(one: Answer, other: Answer) -> bool:
    return one.status == other.status == 200 and tree_difference(_sorted(one), _sorted(other)) is None


def _sorted(answer: Answer) -> object:
    """Sessions may be listed in any order."""
    found = json_object(answer.text) or {"not JSON": answer.text}
    if isinstance(found.get("sessions"), list):
        found["sessions"] = sorted(found["sessions"], key=json.dumps)
    return found


def _brief(answer: Answer) -> str:
    return f"{answer.status} {answer.text[:200]}"
