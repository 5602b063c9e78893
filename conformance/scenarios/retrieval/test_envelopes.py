"""Records as they are handed out, beside those of everybody else."""

import asyncio
from typing import Any

from conformance.contract.difference import tree_difference
from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.oracle.chat_answers import json_object
from conformance.systems.proxy import ProxyUnderTest

JSON = Any

ODD_IDS = (
    "a/b/../c",
    "/",
    "..",
    "v1/sessions/x/completions",
    "two  blanks",
    "100%2Fsure",
    "question?and#hash",
    "plus+sign",
)
EMOJI = "zwei Füße 👣"

TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Schaut nach: „ß“ \u2028 👀",
        "parameters": {"type": "object", "maximum": 1.0, "minimum": 1, "exclusiveMaximum": 2**64 - 1, "default": 1e-7},
    },
}


@covers("RET-001", "RET-002", "RET-003", "RET-004", "RET-005")
async def test_a_root_and_its_child_are_listed_and_handed_out_apart(scene: Scene, check: Check) -> None:
    await scene.script("retrieval_agents")
    root, child, upper = scene.session("root"), scene.session("child"), scene.session("ROOT")
    with_parent = "parent-header" in scene.proxy.capabilities
    for turn in (0, 1, 2):
        await scene.ask(scene.tag(turn), session=root)
    await asyncio.gather(
        *(
            scene.start(scene.tag(turn, scope=1), session=child, parent=root if with_parent else None)
            for turn in (0, 1, 2)
        ),
        scene.ask(scene.tag(0, scope=2), session=upper),
    )

    answer = await scene.proxy.sessions_answer()
    check.need("RET-001", answer.status == 200, expected="status 200", seen=f"status {answer.status}")
    version = (json_object(answer.text) or {}).get("schema_version")
    check.equal("RET-001", expected=1, seen=version, where="schema_version of the list")
    rows = await scene.proxy.sessions()
    for session, parent in ((root, None), (child, root if with_parent else None), (upper, None)):
        own = [row.get("parent_session_id", "missing") for row in rows if row.get("session_id") == session]
        check.equal("RET-001", expected=[parent], seen=own, where=f"parents of the rows of {session}")

    engine = {number: _ids(await scene.ledger(), number) for number in (0, 1, 2)}
    for number, session in enumerate((root, child, upper)):
        answer = await scene.proxy.completions_answer(session)
        status = f"status {answer.status}"
        check.need("RET-002", answer.status == 200, expected="status 200", seen=status, where=session)
        envelope = json_object(answer.text) or {}
        head = {key: envelope.get(key) for key in ("schema_version", "session_id")}
        check.equal("RET-002", expected={"schema_version": 1, "session_id": session}, seen=head, where=session)
        check("RET-002", isinstance(envelope.get("completions"), list), expected="completions", seen=sorted(envelope))
        captured = await scene.records(session)
        check.equal("RET-003", expected=engine[number], seen=sorted(map(_request_id, captured)), where=session)
        places = [(record.get("captured_at"), record.get("uuid")) for record in captured]
        check.equal("RET-004", expected=sorted(places, key=str), seen=places, where=session)

    for unknown in (root[:-1], root + "/", root.upper(), scene.session("nobody"), "%00", "sessions"):
        answer = await scene.proxy.completions_answer(unknown)
        status = f"status {answer.status}"
        check("RET-005", answer.status == 404, expected="status 404", seen=status, where=repr(unknown))


@covers("RET-006")
async def test_whatever_stands_in_an_id_its_session_can_be_retrieved(scene: Scene, check: Check) -> None:
    in_body = "session-body" in scene.proxy.capabilities
    sessions = [f"{scene.session('odd')} {odd}" for odd in ((*ODD_IDS, EMOJI) if in_body else ODD_IDS)]
    await scene.script("one_answer")
    for session in sessions:
        await scene.ask(session=session, by="session-body" if in_body else None)
    engine = {row["request_id"] for row in await scene.ledger()}
    for session in sessions:
        answer = await scene.proxy.completions_answer(session)
        status = f"status {answer.status}"
        if not check("RET-006", answer.status == 200, expected="status 200", seen=status, where=repr(session)):
            continue
        named = (json_object(answer.text) or {}).get("session_id")
        check.equal("RET-006", expected=session, seen=named, where=repr(session))
        captured = await scene.records(session)
        seen = [record["request_id"] in engine for record in captured]
        check("RET-006", seen == [True], expected="its one record", seen=f"{len(seen)} records", where=repr(session))


@covers("RET-009")
async def test_what_is_handed_out_is_what_lies_on_the_disk(scene: Scene, check: Check) -> None:
    await scene.script("one_answer", fault={"name": "null_logprob_entry", "on_attempts": [1]})
    for _ in range(2):
        await scene.ask(f"{scene.task()} „Füße“ \u2028 👣 \\ \x7f", tools=[TOOL], temperature=1.0, seed=7)
    handed_out = await scene.records()
    on_disk = _disk_records(scene.proxy, scene.session())
    seen = f"{len(handed_out)} records handed out, {len(on_disk)} on the disk"
    check("RET-009", len(handed_out) == len(on_disk) == 2, expected="2 records in both places", seen=seen)
    for one, other in zip(on_disk, handed_out, strict=False):
        difference = tree_difference(one, other, key_order=True)
        check("RET-009", difference is None, expected="equal as JSON", seen=difference and str(difference))


def _disk_records(proxy: ProxyUnderTest, session: str) -> list[dict[str, JSON]]:
    return [found.record for found in proxy.disk_records(session) if found.record is not None]


def _ids(rows: list[dict[str, JSON]], scope: int) -> list[str]:
    return sorted(row["request_id"] for row in rows if row["scope"] == scope)


def _request_id(record: dict[str, JSON]) -> str:
    return str(record.get("request_id"))
