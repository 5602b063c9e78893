"""Where an engine cannot say how it renders, calls are plain ones and say why."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reference.capture.running import JSON, Proxy, route
from tests.reference.capture.scripted_engine import Answer, ScriptedEngine, completion

pytestmark = pytest.mark.unit

HISTORY = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": "?"},
]


def tokens(**told: JSON) -> Answer:
    return Answer(body=json.dumps(told).encode())


@pytest.fixture(scope="module")
def continuing(_engine: ScriptedEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    base_url = _engine.base_url
    routes = {
        "policy": route(base_url, token_injection=True, tool_parser="hermes"),
        "prefix": route(base_url, token_injection=True, injection_transport="prefix_chat", timeout_secs=0.3),
        "plain": route(base_url),
    }
    with Proxy(tmp_path_factory.mktemp("continuing"), {"routes": routes}) as running:
        yield running


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        pytest.param(Answer(500, b"{}"), "render_failed", id="fails"),
        pytest.param(Answer(404, b"{}"), "render_failed", id="absent"),
        pytest.param(Answer(body=b"[1, 2]"), "render_failed", id="list"),
        pytest.param(Answer(body=b"{"), "render_failed", id="no-json"),
        pytest.param(Answer(hang_up=True), "render_failed", id="hangs-up"),
        pytest.param(tokens(tokens=[]), "render_failed", id="no-ids"),
        pytest.param(tokens(tokens=["1"]), "render_failed", id="text-ids"),
        pytest.param(tokens(tokens=[1, True]), "render_failed", id="bool-ids"),
        pytest.param(tokens(tokens=[1, 2, 3]), "border_unknown", id="no-border"),
    ],
)
def test_an_engine_that_cannot_render_is_asked_once_and_plainly(
    continuing: Proxy, engine: ScriptedEngine, session: str, told: Answer, reason: str
) -> None:
    engine.serve("/tokenize", told)
    assert continuing.chat(session).status == 200
    assert continuing.chat(session, messages=HISTORY).status == 200
    assert [asked.path for asked in engine.asked if asked.path != "/tokenize"] == ["/v1/chat/completions"] * 2
    assert engine.chats()[1].body["messages"] == HISTORY
    extras = [one["x_trackgauge"] for one in continuing.records(session)]
    assert [(one["injected"], one["plain_reason"]) for one in extras] == [(False, "first_call"), (False, reason)]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "rendering_changed"),
        ({"chat_template_kwargs": {"enable_thinking": False}}, "rendering_changed"),
        ({"add_special_tokens": True}, "rendering_changed"),
        ({"truncate_prompt_tokens": 9}, "chat_only_key"),
        ({"tool_choice": "required", "tools": [{"type": "function"}]}, "forced_tool"),
        ({"tool_choice": None, "tools": [{"type": "function"}]}, "forced_tool"),
        ({"tools": [{"type": "function", "function": {"name": "f", "strict": True}}]}, "forced_tool"),
        ({"response_format": {"type": "json_object"}}, "chat_only_key"),
        ({"continue_final_message": True, "add_generation_prompt": False}, "nothing_added"),
        ({"messages": [{"role": "user", "content": "other"}, *HISTORY[1:]]}, "history_unknown"),
        ({"messages": [*HISTORY[:2], {"role": "user", "content": [{"type": "image_url"}]}]}, "not_text"),
    ],
    ids=["tools", "template", "begin", "cut", "forced", "null", "strict", "form", "prefill", "edited", "image"],
)
def test_each_kind_of_call_that_is_not_continued_says_why(
    continuing: Proxy, engine: ScriptedEngine, session: str, changes: JSON, reason: str
) -> None:
    continuing.chat(session)
    continuing.chat(session, **{"messages": HISTORY, **changes})
    assert [asked.path for asked in engine.asked] == ["/v1/chat/completions"] * 2
    assert continuing.records(session)[-1]["x_trackgauge"]["plain_reason"] == reason


@pytest.mark.parametrize(
    ("message", "paths"),
    [
        ("prompt must be text", ["chat/completions", "completions", "chat/completions"]),
        ("Out of range float values are not JSON compliant", ["chat/completions", "completions"]),
    ],
    ids=["before", "after"],
)
def test_a_refusal_that_comes_after_the_generation_is_not_followed_by_another(
    continuing: Proxy, engine: ScriptedEngine, session: str, message: str, paths: list[str]
) -> None:
    engine.plan(completion(prompt_token_ids=[5, 2000, 3]), completion())
    engine.serve("/tokenize", tokens(tokens=[3, 2000, 3], max_model_len=100))
    told = json.dumps({"error": {"message": message, "type": "BadRequestError", "code": 400}})
    engine.serve("/v1/completions", Answer(400, told.encode()))
    continuing.chat(session)
    reply = continuing.chat(session, messages=HISTORY)
    assert reply.status == (200 if len(paths) == 3 else 400)
    assert [asked.path for asked in engine.asked if asked.path != "/tokenize"] == [f"/v1/{path}" for path in paths]


def test_a_prompt_that_was_cut_down_is_not_gone_on_from_by_a_call_that_is_not(
    continuing: Proxy, engine: ScriptedEngine, session: str
) -> None:
    continuing.chat(session, truncate_prompt_tokens=9)
    continuing.chat(session, messages=HISTORY)
    assert [one["x_trackgauge"]["plain_reason"] for one in continuing.records(session)] == [
        "first_call",
        "rendering_changed",
    ]


@pytest.mark.parametrize("depth", [250, 950, 990, 2000])
@pytest.mark.parametrize("key", ["tools", "messages"])
def test_a_request_of_any_depth_is_answered_or_refused(continuing: Proxy, session: str, depth: int, key: str) -> None:
    nested = b'{"a":' * depth + b"1" + b"}" * depth
    odd = b'{"role":"tool","content":%b}' % nested if key == "messages" else b'{"role":"user","content":"?"}'
    history = b",".join(json.dumps(one).encode() for one in HISTORY)
    tools = b',"tools":[{"type":"function","function":{"name":"f","parameters":%b}}]' % nested
    body = b'{"model":"policy","messages":[%b,%b]%b}' % (history, odd, tools if key == "tools" else b"")
    continuing.chat(session)
    reply = continuing.call("POST", "/v1/chat/completions", body, {"proxy_x_session_id": session})
    assert reply.status in (200, 400)


def test_counts_tell_every_recorded_call_of_a_continuing_route_once(
    continuing: Proxy, engine: ScriptedEngine, session: str
) -> None:
    before = continuing.call("GET", "/v1/continuity").json
    continuing.chat(session)
    continuing.chat(session, model="plain")
    continuing.chat(None)
    after = continuing.call("GET", "/v1/continuity").json
    assert after["schema_version"] == 1
    assert after["plain"]["first_call"] == before["plain"].get("first_call", 0) + 1
    assert {**after, "plain": {}, "remembered": {}} == {**before, "plain": {}, "remembered": {}}


def test_a_route_that_continues_nothing_asks_no_tokenizer_and_says_nothing(
    continuing: Proxy, engine: ScriptedEngine, session: str
) -> None:
    continuing.chat(session, model="plain")
    continuing.chat(session, model="plain", messages=HISTORY)
    assert {asked.path for asked in engine.asked} == {"/v1/chat/completions"}
    assert continuing.records(session)[-1]["x_trackgauge"].get("plain_reason") is None


def test_without_capture_there_is_nothing_to_continue(engine: ScriptedEngine, tmp_path: Path) -> None:
    profile = {"routes": {"policy": route(engine.base_url, token_injection=True)}}
    with Proxy(tmp_path / "uncaptured", profile, capture=False) as proxy:
        proxy.chat("s")
        proxy.chat("s", messages=HISTORY)
        assert {asked.path for asked in engine.asked} == {"/v1/chat/completions"}
        assert proxy.call("GET", "/v1/continuity").status == 404
