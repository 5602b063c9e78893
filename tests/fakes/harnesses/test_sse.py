"""The event reader against the examples and rules of the HTML standard."""

import pytest

from fakes.harnesses.sse import Event, EventReader, events_in


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"], ids=["lf", "cr", "crlf"])
def test_every_line_end_of_the_standard_is_a_line_end(end: bytes) -> None:
    body = end.join([b"event: add", b"data: one", b"data: two", b"", b"data:three", b"", b""])
    assert events_in(body) == [Event("add", "one\ntwo"), Event("message", "three")]


def test_a_stream_fed_byte_by_byte_gives_the_same_events() -> None:
    body = "\ufeffid: 7\r\ndata: é⟦1⟧\r\n\r\n: ping\r\n\r\ndata: [DONE]\n\n".encode()
    reader = EventReader()
    got = [event for at in range(len(body)) for event in reader.feed(body[at : at + 1])]
    assert got == events_in(body) == [Event("message", "é⟦1⟧", "7"), Event("message", "[DONE]", "7")]
    assert reader.comments == 1


def test_an_event_without_its_blank_line_is_not_an_event() -> None:
    assert events_in(b"data: one\n\ndata: two\n") == [Event("message", "one")]


def test_only_one_leading_space_is_taken_and_fields_without_colon_count() -> None:
    assert events_in(b"data:  two\ndata\n\n") == [Event("message", " two\n")]


def test_an_event_without_data_is_forgotten_with_its_name() -> None:
    assert events_in(b"event: lost\n\ndata: kept\n\n") == [Event("message", "kept")]
