"""What the oracle says of failures in the Messages dialect, on good ones and on bad ones made by hand."""

import json

import pytest

from conformance.oracle import messages_errors as judge

JSON_TYPE = "application/json"
WHERE = "a test"
LONG = "prompt is too long: 40961 tokens > 40960 maximum"
NO_ROOM = "input length and `max_tokens` exceed context limit: 9000 + 32000 > 40960, decrease input length"


def error(message: str, kind: str = "invalid_request_error") -> str:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}})


def event(kind: str, **keys: object) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **keys})}\n\n"


START = event("message_start", message={"id": "m", "type": "message", "role": "assistant", "content": []})
FAILURE = event("error", error={"type": "api_error", "message": "busy"})
STOP = event("message_delta", delta={"stop_reason": "end_turn"}) + event("message_stop")


def test_the_dialects_error_is_in_shape() -> None:
    assert judge.in_shape(JSON_TYPE, error("no such model"), WHERE)


@pytest.mark.parametrize(
    "body",
    ["", "busy", '{"error": {"type": "x", "message": "busy"}}', '{"type": "error", "error": "busy"}', error(" ")],
    ids=["nothing", "text", "in chat form", "a bare text", "a blank message"],
)
def test_any_other_error_is_not(body: str) -> None:
    assert not judge.in_shape(JSON_TYPE, body, WHERE)


def test_an_error_that_is_not_announced_as_json_is_not_in_shape() -> None:
    assert not judge.in_shape("text/html", error("busy"), WHERE)


@pytest.mark.parametrize(
    ("status", "message", "ok"),
    [(400, LONG, True), (413, LONG, False), (400, f"Sorry: {LONG}", False), (400, "maximum context length", False)],
)
def test_an_overlong_prompt_is_known_by_status_and_first_words(status: int, message: str, *, ok: bool) -> None:
    assert bool(judge.told_as_too_long(status, error(message), WHERE)) is ok


@pytest.mark.parametrize(
    ("status", "message", "ok"),
    [
        (400, NO_ROOM, True),
        (500, NO_ROOM, False),
        (400, NO_ROOM.replace("9000", "50000"), False),
        (400, f"{LONG}; {NO_ROOM}", False),
        (400, "max_tokens is too large", False),
    ],
)
def test_a_refused_limit_is_known_by_words_and_numbers(status: int, message: str, *, ok: bool) -> None:
    assert bool(judge.told_as_no_room(status, error(message), WHERE)) is ok


@pytest.mark.parametrize(
    ("status", "streamed", "body", "whole", "ok"),
    [
        (502, False, error("gone"), True, True),
        (None, False, "", False, True),
        (200, False, '{"type": "message", "stop_reason": "end_turn"}', False, True),
        (200, False, '{"type": "message", "stop_reason": "end_turn"}', True, False),
        (200, True, START, True, True),
        (200, True, START + FAILURE, True, True),
        (200, True, START + STOP, False, False),
    ],
)
def test_only_an_answer_without_an_end_counts_as_cut(
    status: int | None, body: str, *, streamed: bool, whole: bool, ok: bool
) -> None:
    assert bool(judge.never_complete(status, streamed, body, WHERE, whole=whole)) is ok


@pytest.mark.parametrize(
    ("status", "body", "ok"),
    [
        (503, error("busy"), True),
        (None, "", False),
        (200, event("ping") + FAILURE, True),
        (200, event("ping"), False),
        (200, START + FAILURE + STOP, False),
    ],
)
def test_a_failure_in_band_is_the_last_event(status: int | None, body: str, *, ok: bool) -> None:
    assert bool(judge.failed_in_band(status, body, WHERE)) is ok
