"""An engine's stream is taken apart the same way however it is cut into reads."""

import pytest

from conformance.reference.capture.events import EventReader

pytestmark = pytest.mark.unit

STREAM = (
    ': hello\n\ndata: {"a": "é🙂"}\n\n:\ndata:bare\r\n\r\nevent: x\nid: 1\n\n'
    "data: one\r\ndata: two\n\ndata: cr\r\rdata: [DONE]\n\n"
).encode()
EVENTS = ['{"a": "é🙂"}', "bare", "one\ntwo", "cr", "[DONE]"]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 17, len(STREAM)])
def test_every_cut_gives_the_same_events(size: int) -> None:
    reader = EventReader()
    cuts = [STREAM[at : at + size] for at in range(0, len(STREAM), size)]
    assert [event.decode() for cut in cuts for event in reader.feed(cut)] == EVENTS


def test_an_event_without_its_blank_line_is_not_told() -> None:
    assert list(EventReader().feed(b"data: [DONE]\n")) == []
