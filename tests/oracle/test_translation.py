"""The judge of translated conversations reads chat messages, and says what is odd instead of failing on it."""

from typing import Any

import pytest

from conformance.oracle import responses_errors, translation

pytestmark = pytest.mark.unit

CALL = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
MESSAGES: list[dict[str, Any]] = [
    {"role": "developer", "content": [{"type": "text", "text": "Never write."}]},
    {"role": "user", "content": "Find it."},
    {"role": "assistant", "content": "I look.", "reasoning": "Hm.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c", "content": ""},
    {"role": "assistant", "content": ""},
]


def test_what_is_said_called_and_answered_is_told_in_order() -> None:
    said = translation.said(MESSAGES)
    assert said[1:] == [
        ["message", "user", "Find it."],
        ["message", "assistant", "I look."],
        ["call", "c", "look", "{}"],
        ["result", "c", ""],
    ]
    assert translation.calls(said) == [["c", "look", "{}"]]
    assert translation.results(said) == [["c", ""]]


def test_an_empty_assistant_message_is_a_turn() -> None:
    assert [len(turn) for turn in translation.assistant_turns(MESSAGES)] == [2, 0]


def test_roles_and_reasoning_are_found_by_what_is_said() -> None:
    assert translation.roles_saying(MESSAGES, "Never write.") == ["developer"]
    assert translation.reasoning_before(MESSAGES, "I look.") == "Hm."
    assert translation.reasoning_before(MESSAGES, "c") == "Hm."
    assert translation.reasoning_before(MESSAGES, "nowhere") is None


@pytest.mark.parametrize(
    "messages", [None, 7, [7], [{}], [{"role": "tool"}], [{"role": "assistant", "tool_calls": [7]}], [{"content": 7}]]
)
def test_no_message_of_the_chat_form_is_read_as_if_it_were_one(messages: Any) -> None:
    assert all(each[0] == "no chat message" for each in translation.said(messages))
    assert translation.roles_saying(messages, "x") == []


COMPLETED = 'event: response.completed\ndata: {"type": "response.completed"}\n\n'
FAILED = 'event: response.failed\ndata: {"type": "response.failed", "sequence_number": 0, "response": %s}\n\n'


@pytest.mark.parametrize(
    ("status", "streamed", "body", "whole", "ok"),
    [
        (200, True, COMPLETED, True, False),
        (200, True, "", False, True),
        (200, False, '{"status": "incomplete"}', True, False),
        (200, False, '{"status": "completed"}', True, False),
        (200, False, '{"status": "completed"}', False, True),
        (200, False, '{"status": "failed"}', True, True),
        (502, False, '{"status": "completed"}', True, True),
        (None, False, "", False, True),
    ],
)
def test_a_fragment_is_never_an_answer(status: int | None, streamed: bool, body: str, whole: bool, ok: bool) -> None:
    assert responses_errors.never_complete(status, streamed, body, "here", whole=whole).ok is ok


def test_a_failure_in_a_stream_has_a_message() -> None:
    assert responses_errors.failed_in_band(200, FAILED % '{"error": {"message": "busy"}}', "here")
    assert not responses_errors.failed_in_band(200, FAILED % '{"error": {"code": "server_error"}}', "here")
    assert not responses_errors.failed_in_band(200, COMPLETED, "here")
    assert responses_errors.failed_in_band(503, "", "here")
    assert not responses_errors.failed_in_band(None, "", "here")


@pytest.mark.parametrize(
    ("body", "ok"),
    [
        ('{"error": {"message": "m", "type": "t"}}', True),
        ('{"error": {"message": "m", "type": " "}}', False),
        ('{"error": {"message": "m"}}', False),
        ('{"error": {"type": "t"}}', False),
        ('{"message": "m", "type": "t"}', False),
    ],
)
def test_an_error_has_a_message_and_a_type(body: str, ok: bool) -> None:
    assert responses_errors.in_shape("application/json", body, "here").ok is ok
