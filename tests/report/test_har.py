"""HTTP Archives of evidence, held against what the format demands (HAR 1.2), and without credentials."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from conformance.report import evidence, har
from conformance.report.plain import JSON
from conformance.report.redact import hidden, redacted

pytestmark = pytest.mark.unit

NAMED = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["name", "value"],
        "properties": {"name": {"type": "string"}, "value": {"type": "string"}},
    },
}
MESSAGE = {
    "httpVersion": {"type": "string"},
    "cookies": NAMED,
    "headers": NAMED,
    "headersSize": {"type": "integer"},
    "bodySize": {"type": "integer"},
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["log"],
    "properties": {
        "log": {
            "type": "object",
            "required": ["version", "creator", "entries"],
            "properties": {
                "version": {"const": "1.2"},
                "creator": {"type": "object", "required": ["name", "version"]},
                "entries": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["startedDateTime", "time", "request", "response", "cache", "timings"],
                        "properties": {
                            "startedDateTime": {"pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d$"},
                            "time": {"type": "number", "minimum": 0},
                            "request": {
                                "required": ["method", "url", *MESSAGE, "queryString"],
                                "properties": {
                                    **MESSAGE,
                                    "url": {"pattern": "^http://[a-z]+/[!-~]*$"},
                                    "queryString": NAMED,
                                    "postData": {
                                        "required": ["mimeType", "text"],
                                        "properties": {"mimeType": {"type": "string"}, "text": {"type": "string"}},
                                    },
                                },
                            },
                            "response": {
                                "required": ["status", "statusText", *MESSAGE, "content", "redirectURL"],
                                "properties": {
                                    **MESSAGE,
                                    "status": {"type": "integer"},
                                    "statusText": {"type": "string"},
                                    "redirectURL": {"type": "string"},
                                    "content": {
                                        "required": ["size", "mimeType"],
                                        "properties": {"size": {"type": "integer"}, "text": {"type": "string"}},
                                    },
                                },
                            },
                            "timings": {"required": ["send", "wait", "receive"]},
                        },
                    },
                },
            },
        }
    },
}
"""What the specification calls required, in our own words; the key ``_…`` is its room for extensions."""

KEY = "sk-their-own-secret"


def request(path: str = "/v1/chat/completions", **more: Any) -> dict[str, Any]:
    headers = [["Content-Type", "application/json"], ["authorization", f"Bearer {KEY}"], ["Cookie", f"a={KEY}"]]
    return {"method": "POST", "path": path, "headers": headers, "body_text": '{"a": "é"}', **more}


def parts(**more: Any) -> dict[str, Any]:
    answer = {"status": 200, "headers": [["content-type", "text/event-stream"]], "body_text": "data: {}\n\n"}
    cut = {"n": 1, "request": request("/v1/a b?x=1&y="), "response": None, "ended": "refused"}
    exchanges = [{"n": 0, "request": request(), "response": answer, "ended": "complete"}, cut]
    row = {"seq": 4, "request": request("/t/main/v1/chat/completions"), "answer": answer, "state": "finished"}
    return {"hops": [{"harness": "plain", "session": "s", "exchanges": exchanges}], "ledger": [row], **more}


def drawn(folder: Path, given: dict[str, Any]) -> dict[str, Any]:
    path = folder / evidence.write(folder, "a.py::test_b", given)
    read: dict[str, Any] = json.loads(path.with_suffix(".har").read_text("utf-8"))
    assert list(Draft202012Validator(SCHEMA).iter_errors(read)) == []
    return read


def test_both_hops_stand_in_one_archive_in_order(tmp_path: Path) -> None:
    entries = drawn(tmp_path, parts())["log"]["entries"]
    assert [entry["comment"] for entry in entries] == ["client → system"] * 2 + ["system → engine"]
    assert [entry["request"]["url"] for entry in entries] == [
        "http://system/v1/chat/completions",
        "http://system/v1/a%20b?x=1&y=",
        "http://engine/t/main/v1/chat/completions",
    ]
    assert entries[1]["request"]["queryString"] == [{"name": "x", "value": "1"}, {"name": "y", "value": ""}]
    assert [entry["response"]["status"] for entry in entries] == [200, 0, 200]
    assert entries[0]["response"]["content"] == {"size": 10, "mimeType": "text/event-stream", "text": "data: {}\n\n"}
    assert entries[0]["request"]["bodySize"] == 11
    assert entries[1]["_ended"] == "refused"


def test_a_body_that_is_no_text_is_there_in_base64(tmp_path: Path) -> None:
    raw = {"status": 200, "headers": [], "body_text": "", "body_bytes_b64": "/w=="}
    exchange = {"n": 0, "request": request(body_text="", body_bytes_b64="/w=="), "response": raw, "ended": "complete"}
    [entry] = drawn(tmp_path, {"hops": [{"exchanges": [exchange]}], "ledger": "not to be had: died"})["log"]["entries"]
    assert entry["response"]["content"] == {"size": 1, "mimeType": "", "text": "/w==", "encoding": "base64"}
    assert (entry["request"]["postData"]["text"], entry["request"]["postData"]["_encoding"]) == ("/w==", "base64")


def test_no_credential_is_left_in_either_file_and_equal_ones_can_be_told(tmp_path: Path) -> None:
    path = tmp_path / evidence.write(tmp_path, "x", parts())
    for file in (path, path.with_suffix(".har")):
        text = file.read_text("utf-8")
        assert KEY not in text
        assert text.count(hidden(f"Bearer {KEY}")) == 3


@pytest.mark.parametrize("name", ["Authorization", "x-api-key", "API-KEY", "Set-Cookie", "Proxy-Authorization"])
def test_each_header_that_lets_somebody_in_is_hidden_in_pairs_and_objects(name: str) -> None:
    assert KEY not in json.dumps(redacted({"a": [{"headers": [[name, KEY]]}], "headers": {name: KEY}}))


def test_the_mark_of_a_credential_keeps_its_scheme_and_differs_between_credentials() -> None:
    assert hidden(f"Bearer {KEY}").startswith("Bearer (redacted: 19 characters, ")
    assert hidden(KEY) != hidden(f"{KEY}2")


def test_other_headers_stay_as_they_are() -> None:
    told: JSON = {"headers": [["proxy_x_session_id", "s"], ["odd"]], "body": "authorization: x"}
    assert redacted(told) == told


def test_a_large_archive_stays_small_and_says_what_is_left_out() -> None:
    [client] = parts()["hops"]
    exchange = {**client["exchanges"][0], "request": request(body_text="x" * 100_000)}
    text = har.archive("s", {"hops": [{"exchanges": [exchange] * 12_000}]}, "0")
    assert text is not None
    assert len(text) <= har.LARGEST
    log = json.loads(text)["log"]
    assert f"{12_000 - len(log['entries'])} of 12000 entries are left out" in log["comment"]
    assert "are left out in the middle" in log["entries"][0]["request"]["postData"]["comment"]


def test_what_has_no_hop_has_no_archive(tmp_path: Path) -> None:
    path = tmp_path / evidence.write(tmp_path, "x", {"rebuilds": [{"question": "{}", "answer": None}]})
    assert not path.with_suffix(".har").exists()
