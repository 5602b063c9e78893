"""The versioned form of exchanges."""

import json

import jsonschema
import pytest

from fakes.harnesses import exchanges
from fakes.harnesses.exchanges import Exchange, Exchanges


def told(body: bytes) -> Exchanges:
    exchange = Exchange(
        n=0,
        request=exchanges.sent("POST", "/v1/x", [("Host", "h"), ("x-A", "1")], body),
        response=exchanges.received(200, [("Content-Type", "text/plain")], body),
        ended="complete",
        streamed=False,
    )
    return Exchanges(harness="plain", version="1", session=None, conversation="c", exchanges=(exchange,))


@pytest.mark.parametrize(
    "body", [b"", b'{"a": "\\ud800"}', b"\xff\x00", "⟦1⟧".encode()], ids=["empty", "escape", "bytes", "text"]
)
def test_every_body_survives_the_way_through_json(body: bytes) -> None:
    again = Exchanges.model_validate_json(told(body).to_json())
    assert again.exchanges[0].request.body == body
    assert again.exchanges[0].response is not None
    assert again.exchanges[0].response.body == body


def test_bytes_stand_beside_the_text_only_where_it_is_not_utf_8() -> None:
    assert told(b"a").exchanges[0].request.body_bytes_b64 is None
    assert told(b"\xff").exchanges[0].request.body_text == ""


def test_what_is_written_is_valid_under_the_exported_schema() -> None:
    written = json.loads(told(b"a").to_json())
    jsonschema.validate(written, exchanges.schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(written | {"v": 2}, exchanges.schema())


def test_a_header_is_found_in_any_case_and_absent_ones_are_none() -> None:
    request = told(b"").exchanges[0].request
    assert request.header("X-a") == "1"
    assert request.header("x-b") is None
