"""The fake's own requests against what the real opencode sent.

A scripted model plays its part of a recording; each request of the fake must then have the recorded form: method,
path, header names in order and case, key order, types, nulls, string or list form, roles, literal values, and the tools
by name. Text lengths and tool schemas are free. Requests are compared session by session, in the order they were sent.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from fakes.harnesses.conversation import Conversation
from fakes.harnesses.exchanges import Sent
from fakes.harnesses.opencode import Attachment, OpenCode
from tests.fakes.harnesses.conftest import Reply, Seen, Serve, error
from tests.fakes.harnesses.opencode.comparison import (
    RECORDINGS,
    body_differences,
    by_session,
    differences_of,
    families,
    head_differences,
    recorded,
    recorded_by_session,
    recorded_families,
    text_length,
    tool_differences,
)
from tests.fakes.harnesses.opencode.conftest import DONE, OVERFLOW, Answer, Script, first_child, kind_of, streamed

pytestmark = pytest.mark.anyio

CONVERSATIONS = {
    "plain": "cli_basic",
    "parallel tools": "cli_parallel",
    "reasoning": "cli_reasoning_plain",
    "reasoning in a field of its own choice": "n/a: not recorded",
    "subagents": "c_task",
    "subagents that overlap": "serve_task_par",
    "a subagent that fails": "n/a: not recorded",
    "a task id that is no session id": "n/a: not recorded",
    "compaction": "c_compact",
    "compaction with a later user message": "serve_compaction",
    "a second compaction": "n/a: not recorded",
    "compaction inside a subagent": "n/a: not recorded",
    "overflow": "serve_overflow400",
    "overflow after a second user message": "n/a: not recorded",
    "continued and forked": "c_cont",
    "files": "c_file",
    "bad arguments": "serve_badargs",
    "a call cut by the output limit": "serve_length_tool",
    "a stream that ends without a finish reason": "serve_drop_clean",
    "an error event in a stream": "serve_drop_err",
    "retry after a cut stream": "n/a: not recorded",
    "retry after 429": "serve_err429",
    "retry after 500": "serve_err500",
    "an empty answer": "serve_empty",
    "another model for titles": "serve_small",
    "a title that fails": "n/a: not recorded",
    "an answer that is no stream": "n/a: not recorded",
}
"""Which recording shows what the fake plays; of what has none the facts tell, or it is a guess that says so."""

LIMITS: dict[str, Any] = {"model": "mock-model", "context": 32768, "output": 4096}
SMALL_WINDOW: dict[str, Any] = {"context": 16000, "output": 2000, "tool_results": {"bash": "x" * 7893}}
FULL = 15157
"""The usage that the recorded server reported on the answer before the compaction; all others were below 14,000."""


def answers(name: str, **of_call: Any) -> list[list[Answer]]:
    """The model's answers in a recording, by session: in each main request the last new assistant message.

    ``of_call`` gives by call id what else goes into its answer.
    """
    sessions: dict[str, list[Answer]] = {}
    before: dict[str, list[Any]] = {}
    for request in recorded(name):
        body = request["body_shape"]
        session = dict(map(tuple, request["headers"]))["x-session-id"]
        mine = sessions.setdefault(session, [])
        if kind_of(body) != "main":
            continue
        messages = body["messages"]
        new = messages[_shared(before.get(session, messages), messages) :]
        before[session] = messages
        if said := [message for message in new if message["role"] == "assistant"]:
            mine.append(_as_answer(said[-1], of_call))
    return list(sessions.values())


def _shared(one: list[Any], other: list[Any]) -> int:
    """How many messages both begin with."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _as_answer(message: dict[str, Any], of_call: dict[str, Any]) -> Reply:
    calls = [
        (call["id"], call["function"]["name"], json.dumps(_filled(call["function"]["arguments"]["keys"])))
        for call in message.get("tool_calls", [])
    ]
    more: dict[str, Any] = of_call.get(calls[0][0], {}) if calls else {}
    if "reasoning_content" in message:
        more = more | {"reasoning_content": "Hm."}
    return streamed(_filled(message["content"]), calls, **more)


def _filled(shape: Any) -> Any:
    """A value of the recorded form, with text of the recorded length."""
    if isinstance(shape, dict):
        return {key: _filled(value) for key, value in shape.items()}
    if isinstance(shape, str) and (length := text_length(shape)) is not None:
        return "x" * length
    return shape


Drive = Callable[[OpenCode], Awaitable[list[Conversation]]]


def asking(task: str, **how: Any) -> Drive:
    async def drive(agent: OpenCode) -> list[Conversation]:
        return [await agent.run(task, **how)]

    return drive


FIX = asking("Fix it.")


async def continued_and_forked(agent: OpenCode) -> list[Conversation]:
    first = await agent.run("Look.")
    second = await agent.run("Go on.", before=first)
    third = await agent.run("More.", before=second)
    return [first, second, third, await agent.run("Else.", before=third, fork=True)]


@dataclass(frozen=True)
class Play:
    """How a recording is played again: the model's answers, the fake's options, what is asked, how it ended."""

    sessions: list[list[Answer]]
    options: dict[str, Any]
    drive: Drive = FIX
    ended: str = "answered"


def _tasks(prefix: str) -> list[tuple[str, str, str]]:
    kinds = ("general", "explore")
    return [
        (f"{prefix}_{at}", "task", json.dumps({"description": "a", "prompt": f"Look {kind}", "subagent_type": kind}))
        for at, kind in enumerate(kinds, start=2)
    ]


def _taken_up(seen: Seen) -> Reply:
    arguments = {"description": "a", "prompt": "Go on.", "subagent_type": "general", "task_id": first_child(seen)}
    return streamed("Again.", [("t_4", "task", json.dumps(arguments))])


def with_subagents(name: str) -> list[list[Answer]]:
    _, general, explore = answers(name)
    return [[streamed("Two at once.", _tasks("t")), _taken_up, DONE], [general[0], DONE, DONE], [explore[0], DONE]]


BASH = '{"command": "echo a", "description": "b"}'
ODD = '{"command": "echo a", "description": "b", "extra": {"z": 1.0, "a": [1.50, 1e3, 12345678901234567890]}}'
CUT = '{"command": "echo a'
BROKEN: list[Answer] = [
    streamed("x", [("b_1", "bash", CUT)]),
    streamed("x", [("b_2", "nosuchtool", BASH)]),
    streamed("x", [("b_3", "bash", '{"cmd": "a"}')]),
    streamed("x", [("b_4", "Bash", BASH)]),
    streamed("x", [("b_5", "bash", "")]),
    streamed("x", [("b_6", "bash", ODD)]),
]
ERROR_EVENT = '{"error": {"message": "it broke", "type": "x", "code": 500}}'
PICTURE = Attachment("/a.png", image="data:image/png;base64,AAAA")


def plays() -> dict[str, Play]:
    """Every recording, by name."""
    run: dict[str, Any] = LIMITS
    untitled = run | {"title": False}
    serve = run | {"serve": True}
    full = {"k_4": {"usage": FULL}}
    call = streamed("x", [("e_1", "bash", BASH)])
    two_errors = [streamed("Let me", events=[ERROR_EVENT]), streamed("x", [("d_1", "bash", CUT)], events=[ERROR_EVENT])]
    two_cuts = [streamed("Let me", finish=None), streamed("x", [("d_1", "bash", CUT)], finish=None)]
    (compacted,), (served,) = answers("c_compact", **full), answers("serve_compaction", **full)
    first, forked = answers("c_cont")
    thought = streamed("Done.", reasoning_content="Hm.")
    return {
        "c_compact": Play([[*compacted, DONE]], untitled | SMALL_WINDOW),
        "c_cont": Play([[*first, thought], [*forked, DONE]], run, continued_and_forked),
        "c_file": Play([[DONE]], untitled, asking("Look", files=[PICTURE, Attachment("/b", text="1: b")])),
        "c_task": Play(with_subagents("c_task"), untitled),
        "cli_basic": Play([[*answers("cli_basic")[0], DONE]], run),
        "cli_parallel": Play([[*answers("cli_parallel")[0], DONE]], run),
        "cli_reasoning_plain": Play([[*answers("cli_reasoning_plain")[0], DONE]], run),
        "serve_badargs": Play([[*BROKEN, DONE]], serve),
        "serve_compaction": Play([[*served, DONE]], serve | SMALL_WINDOW, asking("Fix it.", follow_ups=["And?"])),
        "serve_drop_clean": Play([[*two_cuts, DONE]], serve),
        "serve_drop_err": Play([[*two_errors, streamed("x", [("d_2", "bash", BASH)]), DONE]], serve),
        "serve_empty": Play([[streamed()]], serve),
        "serve_err429": Play([[error(429, **{"Retry-After": "3"}), error(429), DONE]], serve),
        "serve_err500": Play([[error(500), error(503), call, error(500), DONE]], serve),
        "serve_length_tool": Play([[streamed("x", [("l_1", "bash", CUT)], finish="length"), DONE]], serve),
        "serve_overflow400": Play([[streamed("x", [("o_1", "bash", BASH)]), OVERFLOW, DONE]], serve),
        "serve_small": Play([[DONE]], serve | {"small_model": "small-model", "small_output": 1000}),
        "serve_task_par": Play(with_subagents("serve_task_par"), serve | {"title": False}),
    }


@pytest.mark.parametrize("name", sorted(plays()))
async def test_the_fake_sends_what_the_real_client_sent(serve: Serve, name: str) -> None:
    play = plays()[name]
    async with serve(answering=Script(play.sessions)) as server:
        talks = await play.drive(OpenCode(server.url, **play.options))
    assert [(talk.ended, talk.error) for talk in talks] == [(play.ended, None)] * len(talks)
    told = [exchange.request for talk in talks for exchange in talk.all_exchanges]
    differences = [
        f"session {number}, request {n}: {difference}"
        for number, (ours, theirs) in enumerate(zip(by_session(told), recorded_by_session(name), strict=True))
        for n, (seen, request) in enumerate(zip(ours, theirs, strict=True))
        for difference in (*head_differences(seen, request), *body_differences(seen.json_body(), request["body_shape"]))
    ]
    assert differences == []
    assert families(told) == recorded_families(name)
    arrived = [(one.method, one.path, one.headers, one.body) for one in server.seen]
    assert sorted(arrived) == sorted((one.method, one.path, list(one.headers), one.body) for one in told)


def test_every_recording_is_played() -> None:
    assert set(plays()) == {path.stem for path in RECORDINGS.glob("*.json")}


def test_every_kind_of_conversation_names_its_recording_or_has_none() -> None:
    named = [recording for recording in CONVERSATIONS.values() if recording != "n/a: not recorded"]
    assert sorted(named) == sorted(plays())


_JSON_STRING = {"__json_string__": True, "chars": 7, "compact": True}


@pytest.mark.parametrize(
    ("seen", "shape"),
    [
        pytest.param({"a": 1, "b": 2}, {"b": 2, "a": 1}, id="key order"),
        pytest.param({"a": 1}, {"a": 1.0}, id="int for float"),
        pytest.param({"a": True}, {"a": 1}, id="bool for int"),
        pytest.param({}, {"a": None}, id="absent for null"),
        pytest.param({"content": ""}, {"content": "<text:3 chars>"}, id="empty for text"),
        pytest.param({"content": "x"}, {"content": "<text:0 chars>"}, id="text for empty"),
        pytest.param({"content": None}, {"content": "<text:0 chars>"}, id="null for empty"),
        pytest.param({"content": "x"}, {"content": [{"text": "<text:1 chars>"}]}, id="string for parts"),
        pytest.param({"role": "user"}, {"role": "system"}, id="literal"),
        pytest.param({"a": '{"a": 1}'}, {"a": {**_JSON_STRING, "keys": {"a": 1}}}, id="arguments not compact"),
        pytest.param({"a": '{"a":1.0}'}, {"a": {**_JSON_STRING, "keys": {"a": 1}}}, id="arguments not re-written"),
        pytest.param({"a": '{"a":1,"b":2}'}, {"a": {**_JSON_STRING, "keys": {"b": 2, "a": 1}}}, id="argument order"),
        pytest.param({"a": "{a"}, {"a": {**_JSON_STRING, "keys": {}}}, id="arguments that do not parse"),
        pytest.param([1, 2], [1], id="one too many"),
    ],
)
def test_the_comparison_sees_every_kind_of_difference(seen: Any, shape: Any) -> None:
    assert differences_of(seen, shape) != []


def test_the_comparison_sees_a_missing_tool_and_a_header_out_of_place() -> None:
    (one, *_) = (request for request in recorded("serve_empty") if "tools" in request["body_shape"])
    shape = one["body_shape"]
    assert tool_differences([{"type": "function", "function": {"name": "bash"}}], shape["tools"]) != []
    assert tool_differences(shape["tools"], shape["tools"]) == []
    names = [(name, value) for name, value in one["headers"]]
    same = Sent(method=one["method"], path=one["path"], headers=tuple(names))
    turned = Sent(method=one["method"], path=one["path"], headers=tuple(names[::-1]))
    assert (head_differences(same, one), bool(head_differences(turned, one))) == ([], True)
