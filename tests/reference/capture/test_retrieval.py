"""What is handed out again, whatever else lies in the folders."""

import hashlib
import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.reference.capture.running import Proxy, route
from tests.reference.capture.scripted_engine import Answer, ScriptedEngine

pytestmark = pytest.mark.unit


def folder_of(proxy: Proxy, session: str) -> Path:
    return proxy.log_dir / "sessions" / hashlib.sha256(session.encode()).hexdigest()


def test_damaged_and_foreign_files_hide_nothing_else(proxy: Proxy, session: str) -> None:
    proxy.chat(session)
    proxy.chat(f"{session}-other")
    place = folder_of(proxy, session)
    (kept,) = place.glob("*.json")
    text = kept.read_bytes()
    (place / "torn.json").write_bytes(text[:100])
    (place / "latin.json").write_bytes(b'{"uuid": "\xe9"}')
    (place / "list.json").write_bytes(b"[]")
    (place / "deep.json").write_bytes(b"[" * 100_000)
    (place / "nan.json").write_bytes(text.replace(b'"stop_reason":null', b'"stop_reason":NaN'))
    (place / "copy.json").write_bytes(text)
    (place / "old.json").write_bytes(json.dumps({**json.loads(text), "uuid": "old", "schema_version": 2}).encode())
    (place / ".left.json.tmp").write_bytes(text[:50])
    (place / "folder.json").mkdir()
    os.mkfifo(place / "pipe.json")
    os.symlink("/dev/zero", place / "zero.json")
    foreign = next(folder_of(proxy, f"{session}-other").glob("*.json"))
    shutil.copy(foreign, place / foreign.name)
    try:
        assert proxy.records(session) == [json.loads(text)]
        assert {session, f"{session}-other"} <= {row["session_id"] for row in proxy.sessions()}
        proxy.chat(session)
        assert len(proxy.records(session)) == 2
    finally:
        shutil.rmtree(place)


def test_a_record_is_handed_out_as_it_stands_on_disk(proxy: Proxy, session: str) -> None:
    proxy.chat(session)
    (kept,) = folder_of(proxy, session).glob("*.json")
    record = json.loads(kept.read_bytes()) | {"of_the_future": 10**30}
    kept.write_text(json.dumps(record, indent=2))
    assert proxy.records(session) == [record]


def test_an_envelope_is_the_same_after_a_restart_and_from_another_process(
    engine: ScriptedEngine, tmp_path: Path
) -> None:
    profile = {"routes": {"policy": route(engine.base_url)}}
    with Proxy(tmp_path / "a", profile) as first:
        for session in ("b", "a", "b"):
            first.chat(session, {"X-Parent-Session-Id": "root"})
        with Proxy(tmp_path / "b", profile, log_dir=first.log_dir) as second:
            assert (
                second.call("GET", "/v1/sessions/b/completions").raw
                == first.call("GET", "/v1/sessions/b/completions").raw
            )
            assert [row["session_id"] for row in second.sessions()] == ["b", "a"]
            second.chat("b")
            first.chat("b")
            assert len(first.records("b")) == 4
            assert {record["parent_session_id"] for record in first.records("b")} == {"root"}
            before = second.envelope("b")
        first.end(signal.SIGKILL)
    with Proxy(tmp_path / "c", profile, log_dir=first.log_dir) as third:
        assert third.envelope("b") == before


@pytest.mark.parametrize("path", ["nobody", "../..", "%2E%2E%2Fsessions", "%2e%2e%2f%2e%2e", "", "%00", "a/../b"])
def test_what_is_not_there_is_404(path: str, proxy: Proxy) -> None:
    reply = proxy.call("GET", f"/v1/sessions/{path}/completions")
    assert (reply.status, reply.json["error"]["code"]) == (404, "session_not_found")


def test_a_store_that_cannot_be_read_is_no_empty_session(engine: ScriptedEngine, tmp_path: Path) -> None:
    with Proxy(tmp_path, {"routes": {"policy": route(engine.base_url)}}) as proxy:
        assert proxy.call("GET", "/v1/sessions").json == {"schema_version": 1, "sessions": []}
        proxy.log_dir.joinpath("sessions").rename(proxy.log_dir / "elsewhere")
        for path in ("/v1/sessions", "/v1/sessions/a/completions"):
            reply = proxy.call("GET", path)
            assert (reply.status, reply.json["error"]["code"]) == (500, "store_unreadable")


def test_small_questions_are_answered(proxy: Proxy) -> None:
    assert proxy.call("GET", "/health").json == {"status": "ok"}
    assert proxy.call("GET", "/nothing").status == 404
    assert proxy.call("GET", "/v1/chat/completions").status == 405
    assert proxy.call("POST", "/v1/sessions").status == 405


def listed(*models: tuple[str, object]) -> bytes:
    return json.dumps({"data": [{"id": name, "max_model_len": length} for name, length in models]}).encode()


def lengths(proxy: Proxy) -> dict[str, int | None]:
    return {model["id"]: model.get("max_model_len") for model in proxy.call("GET", "/v1/models").json["data"]}


def test_models_are_the_routes_with_the_length_of_their_own_model(tmp_path: Path) -> None:
    with ScriptedEngine() as engine:
        profile = {"routes": {"policy": route(engine.base_url), "plain": {"target": "x", "base_url": engine.base_url}}}
        with Proxy(tmp_path, profile) as proxy:
            assert lengths(proxy) == {"policy": None, "plain": None}
            engine.serve("/tokenize", Answer(body=b'{"max_model_len": true}'))
            assert lengths(proxy) == {"policy": None, "plain": None}
            engine.serve("/tokenize", Answer(body=b'{"max_model_len": 77}'))
            assert lengths(proxy) == {"policy": 77, "plain": None}
            engine.serve("/v1/models", Answer(body=listed(("other", 5), ("served", 1024))))
            assert lengths(proxy) == {"policy": 1024, "plain": None}


def test_an_engine_that_comes_up_later_is_listed_with_its_length(tmp_path: Path) -> None:
    with ScriptedEngine() as gone:
        port = gone.port
    late = ScriptedEngine()
    late.port = port
    late.serve("/v1/models", Answer(body=listed(("served", 1024))))
    with Proxy(tmp_path, {"routes": {"policy": route(late.base_url)}}) as proxy:
        assert lengths(proxy) == {"policy": None}
        with late:
            assert lengths(proxy) == {"policy": 1024}
