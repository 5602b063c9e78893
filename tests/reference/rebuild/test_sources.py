"""Log directories and running proxies as sources."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import quote

import pytest

from conformance.contract.rebuilds import RebuildAnswer
from tests.reference.rebuild.making import JSON, answer, envelope, rebuilt, two_turns


def folder(log_dir: Path, session: str) -> Path:
    path = log_dir / "sessions" / sha256(session.encode()).hexdigest()
    path.mkdir(parents=True, exist_ok=True)
    return path


def write(log_dir: Path, record: JSON) -> Path:
    file = folder(log_dir, record["session_id"]) / f"{record['uuid']}.json"
    file.write_text(json.dumps(record))
    return file


def test_records_on_disk_give_the_same_rollout_as_their_envelope(tmp_path: Path) -> None:
    for one in reversed(two_turns()):
        write(tmp_path, one)
    assert answer({"log_dir": str(tmp_path)}) == rebuilt(*two_turns())


def test_records_count_by_the_session_they_name_wherever_they_lie(tmp_path: Path) -> None:
    for n, one in enumerate(two_turns()):
        place = tmp_path / "sessions" / f"anything-{n}"
        place.mkdir(parents=True)
        (place / "x.json").write_text(json.dumps(one))
    assert answer({"log_dir": str(tmp_path)}) == rebuilt(*two_turns())


def test_what_is_no_record_hides_nothing_else(tmp_path: Path) -> None:
    for one in two_turns():
        write(tmp_path, one)
    place = folder(tmp_path, "s")
    (place / "list.json").write_text("[1]")
    (place / "nameless.json").write_text("{}")
    (place / "u9.json.tmp").write_text(json.dumps(two_turns()[0]))
    (place / "folder.json").mkdir()
    assert answer({"log_dir": str(tmp_path)}) == rebuilt(*two_turns())


@pytest.mark.parametrize("content", [b'{"session_id": "s", "uu', b"\xff\xfe", b"", b"\0" * 64, b"[" * 100_000])
def test_a_damaged_file_may_have_been_a_record_and_withholds_its_session(tmp_path: Path, content: bytes) -> None:
    for one in two_turns():
        write(tmp_path, one)
        write(tmp_path, one | {"session_id": "child", "parent_session_id": "s"})
    (folder(tmp_path, "child") / "torn.json").write_bytes(content)
    found = answer({"log_dir": str(tmp_path)})
    assert [(one.session_id, one.reason_code) for one in found.trajectories] == [("s", None), ("child", "records_lost")]
    assert [one.record_uuids for one in found.trajectories] == [["u0", "u1"]] * 2
    assert (found.outcome, found.withheld) == ("clean", False)


def test_a_damaged_file_of_nobody_withholds_the_rollout(tmp_path: Path) -> None:
    for one in two_turns():
        write(tmp_path, one)
    (folder(tmp_path, "other") / "torn.json").write_bytes(b"{")
    assert answer({"log_dir": str(tmp_path)}).reason_code == "records_lost"


def test_the_incomplete_mark_withholds_its_session(tmp_path: Path) -> None:
    for one in two_turns():
        write(tmp_path, one)
    (folder(tmp_path, "s") / "incomplete").touch()
    found = answer({"log_dir": str(tmp_path)})
    assert (found.withheld, found.reason_code) == (True, "records_lost")


def test_a_mark_of_a_session_of_which_nothing_is_left_withholds_the_rollout(tmp_path: Path) -> None:
    for one in two_turns():
        write(tmp_path, one)
    (folder(tmp_path, "other") / "incomplete").touch()
    found = answer({"log_dir": str(tmp_path)})
    assert (found.withheld, found.reason_code) == (True, "records_lost")
    assert found.trajectories[0].outcome == "clean"


def test_an_empty_or_missing_directory_is_a_typed_error(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "none"):
        found = answer({"log_dir": str(place)})
        assert (found.outcome, found.reason_code) == ("failed", "no_records")
        assert found.error is not None


@contextmanager
def proxy(pages: dict[str, object]) -> Iterator[str]:
    """A server on loopback that answers the given paths with JSON and all others with 404."""

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path in pages
            body = json.dumps(pages.get(self.path, {"detail": "none"})).encode()
            self.send_response(200 if found else 404)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_running_proxy_gives_its_sessions_whatever_their_ids_are() -> None:
    name = "a/../ü?#"
    turns = [one | {"session_id": name} for one in two_turns()]
    row = {"session_id": name, "parent_session_id": None, "incomplete": True}
    pages: dict[str, object] = {
        "/v1/sessions": {"schema_version": 1, "sessions": [row]},
        f"/v1/sessions/{quote(name, safe='')}/completions": envelope(*turns, session=name),
    }
    with proxy(pages) as url:
        found = answer({"url": url})
    assert (found.trajectories[0].record_uuids, found.reason_code) == (["u0", "u1"], "records_lost")


def test_a_session_that_cannot_be_fetched_withholds_the_rest() -> None:
    pages: dict[str, object] = {
        "/v1/sessions": {"sessions": [{"session_id": "s"}, {"session_id": "gone"}]},
        "/v1/sessions/s/completions": envelope(*two_turns()),
    }
    with proxy(pages) as url:
        found = answer({"url": url})
    assert (found.withheld, found.reason_code) == (True, "records_lost")
    assert found.trajectories[0].record_uuids == ["u0", "u1"]


def odd(url: str) -> RebuildAnswer:
    return answer({"url": url})


def test_an_empty_directory_name_is_not_the_working_directory() -> None:
    found = answer({"log_dir": ""})
    assert found.error is not None
    assert found.error.rule == "source"


def test_a_proxy_that_is_gone_or_answers_nonsense_is_a_typed_error() -> None:
    with proxy({"/v1/sessions": [1]}) as url:
        nonsense = answer({"url": url})
    gone = answer({"url": url})
    for found in (nonsense, gone, *map(odd, ("nowhere", "http://[::1", "file:///", "", "http://\ud800"))):
        assert found.error is not None
        assert found.error.rule == "source"


def test_a_mark_beside_a_record_file_counts_as_one_in_its_envelope(tmp_path: Path) -> None:
    for one in two_turns():
        write(tmp_path, one)
    (folder(tmp_path, "s") / "u1.undelivered").touch()
    assert answer({"log_dir": str(tmp_path)}) == rebuilt(*two_turns(), undelivered=["u1"])


def test_a_log_directory_that_is_not_there_is_told(tmp_path: Path) -> None:
    found = answer({"log_dir": str(tmp_path / "traces")})
    assert found.error is not None
    assert (found.error.rule, "traces' is no directory" in found.error.message) == ("source", True)


def test_the_parent_that_a_foreign_record_names_is_not_the_sessions() -> None:
    foreign = two_turns()[0] | {"uuid": "f", "session_id": "other", "parent_session_id": "elsewhere"}
    found = rebuilt(foreign, *two_turns())
    assert [one.parent for one in found.trajectories] == [None]


def test_a_blank_parent_is_none() -> None:
    turns = [one | {"parent_session_id": parent} for one, parent in zip(two_turns(), (" ", "p"), strict=True)]
    assert [one.parent for one in rebuilt(*turns).trajectories] == ["p"]
