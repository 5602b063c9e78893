"""The oracle on failed calls."""

import pytest

from conformance.oracle import chat_errors

GOOD = '{"error": {"message": "no", "type": "x", "param": null, "code": 400}}'
JSON = "application/json"
ROLE = 'data: {"choices": [{"index": 0, "delta": {"role": "assistant"}, "finish_reason": null}]}\n\n'
STOP = 'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n'
IN_BAND = f": ping\n\ndata: {GOOD}\n\n"


@pytest.mark.parametrize("status", [None, 200, 204, 302])
def test_only_an_error_status_is_a_failure(status: int | None) -> None:
    assert not chat_errors.is_failure(status, "here")
    assert chat_errors.is_failure(404, "here")


def test_the_dialects_error_has_its_shape() -> None:
    assert chat_errors.in_shape("application/json; charset=utf-8", GOOD, "here")


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        pytest.param("text/html", GOOD, id="another type"),
        pytest.param(None, GOOD, id="no type"),
        pytest.param(JSON, "", id="nothing"),
        pytest.param(JSON, "Internal Server Error", id="a text"),
        pytest.param(JSON, '{"error": "Unauthorized"}', id="a string for an error"),
        pytest.param(JSON, '{"detail": "Not Found"}', id="a detail"),
        pytest.param(JSON, '{"error": {"message": " "}}', id="a blank message"),
        pytest.param(JSON, '{"error": {"code": 400}}', id="no message"),
        pytest.param(JSON, f"[{GOOD}]", id="a list"),
    ],
)
def test_any_other_shape_is_seen(kind: str | None, body: str) -> None:
    judged = chat_errors.in_shape(kind, body, "here")
    assert not judged
    assert judged.seen is None or judged.seen


@pytest.mark.parametrize(
    ("status", "streamed", "body", "whole"),
    [
        pytest.param(None, False, "", False, id="no answer"),
        pytest.param(502, False, GOOD, True, id="an error"),
        pytest.param(200, True, ROLE, False, id="a cut stream"),
        pytest.param(200, True, ROLE, True, id="a stream without an end"),
        pytest.param(200, True, ROLE + IN_BAND, True, id="an error in the stream"),
        pytest.param(200, False, '{"choices": [{}]}', False, id="a body that was not whole"),
        pytest.param(200, False, '{"choices": [{}', True, id="half a body"),
    ],
)
def test_what_no_client_takes_for_an_answer(status: int | None, streamed: bool, body: str, whole: bool) -> None:
    assert chat_errors.never_complete(status, streamed, body, "here", whole=whole)


@pytest.mark.parametrize(
    ("streamed", "body"),
    [(True, ROLE + STOP), (True, ROLE + "data: [DONE]\n\n"), (False, '{"choices": [{"message": {"content": ""}}]}')],
)
def test_what_a_client_takes_for_an_answer(streamed: bool, body: str) -> None:
    assert not chat_errors.never_complete(200, streamed, body, "here", whole=True)


def test_an_error_in_a_stream_is_told_by_an_event() -> None:
    assert chat_errors.failed_in_band(200, IN_BAND, "here")
    assert chat_errors.failed_in_band(503, GOOD, "here")
    assert chat_errors.told_as_error(200, "text/event-stream", IN_BAND, "here")
    for body in ("", ": ping\n\n", ROLE + STOP, 'data: {"error": {}}\n\n', 'data: {"error": "no"}\n\n'):
        assert not chat_errors.failed_in_band(200, body, "here")
        assert not chat_errors.told_as_error(200, "text/event-stream", body, "here")
    assert not chat_errors.failed_in_band(None, "", "here")


def test_an_overflow_is_known_by_its_code_or_the_engines_words() -> None:
    words = "maximum context length is 10 tokens"
    for error in ('{"code": "context_length_exceeded"}', f'{{"message": "engine: {words}.", "code": 400}}'):
        assert chat_errors.is_overflow(400, f'{{"error": {error}}}', words)
        assert not chat_errors.is_overflow(413, f'{{"error": {error}}}', words)
    assert not chat_errors.is_overflow(400, GOOD, words)


def test_an_address_is_not_told_and_a_longer_port_is_another_one() -> None:
    assert chat_errors.silent_on("127.0.0.1:80", "127.0.0.1:8000 refused", "here")
    judged = chat_errors.silent_on("127.0.0.1:80", "cannot connect to http://127.0.0.1:80/v1", "here")
    assert not judged
    assert "127.0.0.1:80/v1" in judged.seen
