"""One run, spoken in each dialect: the engine samples the same, and the same must come of it."""

import asyncio
from collections.abc import Callable
from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import MODEL, Playbook, Record, Scene
from conformance.oracle import records
from conformance.oracle.translation import said as told_in
from conformance.scenarios.dialects.tongues import TONGUES, Heard, Said, Tongue, Tool, spoken_by
from conformance.systems.rebuild import RebuildUnderTest

JSON = Any

SYSTEM = "You look at files. 🙂\n  Größe zählt."
RESULTS = (("one\n", "Größe: 3\n"), ("There is no such file.",))


def _tool(name: str, *required: str, **properties: JSON) -> Tool:
    schema = {"type": "object", "required": [*required], "properties": properties}
    return Tool(name, f"The tool {name}: “größer”.", schema)


TOOLS = (
    _tool("look", "path", path={"type": "string"}, depth={"type": "number", "default": 1.0}),
    _tool("note", "text", text={"type": "string", "maxLength": 9007199254740993}),
)


def _script(*, faithful: bool) -> Playbook:
    """Text beside calls stands only where the history may be rendered in other tokens than were sampled."""
    first = {"name": "look", "arguments": {"path": "größe {tag}", "depth": 2.5}}
    turns: list[dict[str, JSON]] = [
        {"reasoning": "I think of the header.", "calls": [first, {"name": "note", "arguments": {"text": "x {tag}"}}]},
        {"calls": [{"name": "look", "arguments": {"path": "b {tag}", "depth": 1}}]},
        {"text": "{tag} It was the größere header."},
    ]
    if not faithful:
        turns[0]["text"] = "{tag} I look first."
    sampling = "faithful" if faithful else "drifting"
    return {"about": "Two calls, one call, an answer.", "sampling": sampling, "scopes": {"main": {"turns": turns}}}


async def _speak(scene: Scene, tongue: Tongue) -> list[Heard]:
    """The whole run in one dialect, under a session of its own; the middle turn is streamed."""
    heard: list[Heard] = []
    for turn in range(3):
        past = list(zip(heard, RESULTS, strict=False))
        said = Said(scene.task(), SYSTEM, TOOLS, past)
        body = tongue.body(said, model=MODEL, stream=turn == 1)
        reply = await scene.post(tongue.path, body, session=scene.session(tongue.capability))
        answer = tongue.heard(reply)
        if turn < 2 and len(answer.calls) != len(RESULTS[turn]):
            # Judged by what was heard so far; the rest of the run cannot be asked for.
            return [*heard, answer]
        heard.append(answer)
    return heard


async def _spoken(scene: Scene, *, faithful: bool) -> dict[str, list[Heard]]:
    await scene.script(_script(faithful=faithful))
    tongues = spoken_by(scene.proxy.capabilities)
    heard = await asyncio.gather(*(_speak(scene, tongue) for tongue in tongues))
    return {tongue.capability: answers for tongue, answers in zip(tongues, heard, strict=True)}


@covers("DLC-001", "DLC-002", "DLC-003", "DLC-004", "DLC-005", "DLC-006")
async def test_one_run_leaves_the_same_in_each_dialect(scene: Scene, check: Check) -> None:
    heard = await _spoken(scene, faithful=False)
    captured = {name: await scene.records(scene.session(name)) for name in heard}
    rows = await scene.ledger()
    check.equal("DLC-001", expected=dict.fromkeys(heard, 3), seen={name: len(held) for name, held in captured.items()})
    for held in captured.values():
        check.that("DLC-001", records.law(held, rows))
    chat = captured["chat"]
    for name in (name for name in heard if name != "chat"):
        other = captured[name]
        for requirement, first, last, field in (
            ("DLC-001", 0, 3, "generation_token_ids"),
            ("DLC-002", 0, 1, "prompt_token_ids"),
            ("DLC-003", 1, 3, "prompt_token_ids"),
        ):
            for n in range(first, last):
                judged = records.same_list(_of(chat, n, field), _of(other, n, field), f"{name}, call {n}, {field}")
                check.that(requirement, judged)
        for n in range(3):
            where = f"{name}, record {n}"
            check.equal("DLC-004", expected=_messages(chat, n), seen=_messages(other, n), where=where)
            check.equal("DLC-005", expected=_of(chat, n, "tools"), seen=_of(other, n, "tools"), where=where)
            check.equal("DLC-006", expected=_content(heard["chat"], n), seen=_content(heard[name], n), where=where)
    check("DLC-005", bool(_of(chat, 0, "tools")), expected="tools in the record", seen=_of(chat, 0, "tools"))
    check("DLC-006", _content(heard["chat"], 2) is not None, expected="a run of 3 calls", seen=len(heard["chat"]))


def _of(held: list[Record], n: int, field: str) -> JSON:
    return held[n].get(field) if n < len(held) else None


def _content(heard: list[Heard], n: int) -> JSON:
    return heard[n].content if n < len(heard) else None


def _messages(held: list[Record], n: int) -> JSON:
    """What is said, called and answered, the ids of calls replaced by their order of appearance."""
    ids: dict[JSON, int] = {}
    found = []
    for kind, *rest in told_in(_of(held, n, "messages")):
        if kind in ("call", "result"):
            rest[0] = ids.setdefault(rest[0], len(ids))
        if kind == "message" and rest[0] == "developer":
            rest[0] = "system"
        found.append([kind, *rest])
    return found


@covers("DLC-007")
async def test_one_run_is_rebuilt_alike_from_each_dialect(
    recording: Callable[..., Scene], rebuild: RebuildUnderTest, check: Check
) -> None:
    scene = recording(*(tongue.capability for tongue in TONGUES))
    heard = await _spoken(scene, faithful=True)
    rebuilt: dict[str, JSON] = {}
    for name in heard:
        held = await scene.records(scene.session(name))
        envelope = {"schema_version": 1, "session_id": scene.session(name), "completions": held}
        answer = await rebuild.ask({"envelope": envelope})
        rebuilt[name] = [[one["tokens"], one["mask"]] for one in answer["trajectories"]]
        check(
            "DLC-007", bool(rebuilt[name]) and len(held) == 3, expected="3 records, rebuilt", seen=len(held), where=name
        )
    first, *others = rebuilt
    for name in others:
        same = rebuilt[first] == rebuilt[name]
        sizes = {each: [len(tokens) for tokens, _ in rebuilt[each]] for each in (first, name)}
        check("DLC-007", same, expected=f"the tokens and mask of {first}", seen=sizes, where=name)
