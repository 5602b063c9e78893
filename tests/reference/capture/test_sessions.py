"""Which session a call is recorded under."""

import json
from collections.abc import Mapping

import pytest

from tests.reference.capture.running import JSON, Proxy
from tests.reference.capture.scripted_engine import ScriptedEngine

pytestmark = pytest.mark.unit


def recorded_under(proxy: Proxy, before: set[str]) -> set[str]:
    return {row["session_id"] for row in proxy.sessions()} - before


LADDER: dict[str, tuple[dict[str, str], JSON, str | None]] = {
    "header": ({"PROXY_X_Session_Id": "{s}"}, None, "{s}"),
    "body": ({}, "{s}", "{s}"),
    "header_before_body": ({"proxy_x_session_id": "{s}"}, "{s}-body", "{s}"),
    "body_before_native": ({"X-Session-Id": "{s}-native"}, "{s}", "{s}"),
    "native_before_key": ({"X-Session-Id": "{s}", "Authorization": "Bearer sycap-session:{s}-key"}, None, "{s}"),
    "claude_code": ({"X-Claude-Code-Session-Id": "{s}"}, None, "{s}"),
    "codex": ({"session-id": "{s}"}, None, "{s}"),
    "litellm": ({"x-litellm-session-id": "{s}"}, None, "{s}"),
    "bearer": ({"Authorization": "bearer sycap-session:{s}"}, None, "{s}"),
    "x_api_key": ({"x-api-key": "sycap-session:{s}"}, None, "{s}"),
    "blank_header": ({"proxy_x_session_id": "  "}, "{s}", "{s}"),
    "bare_marker": ({"Authorization": "Bearer sycap-session:"}, None, None),
    "marker_in_capitals": ({"Authorization": "Bearer SYCAP-SESSION:{s}"}, None, None),
    "ordinary_key": ({"Authorization": "Bearer {s}"}, None, None),
    "number_in_the_body": ({}, 7, None),
    "blank_body": ({}, "  ", None),
    "look_alike": ({"X-Session": "{s}", "session_id": "{s}"}, None, None),
}


@pytest.mark.parametrize("name", LADDER)
def test_the_first_source_that_names_a_session_wins(
    name: str, proxy: Proxy, engine: ScriptedEngine, session: str
) -> None:
    headers, body, expected = LADDER[name]
    sent = {header: value.replace("{s}", session) for header, value in headers.items()}
    value = body.replace("{s}", session) if isinstance(body, str) else body
    before = {row["session_id"] for row in proxy.sessions()}
    reply = proxy.chat(None, sent, **({} if value is None else {"proxy_x_session_id": value}))
    assert reply.status == 200
    assert recorded_under(proxy, before) == (set() if expected is None else {session})
    (asked,) = engine.chats()
    assert "proxy_x_session_id" not in asked.body
    assert ("logprobs" in asked.body) is (expected is not None)


KINSHIP: dict[str, tuple[dict[str, str], str | None, dict[str, str | None]]] = {
    "native": (
        {"X-Session-Id": "{s}", "X-Parent-Session-Id": "root"},
        None,
        {"parent_session_id": "root", "native_session_id": None, "native_parent_id": None},
    ),
    "explicit_alone": (
        {"X-Parent-Session-Id": "root"},
        "{s}",
        {"parent_session_id": "root", "native_session_id": None, "native_parent_id": None},
    ),
    "explicit_beside_native": (
        {"X-Session-Id": "ses_2", "X-Parent-Session-Id": "ses_1"},
        "{s}",
        {"parent_session_id": None, "native_session_id": "ses_2", "native_parent_id": "ses_1"},
    ),
    "agents": (
        {"x-claude-code-agent-id": "a2", "x-claude-code-parent-agent-id": "a1"},
        "{s}",
        {"agent_id": "a2", "parent_agent_id": "a1", "parent_session_id": None},
    ),
}


@pytest.mark.parametrize("name", KINSHIP)
def test_kinship_is_kept_in_the_id_space_it_came_from(name: str, proxy: Proxy, session: str) -> None:
    headers, body, expected = KINSHIP[name]
    sent = {header: value.replace("{s}", session) for header, value in headers.items()}
    proxy.chat(session if body is not None else None, sent)
    (record,) = proxy.records(session)
    seen = record | record["x_trackgauge"]
    assert {key: seen[key] for key in expected} == expected


def test_the_first_parent_stays(proxy: Proxy, session: str) -> None:
    for parent in (None, "first", "second", None):
        proxy.chat(session, {} if parent is None else {"X-Parent-Session-Id": parent})
    assert [record["parent_session_id"] for record in proxy.records(session)] == [None, "first", "first", "first"]
    rows = [row for row in proxy.sessions() if row["session_id"] == session]
    assert rows == [{"session_id": session, "parent_session_id": "first"}]


ODD_IDS = [
    "a/b",
    "..",
    "../../x",
    "a\x00b",
    "a\nb",
    "💥 ?#%2F",
    "A",
    "a",
    "  padded ",
    "\ud83d",
    "x" * 5000,
    "💥" * 5000,
    "%2e",
]


@pytest.mark.parametrize("odd", ODD_IDS, ids=[ascii(odd)[:20] for odd in ODD_IDS])
def test_an_id_of_any_characters_is_kept_and_found(odd: str, proxy: Proxy) -> None:
    assert proxy.chat(odd).status == 200
    assert [record["session_id"] for record in proxy.records(odd)] == [odd]
    assert odd in {row["session_id"] for row in proxy.sessions()}
    assert {path.name for path in proxy.log_dir.iterdir()} == {"sessions"}


@pytest.mark.parametrize("blank", ["\u00a0", "\u2003", "\u0085"])
@pytest.mark.parametrize("where", ["proxy_x_session_id", "Authorization", "x-api-key"])
def test_ids_that_differ_in_a_blank_never_meet(where: str, blank: str, proxy: Proxy, session: str) -> None:
    marker = {"Authorization": "Bearer sycap-session:", "x-api-key": "sycap-session:"}.get(where, "")
    for wanted in (session, session + blank):
        proxy.chat(None, {where: (marker + wanted).encode().decode("latin-1")})
    assert [len(proxy.records(wanted)) for wanted in (session, session + blank)] == [1, 1]


def test_an_id_in_a_header_is_read_as_utf_8(proxy: Proxy, session: str) -> None:
    wanted = f"{session}-ü⟦"
    proxy.chat(None, {"proxy_x_session_id": wanted.encode().decode("latin-1")})
    assert len(proxy.records(wanted)) == 1


def test_disagreeing_sources_are_named_in_the_log_without_their_values(proxy: Proxy, session: str) -> None:
    proxy.chat(f"{session}-one", {"proxy_x_session_id": f"{session}-two"})
    assert "header proxy_x_session_id, body proxy_x_session_id" in proxy.log.read_text()
    assert f"{session}-one" not in proxy.log.read_text()


def test_no_credential_of_a_client_goes_anywhere(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    secrets: Mapping[str, str] = {
        "Authorization": "Bearer client-secret-1",
        "x-api-key": "client-secret-2",
        "Cookie": "client-secret-3",
    }
    proxy.chat(session, secrets)
    proxy.chat(None, secrets)
    proxy.chat(None, {"x-api-key": f"sycap-session:{session}-marked"})
    for asked in engine.chats():
        sent = json.dumps(asked.headers) + asked.raw.decode()
        assert "client-secret" not in sent
        assert "sycap-session" not in sent
        assert asked.header("authorization") == "Bearer engine-secret"
    written = [path.read_text() for path in proxy.log_dir.rglob("*.json")] + [proxy.log.read_text()]
    assert not [text for text in written if "client-secret" in text or "sycap-session" in text]


def test_a_route_without_an_engine_key_is_not_captured(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    assert proxy.chat(session, model="plain").status == 200
    assert proxy.call("GET", f"/v1/sessions/{session}/completions").status == 404
    assert engine.chats()[0].body == {"model": "served", "messages": [{"role": "user", "content": "hi"}]}
