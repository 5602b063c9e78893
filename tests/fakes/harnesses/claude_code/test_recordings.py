"""The fake's own requests against what the real Claude Code 2.1.197 sent.

A scripted server plays the model's part of a recording; each request of the fake must then have the recorded form:
method, path, header names in order and case and their values, key order, types, nulls, string or list form, roles,
literal values, tools and their properties. Text lengths and the types in tool schemas are free.
"""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.harnesses.claude_code.messages import agent_of
from tests.fakes.harnesses.claude_code.plays import Play, plays
from tests.fakes.harnesses.conftest import Seen, Serve, same_account
from tests.fakes.harnesses.recorded_form import departures

pytestmark = pytest.mark.anyio

RECORDINGS = Path(__file__).parents[3] / "data" / "claude_code"
Recorded = dict[str, Any]

NOT_RECORDED = {
    "title call of the terminal interface": "n/a: not recorded",
    "compaction by hand": "n/a: not recorded",
    "compaction by the window of the environment": "n/a: not recorded",
    "interrupt, and the next prompt": "n/a: not recorded",
    "downgrades after a 400": "n/a: not recorded",
    "sub-agents on sonnet, haiku at the root": "n/a: not recorded",
    "a message queued while tools run": "n/a: not recorded",
}
"""Conversations of the fake that only the facts tell of; ``test_habits`` holds it to those."""


def recorded(play: Play, name: str) -> list[Recorded]:
    """The requests of a play's recordings in a row. ``tools`` of one recording refer to places in it: made absolute."""
    found: list[Recorded] = []
    for part in play.recordings or (name,):
        requests: list[Recorded] = json.loads((RECORDINGS / f"{part}.json").read_text())["requests"]
        start = len(found)
        for request in requests:
            tools = request.get("body_shape", {}).get("tools")
            if isinstance(tools, str):
                same_as = int(tools.rstrip(">").rpartition("=")[2])
                request["body_shape"]["tools"] = ("as in", start + same_as - 1)
        found += requests
    return found


@pytest.mark.parametrize("name", sorted(plays()))
async def test_the_fake_sends_what_the_real_client_sent(serve: Serve, name: str) -> None:
    play = plays()[name]
    async with serve(answering=play.script()) as server:
        talk = await play.client(server.url).run("Do the task.", follow_ups=play.follow_ups)
    assert (talk.ended == "error") == play.fails, talk.error
    pairs = paired(server.seen, recorded(play, name), play)
    assert differences(pairs, play) == []
    assert one_session(server.seen)
    told = [exchange.request for exchange in talk.all_exchanges]
    if play.concurrent:
        assert sorted(one.body for one in told) == sorted(seen.body for seen in server.seen)
    else:
        same_account(talk, server.seen)


def test_every_recording_is_played() -> None:
    played = {part for name, play in plays().items() for part in play.recordings or (name,)}
    assert played == {path.stem for path in RECORDINGS.glob("*.json")}
    assert len(played) == 24


def paired(seen: Sequence[Seen], requests: Sequence[Recorded], play: Play) -> list[tuple[Seen, Recorded]]:
    """Each request of the fake with the recorded one of the same agent and place, in the recorded order."""
    script = play.script()
    prompts = list(play.agents)
    mine = [None if agent_of(one) is None else script.prompt_of(str(agent_of(one)), one) for one in seen]
    ids = list(dict.fromkeys(id_ for one in requests if (id_ := _header(one, "x-claude-code-agent-id"))))
    theirs = [prompts[ids.index(id_)] if (id_ := _header(one, "x-claude-code-agent-id")) else None for one in requests]
    assert len(seen) == len(requests), f"expected {len(requests)} requests, seen {len(seen)}"
    assert sorted(map(str, mine)) == sorted(map(str, theirs))
    if not play.concurrent:
        assert mine == theirs
    queues = {who: iter([one for one, of in zip(seen, mine, strict=True) if of == who]) for who in set(mine)}
    return [(next(queues[who]), request) for request, who in zip(requests, theirs, strict=True)]


def differences(pairs: Sequence[tuple[Seen, Recorded]], play: Play) -> list[str]:
    found = []
    ids: dict[str, str] = {}
    for n, (seen, request) in enumerate(pairs):
        found += [f"request {n}: {each}" for each in head_differences(seen, request, ids)]
        if request["method"] == "HEAD":
            continue
        body, shape = seen.json(), request["body_shape"]
        if isinstance(shape["tools"], tuple):
            before = pairs[shape["tools"][1]][0].json()["tools"]
            shape = shape | {"tools": ["same"]}
            body["tools"] = ["same"] if body["tools"] == before else ["other"]
        if play.concurrent:
            body, shape = _by_id(body), _by_id(shape)
        found += [f"request {n}: {each}" for each in differences_of(body, shape)]
    return found


def differences_of(seen: Any, shape: Any, at: str = "body") -> list[str]:
    """Where a request departs from the recorded form."""
    return departures(seen, shape, _own_forms, at)


def _own_forms(seen: Any, shape: Any, at: str) -> list[str] | None:
    if isinstance(shape, str) and (length := re.fullmatch(r"<text:(\d+) chars>", shape)):
        as_told = isinstance(seen, str) and bool(seen) == bool(int(length[1]))
        return [] if as_told else [f"{at}: expected {shape}, seen {seen!r}"]
    if at.endswith(".user_id"):
        keys, wanted = list(json.loads(seen)), list(json.loads(shape))
        return [] if keys == wanted else [f"{at}: expected {wanted}, seen {keys}"]
    if isinstance(shape, dict) and "input_schema" in shape:
        return _tool_differences(seen, shape, at)
    return None


def _tool_differences(seen: Any, shape: Any, at: str) -> list[str]:
    schema, wanted = seen["input_schema"], shape["input_schema"]
    told = {"keys": list(schema), "properties": list(schema["properties"]), "required": schema.get("required")}
    mine, theirs = ({key: tool[key] for key in tool if key != "input_schema"} for tool in (seen, shape))
    return differences_of(mine, theirs, at) + ([] if told == wanted else [f"{at}: expected {wanted}, seen {told}"])


def head_differences(seen: Seen, request: Recorded, ids: dict[str, str]) -> list[str]:
    """Where a head departs. ``ids`` learns which of the fake's agent ids stands for which recorded one."""
    target = request["path"] + (f"?{request['query']}" if "query" in request else "")
    if (seen.method, seen.path) != (request["method"], target):
        return [f"expected {request['method']} {target}, seen {seen.method} {seen.path}"]
    names, wanted = [name for name, _ in seen.headers], [name for name, _ in request["headers"]]
    if names != wanted:
        return [f"expected headers {wanted}, seen {names}"]
    pairs = zip(seen.headers, request["headers"], strict=True)
    return [
        f"{name}: expected {want!r}, seen {got!r}"
        for (name, got), (_, want) in pairs
        if not _same(name, got, want, ids)
    ]


def _same(name: str, got: str, want: str, ids: dict[str, str]) -> bool:
    if name in ("Host", "Content-Length", "X-Claude-Code-Session-Id"):
        return True
    if name.endswith("-agent-id"):
        return re.fullmatch(r"a[0-9a-f]{16}", got) is not None and ids.setdefault(want, got) == got
    return got == want.replace("<dummy>", "dummy")


def one_session(seen: Iterable[Seen]) -> bool:
    """Whether every POST names one session, in its header and in its metadata."""
    posts = [one for one in seen if one.method == "POST"]
    named = {dict(one.headers)["X-Claude-Code-Session-Id"] for one in posts}
    meant = {json.loads(one.json()["metadata"]["user_id"])["session_id"] for one in posts}
    return len(named) == 1 and named == meant


def _by_id(body: Any) -> Any:
    """The body with the results of sub-agents in the order of their ids, wherever the mark for the cache sat."""
    return body | {"messages": [_message_by_id(message) for message in body["messages"]]}


def _message_by_id(message: Any) -> Any:
    content = message["content"]
    if not (isinstance(content, list) and sum(isinstance(block.get("content"), list) for block in content) > 1):
        return message
    marks = [block["cache_control"] for block in content if "cache_control" in block]
    bare = [{key: block[key] for key in block if key != "cache_control"} for block in content]
    return message | {"content": sorted(bare, key=lambda block: str(block["tool_use_id"])), "marks": marks}


def _header(request: Recorded, name: str) -> str | None:
    return dict(map(tuple, request["headers"])).get(name)


@pytest.mark.parametrize(
    ("seen", "shape"),
    [
        pytest.param({"a": 1, "b": 2}, {"b": 2, "a": 1}, id="key order"),
        pytest.param({"a": 1}, {"a": 1.0}, id="int for float"),
        pytest.param({"a": True}, {"a": 1}, id="bool for int"),
        pytest.param({}, {"a": None}, id="absent for null"),
        pytest.param({"content": ""}, {"content": "<text:3 chars>"}, id="empty for text"),
        pytest.param({"content": "x"}, {"content": "<text:0 chars>"}, id="text for empty"),
        pytest.param({"content": "x"}, {"content": [{"type": "text", "text": "<text:1 chars>"}]}, id="string for list"),
        pytest.param({"role": "user"}, {"role": "system"}, id="literal"),
        pytest.param([1, 2], [1], id="one too many"),
        pytest.param({"user_id": '{"b": 1}'}, {"user_id": '{"a": 1}'}, id="keys inside the metadata"),
    ],
)
def test_the_comparison_sees_every_kind_of_difference(seen: Any, shape: Any) -> None:
    assert differences_of(seen, shape) != []


@pytest.mark.parametrize(
    "spoil", ["header order", "header case", "query", "tool property", "cache mark", "one missing"]
)
async def test_a_spoilt_request_differs_from_its_recording(serve: Serve, spoil: str) -> None:
    play = plays()["basic"]
    async with serve(answering=play.script()) as server:
        await play.client(server.url).run("Do the task.")
    third, body = server.seen[2], server.seen[2].json()
    first = server.seen[1].json()
    headers, path = list(third.headers), third.path
    if spoil == "header order":
        headers[0], headers[1] = headers[1], headers[0]
    elif spoil == "header case":
        headers[0] = (headers[0][0].lower(), headers[0][1])
    elif spoil == "query":
        path = path.partition("?")[0]
    elif spoil == "tool property":
        first["tools"][1]["input_schema"]["properties"].pop("timeout")
    elif spoil == "cache mark":
        body["messages"][0]["content"][1]["cache_control"] = {"type": "ephemeral"}
    spoilt = list(server.seen)
    spoilt[1] = Seen("POST", third.path, server.seen[1].headers, json.dumps(first).encode())
    spoilt[2] = Seen("POST", path, headers, json.dumps(body).encode())
    if spoil == "one missing":
        with pytest.raises(AssertionError, match="expected 4 requests, seen 3"):
            paired(spoilt[:-1], recorded(play, "basic"), play)
    else:
        assert differences(paired(spoilt, recorded(play, "basic"), play), play) != []


def test_what_was_not_recorded_is_named_as_such() -> None:
    assert set(NOT_RECORDED.values()) == {"n/a: not recorded"}
