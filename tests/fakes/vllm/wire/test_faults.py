"""Every fault, seen as raw bytes, buffered and streamed."""

import gzip
import json
import time
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from fakes.vllm import faults
from fakes.vllm.fault_names import FAULT_NAMES
from tests.fakes.vllm.wire.conftest import Play, Script
from tests.fakes.vllm.wire.raw import Raw, both_ways, raw_call, request_bytes, until_closed

TEXT = "{tag} It is done."


Check = Callable[[Raw], bool]

CHECKS: dict[str, tuple[Check, Check]] = {
    "http_error": (lambda b: b.status == 500 and b.json()["error"]["code"] == 500, lambda s: s.status == 500),
    "cut_stream": (
        lambda b: b.status == 200 and not b.body.endswith(b"}"),
        lambda s: len(s.chunks()) == 2 and b"[DONE]" not in s.body,
    ),
    "cut_clean": (
        lambda b: not b.body.endswith(b"}") and f"content-length: {len(b.body)}".encode() in b.head,
        lambda s: len(s.chunks()) == 2 and b"[DONE]" not in s.body,
    ),
    "error_event": (
        lambda b: b.status == 500,
        lambda s: s.events()[-2].startswith('data: {"error": {"message": "EngineCore') and len(s.events()) == 4,
    ),
    "close_before_headers": (lambda b: b.head == b"", lambda s: s.head == b""),
    "bad_json": (lambda b: _is_no_json(b.body), lambda s: any(_is_no_json(e[6:].encode()) for e in s.events()[:-1])),
    "not_json": (lambda b: b.body.startswith(b"<html>"), lambda s: s.body.startswith(b"<html>")),
    "list_body": (lambda b: isinstance(b.json(), list), lambda s: isinstance(s.chunks()[0], list)),
    "no_token_ids": (
        lambda b: "token_ids" not in b.choices()[0],
        lambda s: not any("token_ids" in c for c in s.choices()),
    ),
    "null_token_ids": (
        lambda b: b.choices()[0]["token_ids"] is None,
        lambda s: not s.ids() and "token_ids" in s.choices()[1],
    ),
    "no_logprobs": (
        lambda b: b.choices()[0]["logprobs"] is None,
        lambda s: not s.entries() and len(s.ids()) > 3,
    ),
    "short_logprobs": (lambda b: len(b.entries()) == len(b.ids()) - 1, lambda s: len(s.entries()) == len(s.ids()) - 1),
    "completion_logprobs": (
        lambda b: len(b.choices()[0]["logprobs"]["token_logprobs"]) == len(b.ids()) > 3,
        lambda s: s.choices()[1]["logprobs"]["token_logprobs"][0] < 0,
    ),
    "lost_id": (
        lambda b: len(b.entries()) - 1 == len(b.ids()) == b.usage()["completion_tokens"],
        lambda s: len(s.entries()) - 1 == len(s.ids()) == s.usage()["completion_tokens"],
    ),
    "null_logprob_entry": (
        lambda b: b.entries()[2]["logprob"] is None,
        lambda s: s.entries()[2]["logprob"] is None,
    ),
    "nan_logprob": (lambda b: b'"logprob":NaN' in b.body, lambda s: b'"logprob":NaN' in s.body),
    "sentinel_logprob": (
        lambda b: b.entries()[2]["logprob"] == -9999.0,
        lambda s: s.entries()[2]["logprob"] == -9999.0,
    ),
    "positive_logprob": (lambda b: b.entries()[2]["logprob"] == 0.5, lambda s: s.entries()[2]["logprob"] == 0.5),
    "string_ids": (
        lambda b: all(isinstance(i, str) for i in b.ids()),
        lambda s: all(isinstance(i, str) for i in s.ids()) and len(s.ids()) > 3,
    ),
    "bool_ids": (lambda b: b.ids()[2] is True, lambda s: s.ids()[2] is True),
    "negative_id": (lambda b: b.ids()[2] == -1, lambda s: s.ids()[2] == -1),
    "huge_id": (lambda b: b.ids()[2] == 2**40, lambda s: s.ids()[2] == 2**40),
    "empty_ids": (
        lambda b: b.choices()[0]["token_ids"] == [],
        lambda s: all(c["token_ids"] == [] for c in s.choices()[1:]),
    ),
    "no_prompt_ids": (
        lambda b: "prompt_token_ids" not in b.json(),
        lambda s: not any("prompt_token_ids" in c for c in s.chunks()),
    ),
    "empty_prompt_ids": (
        lambda b: b.json()["prompt_token_ids"] == [],
        lambda s: s.chunks()[0]["prompt_token_ids"] == [],
    ),
    "prompt_ids_in_choice": (
        lambda b: "prompt_token_ids" not in b.json() and len(b.choices()[0]["prompt_token_ids"]) > 3,
        lambda s: "prompt_token_ids" not in s.chunks()[0] and len(s.choices()[0]["prompt_token_ids"]) > 3,
    ),
    "more_ids_than_usage": (
        lambda b: b.usage()["completion_tokens"] == len(b.ids()) - 1,
        lambda s: s.usage()["completion_tokens"] == len(s.ids()) - 1,
    ),
    "fewer_ids_than_usage": (
        lambda b: b.usage()["completion_tokens"] == len(b.ids()) + 1,
        lambda s: s.usage()["completion_tokens"] == len(s.ids()) + 1,
    ),
    "entry_ids_disagree": (lambda b: _entry_disagrees(b), lambda s: _entry_disagrees(s)),
    "two_choices": (
        lambda b: [c["index"] for c in b.choices()] == [0, 1],
        lambda s: {c["index"] for c in s.choices()} == {0, 1},
    ),
    "no_choices": (lambda b: b.choices() == [], lambda s: s.choices() == []),
    "no_request_id": (lambda b: "id" not in b.json(), lambda s: not any("id" in c for c in s.chunks())),
    "no_model": (lambda b: "model" not in b.json(), lambda s: not any("model" in c for c in s.chunks())),
    "null_finish": (
        lambda b: b.choices()[0]["finish_reason"] is None,
        lambda s: all(c["finish_reason"] is None for c in s.choices()),
    ),
    "abort": (
        lambda b: b.choices()[0]["finish_reason"] == "abort" and len(b.ids()) == len(b.entries()) == 2,
        lambda s: (
            s.choices()[-1]
            == {
                "index": 0,
                "delta": {},
                "logprobs": {"content": []},
                "finish_reason": "abort",
                "stop_reason": None,
                "token_ids": [],
            }
        ),
    ),
    "usage_missing": (lambda b: "usage" not in b.json(), lambda s: s.usage() is None),
    "usage_malformed": (
        lambda b: b.usage()["completion_tokens"] == "seven",
        lambda s: s.usage()["completion_tokens"] == "seven",
    ),
    "list_content": (
        lambda b: b.choices()[0]["message"]["content"][0]["type"] == "text",
        lambda s: any(isinstance(c["delta"].get("content"), list) for c in s.choices()),
    ),
    "null_content": (
        lambda b: b.choices()[0]["message"]["content"] is None,
        lambda s: all(c["delta"].get("content") is None for c in s.choices()[1:]),
    ),
    "odd_created": (
        lambda b: isinstance(b.json()["created"], float),
        lambda s: isinstance(s.chunks()[0]["created"], float),
    ),
    "lone_surrogate": (lambda b: b"\\ud83d" in b.body, lambda s: b"\\ud83d" in s.body),
    "gzip": (
        lambda b: b"content-encoding: gzip" in b.head and b'"choices"' in gzip.decompress(b.body),
        lambda s: zlib.decompress(s.body, wbits=31).endswith(b"data: [DONE]\n\n"),
    ),
}

# Each has a test of its own below.
LOOKED_AT_ALONE = {
    "odd_value",
    "dropped_hidden_chunks",
    "history_logprobs",
    "keepalive_comments",
    "split_bytes",
    "joined_events",
    "slow_headers",
    "close_after",
    "answered_twice",
    "stall",
}

# Which token the fault falls on, for those that fall on one.
AT_TOKEN = {
    name: 2
    for name in CHECKS
    if name.endswith(("logprob", "entry", "_id", "disagree")) or name in ("bool_ids", "abort")
}

STATES = {
    **dict.fromkeys(("cut_stream", "cut_clean", "close_before_headers", "bad_json", "not_json", "list_body"), "cut"),
    "http_error": "failed",
}


def _is_no_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return True
    return False


def _entry_disagrees(raw: Raw) -> bool:
    named = [int(entry["token"].removeprefix("token_id:")) for entry in raw.entries()]
    differing = [at for at, (a, b) in enumerate(zip(named, raw.ids(), strict=True)) if a != b]
    return differing == [2]


def test_the_playbook_knows_exactly_the_faults_that_are_carried_out() -> None:
    assert set(FAULT_NAMES) == faults.NAMES


def test_every_fault_is_looked_at() -> None:
    assert {*CHECKS, *LOOKED_AT_ALONE} == faults.NAMES


def _asked(play: Play, name: str | None, stream: bool) -> tuple[Raw, Script]:
    """A turn with that fault, or a healthy one, answered."""
    fault = {"name": name, "at_token": AT_TOKEN.get(name)} if name is not None else None
    script = play({"text": TEXT, "fault": fault} if fault else {"text": TEXT})
    usage: dict[str, Any] = {"stream_options": {"include_usage": True}} if stream else {}
    return raw_call(script, stream=stream, return_tokens_as_token_ids=True, **usage), script


@both_ways
@pytest.mark.parametrize("name", sorted(CHECKS))
def test_a_fault_is_seen_on_the_wire_and_named_in_the_ledger(play: Play, name: str, stream: bool) -> None:
    raw, script = _asked(play, name, stream)
    assert CHECKS[name][stream](raw), raw
    row = script.row()
    expected = STATES.get(name, "finished")
    if name == "error_event":
        expected = "cut" if stream else "failed"
    assert (row["fault"], row["state"]) == (name, expected)


@both_ways
@pytest.mark.parametrize("name", sorted(CHECKS))
def test_no_check_of_a_fault_holds_for_a_healthy_answer(play: Play, name: str, stream: bool) -> None:
    raw, _ = _asked(play, None, stream)
    try:
        seen = CHECKS[name][stream](raw)
    except (KeyError, IndexError, ValueError, TypeError, zlib.error, gzip.BadGzipFile):
        seen = False
    assert not seen


@both_ways
@pytest.mark.parametrize(
    ("at", "value"), [("/id", ""), ("/choices/0/token_ids/0", 1.5), ("/choices/0/finish_reason", "error")]
)
def test_an_odd_value_takes_the_place_of_what_was_there(play: Play, at: str, value: object, stream: bool) -> None:
    raw = raw_call(
        play({"text": TEXT, "fault": {"name": "odd_value", "options": {"at": at, "value": value}}}), stream=stream
    )
    seen = {
        "/id": raw.chunks()[0]["id"] if stream else raw.json()["id"],
        "/choices/0/token_ids/0": raw.ids()[0],
        "/choices/0/finish_reason": raw.choices()[-1]["finish_reason"],
    }
    assert [key for key, found in seen.items() if found == value] == [at]


@pytest.mark.parametrize("options", [{}, {"at": "/id"}, {"at": "id", "value": 1}, {"at": 5, "value": 1}])
def test_an_odd_value_has_to_say_where_it_goes(play: Play, options: dict[str, object]) -> None:
    with pytest.raises(Exception, match="odd_value needs options"):
        play({"text": TEXT, "fault": {"name": "odd_value", "options": options}})


def test_an_odd_value_without_a_place_is_no_healthy_answer(play: Play) -> None:
    raw = raw_call(play({"text": TEXT, "fault": {"name": "odd_value", "options": {"at": "/nowhere", "value": 1}}}))
    assert raw.status == 500


@pytest.mark.parametrize("word", ["Infinity", "-Infinity"])
def test_an_infinite_log_prob_is_written_as_python_writes_it(play: Play, word: str) -> None:
    raw = raw_call(play({"text": TEXT, "fault": {"name": "nan_logprob", "raw": word}}))
    assert f'"logprob":{word},'.encode() in raw.body


def test_keepalive_comments_stand_before_every_event(play: Play) -> None:
    raw, _ = _asked(play, "keepalive_comments", True)
    assert raw.body.count(b": keep-alive\n\ndata: ") == len(raw.chunks())


def test_split_bytes_writes_one_byte_at_a_time(play: Play) -> None:
    raw, _ = _asked(play, "split_bytes", True)
    assert set(raw.sizes) == {1}
    assert raw.events()[-1] == "data: [DONE]"
    buffered, _ = _asked(play, "split_bytes", False)
    assert len(buffered.ids()) > 3


def test_joined_events_come_in_one_write(play: Play) -> None:
    raw, _ = _asked(play, "joined_events", True)
    assert len(raw.sizes) == 1
    assert len(raw.events()) > 5


@both_ways
def test_close_after_closes_a_connection_that_was_to_be_kept(play: Play, stream: bool) -> None:
    script = play({"text": TEXT, "fault": {"name": "close_after"}})
    raw = raw_call(script, keep_alive=True, stream=stream)
    assert len(raw.ids()) > 3
    assert b"connection: close" not in raw.head.lower()


@both_ways
def test_answered_twice_says_the_same_again_behind_a_whole_answer(play: Play, stream: bool) -> None:
    script = play({"text": TEXT, "fault": {"name": "answered_twice"}})
    with script.served.connect() as sock:
        sock.settimeout(10)
        sock.sendall(request_bytes(script, keep_alive=True, stream=stream))
        received = b""
        while received.count(b"HTTP/1.1 200 OK") < 2 or not received.endswith((b"}", b"[DONE]\n\n")):
            received += sock.recv(65536)
    first, _, second = received.rpartition(b"HTTP/1.1 200 OK")
    words = b'"token_ids"'
    assert first.count(words) == second.count(words) > 0


@both_ways
def test_slow_headers_come_late_and_then_all_is_well(play: Play, stream: bool) -> None:
    script = play({"text": TEXT, "fault": {"name": "slow_headers", "raw": "0.15"}})
    began = time.monotonic()
    raw = raw_call(script, stream=stream)
    assert time.monotonic() - began >= 0.15
    assert len(raw.ids()) > 3


def test_history_logprobs_come_again_in_an_empty_last_chunk(play: Play) -> None:
    raw, _ = _asked(play, "history_logprobs", True)
    assert raw.choices()[-1]["token_ids"] == []
    assert len(raw.entries()) == 2 * len(raw.ids())


def test_dropped_hidden_chunks_lose_the_ids_of_tool_markup(play: Play) -> None:
    call = {"name": "execute_bash", "arguments": {"command": "ls  # {tag}"}}
    tools = [{"type": "function", "function": {"name": "execute_bash"}}]
    script = play({"calls": [call], "fault": {"name": "dropped_hidden_chunks"}})
    raw = raw_call(script, stream=True, tools=tools, stream_options={"include_usage": True})
    row = script.row()
    assert 3 < len(raw.ids()) < len(row["generation_token_ids"]) == raw.usage()["completion_tokens"]


def test_a_stalled_stream_goes_on_once_its_gate_opens(play: Play) -> None:
    script = play({"text": TEXT, "fault": {"name": "stall", "raw": "later", "at_token": 2}})
    with script.served.connect() as sock:
        sock.sendall(request_bytes(script, stream=True))
        script.wait("held")
        script.served.call("POST", f"/_fake/gates/{script.tenant}/later/open")
        received = until_closed(sock)
    assert received.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
    assert script.row()["state"] == "finished"


def test_a_lost_id_is_lost_once_wherever_nemo_rl_shows_it(play: Play) -> None:
    script = play({"text": TEXT, "fault": {"name": "lost_id"}}, tenant={"profile": "nemo-rl"})
    choice = script.ask(temperature=1.0, top_p=1.0).json()["choices"][0]
    left = len(choice["logprobs"]["content"]) - 1
    assert (len(choice["token_ids"]), len(choice["message"]["generation_token_ids"])) == (left, left)


def test_a_fault_strikes_only_on_its_attempts(play: Play) -> None:
    script = play({"text": TEXT, "fault": {"name": "http_error", "status": 503, "on_attempts": [1]}})
    assert [script.ask().status for _ in range(3)] == [200, 503, 200]
    states = [row["state"] for row in script.served.rows(f"run={script.run}")]
    assert states == ["finished", "failed", "finished"]


def test_an_http_error_carries_its_headers_and_raw_body(play: Play) -> None:
    fault = {"name": "http_error", "status": 429, "headers": {"Retry-After": "7"}, "raw": '{"detail": "later"}'}
    reply = play({"text": TEXT, "fault": fault}).ask(stream=True)
    assert (reply.status, reply.headers["retry-after"], reply.json()) == (429, "7", {"detail": "later"})


def test_a_huge_id_is_what_the_ledger_says_the_engine_reported(play: Play) -> None:
    script = play({"text": TEXT, "fault": {"name": "huge_id", "at_token": 0, "raw": str(2**70)}})
    reply = script.ask()
    assert f'"token_ids":[{2**70},' in reply.text
    assert script.row()["generation_token_ids"][0] == 2**70
