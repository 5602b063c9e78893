"""The conversation that a Messages client sends is the one that the engine gets, in chat form."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from conformance.contract.difference import tree_difference
from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.oracle import translation
from conformance.oracle.chat_answers import json_object
from conformance.scenarios.messages.asking import (
    Ask,
    Block,
    Message,
    answer_of,
    ask,
    ask_all,
    assistant,
    refused,
    result,
    text,
    untagged,
    use,
    user,
)
from conformance.scenarios.messages.history import (
    CALLS,
    ERROR,
    HISTORY,
    IDS,
    INPUTS,
    KEYS,
    NUDGE,
    REMINDER,
    SYSTEM,
    THOUGHTS,
    TOOLS,
)
from conformance.scenarios.upstream.asking import Asked

JSON = Any

IN_BLOCKS = tuple(
    {**message, "content": [text(message["content"])]} if isinstance(message["content"], str) else message
    for message in HISTORY
)
LINKED = [["call", IDS[0], "look"], ["call", IDS[1], "look"], ["result", IDS[0], "one\n"], ["result", IDS[1], "two"]]
LINKED += [["call", IDS[2], "look"], ["result", IDS[2], ERROR]]
ORDER = ("Find the header.", "I look first.", "one\n", "two", NUDGE, REMINDER, ERROR, "Nothing there.")


def _marked(value: JSON) -> JSON:
    """The same with a mark for the cache on every block that can bear one."""
    if isinstance(value, list):
        return [_marked(one) for one in value]
    if not isinstance(value, dict):
        return value
    inside = {key: _marked(one) if key == "content" else one for key, one in value.items()}
    unmarkable = "role" in value or value.get("type") in ("thinking", "redacted_thinking")
    return inside if unmarkable else {**inside, "cache_control": {"type": "ephemeral", "ttl": "1h"}}


MARKED: dict[str, JSON] = {"system": _marked(KEYS["system"]), "tools": _marked(TOOLS)}


@covers(*(f"ANT-{n:03}" for n in (1, 2, 3, 4, 5, 8, 9, 11, 12, 13)))
async def test_a_conversation_reaches_the_engine_turn_by_turn(scene: Scene, check: Check) -> None:
    asks = {
        "whole": Ask(HISTORY, body=KEYS),
        "in blocks": Ask(IN_BLOCKS, as_block=True, body=KEYS),
        "marked": Ask(_marked(list(IN_BLOCKS)), as_block=True, body=MARKED),
        "marked elsewhere": Ask(HISTORY, body={**KEYS, "cache_control": {"type": "ephemeral"}}),
        "one system text": Ask(body={"system": SYSTEM[0]}),
        "no system": Ask(),
    }
    asked = await ask_all(scene, asks)
    got = {label: untagged(scene, one) for label, one in asked.items()}
    _has_its_system(check, got["whole"].get("messages"), SYSTEM, "blocks")
    _has_its_system(check, got["one system text"].get("messages"), SYSTEM[:1], "a text")
    plain = [["message", "user", "(tag) Why does the build fail?"]]
    check.equal("ANT-002", expected=plain, seen=translation.said(got["no system"].get("messages")), where="a string")
    check.equal("ANT-002", expected=got["whole"].get("messages"), seen=got["in blocks"].get("messages"), where="blocks")
    for label, unmarked in (("marked", "in blocks"), ("marked elsewhere", "whole")):
        check.equal("ANT-003", expected=got[unmarked] or "a request upstream", seen=got[label], where=label)
    messages = got["whole"].get("messages")
    said = translation.said(messages)
    linked = [each[:3] for each in said if each[0] in ("call", "result")]
    check.equal("ANT-005", expected=LINKED, seen=linked)
    _in_its_place(check, "ANT-004", said, REMINDER)
    _in_its_place(check, "ANT-009", said, NUDGE)
    check.equal("ANT-009", expected=["user"], seen=translation.roles_saying(messages, NUDGE))
    _each_once(check, messages, (one for one in ORDER if one != REMINDER), "whole")
    for given, (_, _, arguments) in zip(INPUTS, translation.calls(said), strict=False):
        difference = tree_difference(given, json_object(str(arguments)), key_order=True)
        check("ANT-011", difference is None, expected="the input", seen=str(difference or "the input"))
    check.equal("ANT-011", expected=len(INPUTS), seen=len(translation.calls(said)), where="calls")
    for thought, beside in zip(THOUGHTS, ("I look first.", IDS[2]), strict=True):
        check.equal("ANT-012", expected=[], seen=translation.roles_saying(messages, thought), where=thought)
        check.equal("ANT-013", expected=thought, seen=translation.reasoning_before(messages, beside))


def _has_its_system(check: Check, messages: JSON, texts: Iterable[str], where: str) -> None:
    """Behind the messages of the system in front there is none; these hold the texts and nothing else."""
    said = translation.said(messages)
    count = next((n for n, each in enumerate(said) if each[1] not in ("system", "developer")), len(said))
    seen = "".join(str(each[2]) for each in said[:count])
    rest = seen
    for one in texts:
        before, found, rest = rest.partition(one)
        check("ANT-001", bool(found) and not before.strip(), expected=one, seen=seen, where=where)
    check("ANT-001", not rest.strip(), expected="nothing behind it", seen=rest, where=where)


def _in_its_place(check: Check, requirement: str, said: list[list[JSON]], mark: str) -> None:
    """What came before it in the client's history comes before it here, and so what came after it."""
    whole = "\n\n".join(str(each[-1]) for each in said)
    places = [whole.find(one) for one in ORDER]
    here = ORDER.index(mark)
    before, after = ([place for place in part if place >= 0] for part in (places[:here], places[here + 1 :]))
    ok = places[here] >= 0 and all(one < places[here] for one in before) and all(places[here] < one for one in after)
    check(requirement, ok, expected=f"{mark!r} in its place", seen=dict(zip(ORDER, places, strict=True)))


def _each_once(check: Check, messages: JSON, marks: Iterable[str], where: str) -> None:
    whole = json.dumps(messages, ensure_ascii=False)
    for mark in marks:
        told = json.dumps(mark, ensure_ascii=False)[1:-1]
        check.equal("ANT-008", expected=1, seen=whole.count(told), where=f"{where}: {mark!r}")


LOOSE: tuple[Message, ...] = (
    user([result("toolu_of_old", content="Old 4711 files.")]),
    assistant(text("First words."), use("toolu_open", "look", {"path": "open/0815"}), text("Second words.")),
    user("It was stopped."),
    user([text("Third words."), text("Fourth words.")]),
)
ONCE = ("Old 4711 files.", "First words.", "open/0815", "Second words.", "stopped", "Third words.", "Fourth words.")
CONTENTS: dict[str, dict[str, JSON]] = {
    "absent": {},
    "null": {"content": None},
    "an empty text": {"content": ""},
    "an empty list": {"content": []},
    "an empty block": {"content": [text("")]},
    "a reference": {"content": [{"type": "tool_reference", "tool_name": "WebFetch"}]},
    "an unknown block": {"content": [text("Some of it:"), {"type": "scent", "scent": "rose"}]},
    "an error": {"content": [text("No.")], "is_error": True},
    "text": {"content": "All of it."},
}


PIXEL = "c3RhbmRzIG5vd2hlcmUgZWxzZQ=="
IMAGE: Block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
SHOWN: dict[str, Ask] = {
    "alone": Ask((user([IMAGE]), assistant(text("I see.")))),
    "beside the task": Ask(beside=(IMAGE,)),
    "in a result": Ask((assistant(CALLS[1]), user([result(IDS[1], content=[text("A page."), IMAGE])])), body=KEYS),
    "alone in a result": Ask((assistant(CALLS[1]), user([result(IDS[1], content=[IMAGE])])), body=KEYS),
}


@covers("ANT-007", "ANT-008", "ANT-010")
async def test_no_result_and_no_image_is_lost(scene: Scene, check: Check) -> None:
    ids = [f"toolu_{n}" for n in range(len(CONTENTS))]
    together = (
        user("Look everywhere."),
        assistant(*(use(one, "look", {"path": one}) for one in ids)),
        user([result(one, **given) for one, given in zip(ids, CONTENTS.values(), strict=True)]),
    )
    asked = await ask_all(scene, {"together": Ask(together, body=KEYS), "loose": Ask(LOOSE, body=KEYS), **SHOWN})
    seen = [each[0] for each in translation.results(translation.said(asked["together"].got.get("messages")))]
    for label, one in zip(CONTENTS, ids, strict=True):
        check.equal("ANT-007", expected=1, seen=seen.count(one), where=label)
    check.equal("ANT-007", expected=ids, seen=seen, where="in order")
    _each_once(check, asked["loose"].got.get("messages"), ONCE, "loose ends")
    _images_are_shown_or_refused(check, {label: asked[label] for label in SHOWN})


def _images_are_shown_or_refused(check: Check, asked: Mapping[str, Asked]) -> None:
    for label, one in asked.items():
        shown = [_shows(body.get("messages")) for body in one.bodies]
        ok = (bool(shown) and all(shown)) or (not shown and refused(one.reply))
        seen = {"status": one.reply.status, "shown to the engine": shown}
        check("ANT-010", ok, expected="an image upstream, or a 4xx", seen=seen, where=label)


def _shows(messages: JSON) -> bool:
    """Whether some part that is no text holds the image."""
    contents = [one.get("content") for one in translation.objects(messages)]
    parts = [part for content in contents for part in translation.objects(content)]
    return any(part.get("type") != "text" and PIXEL in json.dumps(part) for part in parts)


@covers("ANT-006")
async def test_tool_use_ids_travel_as_they_are(scene: Scene, check: Check) -> None:
    odd = ["functions.bash:1", "call.ü/2 |x", "9"]
    functions = [{"name": "look", "arguments": json.dumps({"path": f"{{tag}} {n}"})} for n in range(len(odd))]
    calls = [{"id": one, "type": "function", "function": each} for one, each in zip(odd, functions, strict=True)]
    first = "{tag} I look in three places."
    turns = [{"text": first, "message": {"content": first, "tool_calls": calls}}, {"text": "{tag} It is there."}]
    scopes = {label: {"turns": turns} for label in ("buffered", "streamed")}
    await scene.script({"about": "Ids of every kind.", "sampling": "drifting", "scopes": scopes})
    for scope, label in enumerate(scopes):
        task = scene.task(scope=scope)
        reply = await ask(scene, task, tools=TOOLS, stream=label == "streamed")
        answer = answer_of(reply)
        given = [call["id"] for call in answer.tool_calls]
        check.equal("ANT-006", expected=odd, seen=given, where=f"{label}, to the client")
        back = [user(task), assistant(*answer.blocks), user([result(str(one), content="Yes.") for one in given])]
        await ask(scene, back, tools=TOOLS)
        row = (await scene.ledger())[-1]
        said = translation.said(json.loads(row["request"]["body_text"]).get("messages"))
        seen = [each[1] for each in said if each[0] in ("call", "result")]
        check.equal("ANT-006", expected=odd + odd, seen=seen, where=f"{label}, back to the engine")
