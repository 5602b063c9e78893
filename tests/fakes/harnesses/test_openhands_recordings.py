"""The fakes' own requests against what the real OpenHands sent.

A scripted server plays the model's part of a recording; each request of the fake must then have the recorded form:
method, path, header names in order and case, key order, types, nulls, string or list form, roles, literal values.
Text lengths and tool schemas are free.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from fakes.harnesses.openhands_nv import OpenHandsNV
from fakes.harnesses.openhands_sdk import OpenHandsSDK
from tests.fakes.harnesses.conftest import RECORDINGS, Reply, Seen, Serve, completion, error, same_account
from tests.fakes.harnesses.recorded_form import departures, head_departures

pytestmark = pytest.mark.anyio

FILLED = {
    "str_replace_editor": '{"command": "create", "path": "/a", "file_text": "x", "security_risk": "LOW"}',
    "file_editor": '{"command": "create", "path": "/a", "file_text": "x"}',
    "task": '{"prompt": "Look."}',
    "terminal": '{"command": broken',
}
"""Arguments for calls of which the recording tells the length only; the terminal's one is the malformed call."""

FINISH = completion(None, [("call_f", "finish", '{"message": "Done."}')])
SUMMARY = completion("What was done so far.")
OVERFLOW = error(400, "This model's maximum context length is 100 tokens. Please reduce the length of the messages.")
STREAMED = Reply(
    content_type="text/event-stream",
    chunks=(
        b'data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":"Hello."}}]}\n\n',
        b'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
    ),
)


def recorded(name: str) -> list[dict[str, Any]]:
    requests: list[dict[str, Any]] = json.loads((RECORDINGS / f"{name}.json").read_text())["requests"]
    return requests


def turns(name: str) -> list[Reply]:
    """The model's tool turns of a recording, as answers, in the order in which they first stand in a history."""
    found: dict[str, Reply] = {}
    for request in recorded(name):
        for message in request["body_shape"]["messages"]:
            if calls := message.get("tool_calls"):
                found.setdefault(calls[0]["id"], _as_answer(message))
    return list(found.values())


def _as_answer(message: dict[str, Any]) -> Reply:
    calls = [(call["id"], call["function"]["name"], _arguments(call["function"])) for call in message["tool_calls"]]
    keys = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")
    triple = {key: message[key] for key in keys if key in message}
    return completion("Let me look." if message.get("content") else None, calls, **triple)


def _arguments(function: dict[str, str]) -> str:
    shape = function["arguments"]
    literal = shape.removeprefix("<json-string:").removesuffix(">")
    return literal if literal.startswith("{") else FILLED[function["name"]]


def nv(url: str) -> OpenHandsNV:
    return OpenHandsNV(url, session="s", completion_kwargs={"return_token_ids": True, "skip_special_tokens": False})


def sdk(**options: Any) -> Callable[[str], OpenHandsSDK]:
    return lambda url: OpenHandsSDK(url, **options)


@dataclass(frozen=True)
class Play:
    """How a recording is played again: the model's answers, the fake, and how the run ended."""

    replies: list[Reply]
    client: Callable[[str], OpenHandsNV | OpenHandsSDK]
    ended: str = "finished"


DROP = Reply(how="drop")
SESSION = sdk(
    session="s",
    extra_headers={"x-session-id": "abc-123"},
    extra_body={"return_token_ids": True, "metadata": {"session_id": "s"}},
    max_output_tokens=512,
    seed=7,
)


def plays() -> dict[str, Play]:
    """Every recording, by name."""
    bad_nv = [
        completion(None, [("c", "execute_bash", '{"command": broken')]),
        completion("Hm.", [("c", "nosuchtool", '{"a": 1}')]),
        completion("Hm.", [("c", "execute_bash", "{}")]),
    ]
    condense = turns("sdk_condense")
    child_one, child_two, tasks = turns("sdk_subagent")
    texts = ["ok\n<function=terminal>\n<parameter=command>echo</parameter>\n", "<function=finish>\n"]
    return {
        "nv_basic": Play([*turns("nv_basic"), FINISH], nv),
        "nv_badjson": Play([*bad_nv, FINISH], nv),
        "nv_drop": Play([*turns("nv_drop"), DROP, DROP, FINISH], nv),
        "nv_err500": Play([error(500)], nv, "error"),
        "nv_parallel": Play([*turns("nv_parallel"), FINISH], nv),
        "sdk_basic": Play([*turns("sdk_basic"), FINISH], sdk()),
        "sdk_badjson": Play([*turns("sdk_badjson"), FINISH], sdk()),
        "sdk_condense": Play([*condense[:5], SUMMARY, *condense[5:], SUMMARY, FINISH], sdk(condense_at=10)),
        "sdk_ctxwin_condense": Play([*turns("sdk_ctxwin_condense"), OVERFLOW, SUMMARY, FINISH], sdk(condense_at=80)),
        "sdk_drop": Play([DROP, FINISH], sdk()),
        "sdk_err500": Play([error(500), error(500), FINISH], sdk()),
        "sdk_nonnative": Play([completion(text) for text in texts], sdk(native=False)),
        "sdk_parallel": Play([*turns("sdk_parallel"), FINISH], sdk()),
        "sdk_reasoning": Play([*turns("sdk_reasoning"), FINISH], sdk()),
        "sdk_session": Play([completion("Hello.")], SESSION, "error"),
        "sdk_stream2": Play([STREAMED], sdk(stream=True), "answered"),
        "sdk_subagent": Play([tasks, child_one, FINISH, child_two, FINISH, FINISH], sdk(subagents=True)),
    }


@pytest.mark.parametrize("name", sorted(plays()))
async def test_the_fake_sends_what_the_real_client_sent(serve: Serve, name: str) -> None:
    play = plays()[name]
    async with serve(*play.replies) as server:
        talk = await play.client(server.url).run("Fix it.")
    assert talk.ended == play.ended, talk.error
    assert len(server.seen) == len(recorded(name))
    differences = [
        f"request {n}: {difference}"
        for n, (seen, request) in enumerate(zip(server.seen, recorded(name), strict=True))
        for difference in (*head_differences(seen, request), *differences_of(seen.json(), request["body_shape"]))
    ]
    assert differences == []
    assert conversations_in(server.seen) == recorded_conversations(name)
    same_account(talk, server.seen)


def test_every_recording_is_played() -> None:
    assert set(plays()) == {path.stem for path in RECORDINGS.glob("*.json")}


@pytest.mark.parametrize(
    ("seen", "shape"),
    [
        pytest.param({"a": 1, "b": 2}, {"b": 2, "a": 1}, id="key order"),
        pytest.param({"a": 1}, {"a": 1.0}, id="int for float"),
        pytest.param({"a": True}, {"a": 1}, id="bool for int"),
        pytest.param({}, {"a": None}, id="absent for null"),
        pytest.param({"content": ""}, {"content": "<text>"}, id="empty for text"),
        pytest.param({"content": "x"}, {"content": [{"type": "text", "text": "<text>"}]}, id="string for parts"),
        pytest.param({"role": "user"}, {"role": "system"}, id="literal"),
        pytest.param({"arguments": '{"a":1}'}, {"arguments": '<json-string:{"a": 1}>'}, id="arguments re-dumped"),
        pytest.param({"arguments": "{a"}, {"arguments": "<json-string len=2>"}, id="arguments that do not parse"),
        pytest.param([1, 2], [1], id="one too many"),
    ],
)
def test_the_comparison_sees_every_kind_of_difference(seen: Any, shape: Any) -> None:
    assert differences_of(seen, shape) != []


def differences_of(seen: Any, shape: Any) -> list[str]:
    """Where a request departs from the recorded form."""
    return departures(seen, shape, _own_forms)


def _own_forms(seen: Any, shape: Any, at: str) -> list[str] | None:
    if shape == "<text>":
        return [] if isinstance(seen, str) and seen else [f"{at}: expected a text, seen {seen!r}"]
    if shape == "<json-schema>":
        return [] if isinstance(seen, dict) else [f"{at}: expected a schema, seen {seen!r}"]
    if isinstance(shape, str) and shape.startswith("<json-string"):
        return _json_string_differences(seen, shape, at)
    return [] if at.endswith("prompt_cache_key") and type(seen) is type(shape) else None


def _json_string_differences(seen: Any, shape: str, at: str) -> list[str]:
    literal = shape.removeprefix("<json-string:").removesuffix(">")
    if literal.startswith("{"):
        return [] if seen == literal else [f"{at}: expected {literal}, seen {seen!r}"]
    try:
        json.loads(seen)
    except ValueError:
        return [f"{at}: expected JSON, seen {seen!r}"]
    return []


def head_differences(seen: Seen, request: dict[str, Any]) -> list[str]:
    return head_departures(seen, request, {"Host", "Content-Length", "Authorization", "x-litellm-session-id"})


def conversations_in(seen: list[Seen]) -> list[tuple[int, int]]:
    """Per request: which conversation its header names, and which its cache key, numbered by first appearance."""
    return _numbered(
        [(dict(one.headers).get("x-litellm-session-id"), one.json().get("prompt_cache_key")) for one in seen]
    )


def recorded_conversations(name: str) -> list[tuple[int, int]]:
    return _numbered(
        [
            (dict(map(tuple, one["headers"])).get("x-litellm-session-id"), one["body_shape"].get("prompt_cache_key"))
            for one in recorded(name)
        ]
    )


def _numbered(pairs: list[tuple[Any, Any]]) -> list[tuple[int, int]]:
    numbers: dict[Any, int] = {}
    return [(numbers.setdefault(a, len(numbers)), numbers.setdefault(b, len(numbers))) for a, b in pairs]
