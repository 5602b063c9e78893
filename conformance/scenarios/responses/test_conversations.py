"""The conversation that a Responses client sends is the one that the engine gets, in chat form."""

import json
from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.oracle import record_form, translation
from conformance.oracle.matching import match
from conformance.scenarios.responses.asking import (
    Ask,
    Item,
    ask_all,
    body_of,
    call,
    message,
    output,
    refused,
    respond,
    tool,
)
from conformance.scenarios.upstream.asking import Asked

JSON = Any

INSTRUCTIONS = "You look at files."
PRIVILEGED = ("Never write.", "Größe zählt.", "Today is Monday.")
ARGUMENTS = ('{"path":  "b",\n "from": 1.0}', '{"zone": "\\u00fc", "path": "a"}', "{}")
CALLS = tuple(call(f"functions.look:{n}", "look", text) for n, text in enumerate(ARGUMENTS))
RESULTS = (("functions.look:0", "one\n"), ("functions.look:1", "two"), ("functions.look:2", ""))
THOUGHTS = ("I think of the header.", "It is not there.")


def _thought(text: str) -> Item:
    return {"type": "reasoning", "summary": [{"type": "summary_text", "text": text}] if text else []}


HISTORY: tuple[Item, ...] = (
    message("developer", *PRIVILEGED[:2]),
    message("system", PRIVILEGED[2]),
    {"role": "user", "content": "Find the header. 🙂"},
    _thought(THOUGHTS[0]),
    message("assistant", "I look first."),
    *CALLS[:2],
    output(RESULTS[0][0], RESULTS[0][1]),
    output(RESULTS[1][0], [{"type": "input_text", "text": RESULTS[1][1]}]),
    _thought(THOUGHTS[1]),
    CALLS[2],
    output(*RESULTS[2]),
    {**_thought(""), "encrypted_content": "gAAAAABo"},
    message("assistant", "Nothing there."),
)
UNTHINKING = tuple(item for item in HISTORY if item.get("type") != "reasoning")
LISTED_NOTHING = (CALLS[0], output(CALLS[0]["call_id"], []))
TURNS = [
    [["message", "assistant", "I look first."], *(["call", f"functions.look:{n}"] for n in (0, 1))],
    [["call", "functions.look:2"]],
    [["message", "assistant", "Nothing there."]],
]
KEYS: dict[str, JSON] = {"instructions": INSTRUCTIONS, "tools": [tool("look", "path")]}


@covers(*(f"RSP-{n:03}" for n in range(1, 10)), "RSP-037")
async def test_a_conversation_reaches_the_engine_turn_by_turn(scene: Scene, check: Check) -> None:
    asks = {
        "text": Ask(),
        "whole": Ask(HISTORY, KEYS),
        "unthinking": Ask(UNTHINKING, KEYS),
        "nothing listed": Ask(LISTED_NOTHING, KEYS),
    }
    asked = await ask_all(scene, asks)
    got = {label: one.got.get("messages") for label, one in asked.items()}
    check.equal(
        "RSP-001", expected=[["message", "user", asked["text"].sent["input"]]], seen=translation.said(got["text"])
    )
    for label in ("whole", "unthinking"):
        _has_its_instructions(check, got[label], label)
        _has_its_calls(check, got[label], label)
    turns = [[each[:3] if each[0] == "message" else each[:2] for each in turn] for turn in _turns(got["unthinking"])]
    check.equal("RSP-005", expected=TURNS, seen=turns)
    check.equal("RSP-006", expected=len(_turns(got["unthinking"])), seen=len(_turns(got["whole"])), where="turns")
    seen = [translation.reasoning_before(got["whole"], text) for text in ("I look first.", "functions.look:2")]
    check.equal("RSP-007", expected=list(THOUGHTS), seen=seen)
    results = translation.results(translation.said(got["nothing listed"]))
    check.equal("RSP-009", expected=[[CALLS[0]["call_id"], ""]], seen=results, where="an empty list")
    await _is_recorded(scene, check, asked)


def _has_its_instructions(check: Check, got: JSON, where: str) -> None:
    first: dict[str, JSON] = next(iter(translation.objects(got)), {})
    found = translation.said([first])[:1]
    ok = first.get("role") == "system" and bool(found) and str(found[0][2]).startswith(INSTRUCTIONS)
    check("RSP-002", ok, expected=["message", "system", INSTRUCTIONS], seen=found, where=where)
    for text in PRIVILEGED:
        roles = translation.roles_saying(got, text)
        ok = bool(roles) and set(roles) <= {"system", "developer"}
        check("RSP-003", ok, expected="system or developer", seen=roles, where=f"{where}: {text}")


def _has_its_calls(check: Check, got: JSON, where: str) -> None:
    said = translation.said(got)
    linked = [each[:3] if each[0] == "call" else each[:2] for each in said if each[0] in ("call", "result")]
    ids = [item["call_id"] for item in CALLS]
    due = [["call", ids[0], "look"], ["call", ids[1], "look"], ["result", ids[0]], ["result", ids[1]]]
    due += [["call", ids[2], "look"], ["result", ids[2]]]
    check.equal("RSP-004", expected=due, seen=linked, where=where)
    check.equal("RSP-008", expected=list(ARGUMENTS), seen=[each[2] for each in translation.calls(said)], where=where)
    check.equal("RSP-009", expected=[list(each) for each in RESULTS], seen=translation.results(said), where=where)


async def _is_recorded(scene: Scene, check: Check, asked: dict[str, Asked]) -> None:
    told = {row["scope"]: (record, row) for record, row in match(await scene.records(), await scene.ledger()).pairs}
    check("RSP-037", len(told) == len(asked), expected=f"{len(asked)} records", seen=len(told))
    for scope, one in enumerate(asked.values()):
        for record, row in filter(None, [told.get(scope)]):
            check.that("RSP-037", record_form.tells_request(record, one.got.get("messages") or []), one.label)
            check.that("RSP-037", record_form.tells_answer(record, row), one.label)
            check.that("RSP-037", record_form.tells_tools(record, one.got.get("tools") or []), one.label)


def _turns(messages: JSON) -> list[list[list[JSON]]]:
    return translation.assistant_turns(messages)


MARK = "c3RhbmRzIG5vd2hlcmUgZWxzZQ=="
IMAGE = {"type": "input_image", "image_url": f"data:image/png;base64,{MARK}", "detail": "auto"}
IMAGES: dict[str, tuple[Item, ...]] = {
    "in a message": ({"type": "message", "role": "user", "content": [IMAGE]},),
    "beside a text": ({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "See:"}, IMAGE]},),
    "in an output": (CALLS[2], output(CALLS[2]["call_id"], [{"type": "input_text", "text": "A page."}, IMAGE])),
}
UNKNOWN: dict[str, tuple[Item, ...]] = {
    "an item": ({"type": "shell_call_output", "call_id": "c", "output": MARK},),
    "an item with a role": ({"type": "whisper", "role": "user", "content": MARK},),
    "a part": ({"type": "message", "role": "user", "content": [{"type": "input_scent", "scent": MARK}]},),
    "a part beside a text": (
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "Hm."}, {"type": "x", "x": MARK}],
        },
    ),
    "a part of an output": (CALLS[2], output(CALLS[2]["call_id"], [{"type": "input_file", "file_data": MARK}])),
}


@covers("RSP-010", "RSP-011")
async def test_what_has_no_place_in_a_chat_is_refused_or_kept_never_dropped(scene: Scene, check: Check) -> None:
    asks = {f"an image {label}": Ask(items) for label, items in IMAGES.items()}
    asks |= {f"{label} of an unknown type": Ask(items) for label, items in UNKNOWN.items()}
    for label, one in (await ask_all(scene, asks)).items():
        requirement = "RSP-010" if label.startswith("an image") else "RSP-011"
        arrived = bool(one.rows) and all(MARK in json.dumps(body) for body in one.bodies)
        seen = {"status": one.reply.status, "the engine got it": arrived}
        ok = refused(one.reply) or (arrived and one.reply.status == 200)
        check(requirement, ok, expected="a 4xx, or in the engine's request", seen=seen, where=label)


@covers("RSP-012")
async def test_a_call_that_leans_on_stored_state_is_refused_or_gets_its_history(scene: Scene, check: Check) -> None:
    turns = [{"text": "{tag} It is in the old place."}, {"text": "{tag} Then I move it."}]
    scopes = {"main": {"turns": turns}}
    await scene.script({"about": "A question and one more.", "sampling": "drifting", "scopes": scopes})
    first = await respond(scene, scene.task(), store=True)
    told: dict[str, JSON] = json.loads(body_of(first)) if first.status == 200 else {}
    leaning: dict[str, dict[str, JSON]] = {
        "previous_response_id": {"previous_response_id": told.get("id")},
        "a lost previous_response_id": {"previous_response_id": "resp_nobody_knows"},
        "conversation": {"conversation": "conv_nobody_knows"},
        "prompt": {"prompt": {"id": "pmpt_nobody_knows", "version": "2"}},
    }
    reference = {"type": "item_reference", "id": "msg_nobody_knows"}
    for label, body in {**leaning, "item_reference": {}}.items():
        before = {row["seq"] for row in await scene.ledger()}
        task = message("user", f"{scene.tag(1)} Move it.")
        reply = await respond(scene, [*([] if body else [reference]), task], **body)
        rows = [row for row in await scene.ledger() if row["seq"] not in before]
        whole = label == "previous_response_id" and all(scene.tag(0) in row["request"]["body_text"] for row in rows)
        ok = refused(reply) or (reply.status == 200 and bool(rows) and whole)
        seen = {"status": reply.status, "requests to the engine": len(rows)}
        check("RSP-012", ok, expected="a 4xx, or the whole history upstream", seen=seen, where=label)
