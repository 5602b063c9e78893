"""The grammar of Messages streams: the public form holds to it, and each way to break it is told apart."""

import json
from functools import cache
from typing import Annotated, Any, get_args

import pytest
from anthropic.types import RawMessageStreamEvent
from pydantic import Field, TypeAdapter

from conformance.oracle import messages_blocks, messages_stream
from conformance.oracle.sse import parse
from tests.oracle.messages.breaks import BROKEN, Rule
from tests.oracle.messages.streams import END, ERROR, GOOD, PING, PLAIN_TEXT, START, STOP, WHOLE, ending, event


@pytest.mark.parametrize("body", GOOD.values(), ids=GOOD)
def test_a_stream_in_the_public_form_holds_to_the_grammar(body: str) -> None:
    assert messages_stream.grammar(body), messages_stream.grammar(body)
    assert messages_blocks.inputs_parse(body)
    assert messages_stream.looks_complete(body)
    assert messages_stream.error_in_band(body) is None
    assert not messages_stream.ends_in_error(body)


@cache
def official_types() -> TypeAdapter[Any]:
    form: Any = Annotated[get_args(RawMessageStreamEvent)[0], Field(discriminator="type")]
    return TypeAdapter(form)


@pytest.mark.parametrize("body", GOOD.values(), ids=GOOD)
def test_the_good_streams_here_are_what_the_official_client_types(body: str) -> None:
    types = official_types()
    events = [json.loads(one.data) for one in parse(body).events if one.name != "ping"]
    for one in events:
        assert types.validate_python(one).type == one["type"]


@pytest.mark.parametrize("odd", [": ping\n\n", PING, ""])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_pings_comments_and_any_line_end_are_no_fault(odd: str, ending: str) -> None:
    whole = WHOLE.removesuffix(STOP).replace("\n\n", f"\n\n{odd}") + STOP
    body = (odd + whole).replace("\n", ending)
    assert messages_stream.grammar(body), messages_stream.grammar(body)


@pytest.mark.parametrize(("rule", "body"), [each[1:] for each in BROKEN], ids=[each[0] for each in BROKEN])
def test_each_way_to_break_a_stream_is_seen_by_its_rule(rule: Rule, body: str) -> None:
    judged = rule(body)
    assert not judged
    assert judged.expected
    assert judged.seen != judged.expected


OF_THE_GRAMMAR = [each for each in BROKEN if each[1] is not messages_blocks.inputs_parse]


@pytest.mark.parametrize("body", [each[2] for each in OF_THE_GRAMMAR], ids=[each[0] for each in OF_THE_GRAMMAR])
def test_the_grammar_as_a_whole_refuses_every_broken_stream(body: str) -> None:
    assert not messages_stream.grammar(body)


def test_every_rule_of_the_grammar_is_broken_here() -> None:
    broken = {each[1] for each in BROKEN}
    assert broken >= set(messages_stream.RULES)


def test_a_stream_of_another_type_is_none() -> None:
    assert not messages_stream.framing("application/json", WHOLE)
    assert not messages_stream.framing(None, WHOLE)


@pytest.mark.parametrize(
    ("body", "complete"),
    [
        pytest.param(START + PLAIN_TEXT, False, id="cut behind a block"),
        pytest.param(START + PLAIN_TEXT + ending(None), False, id="cut before the reason"),
        pytest.param(START + PLAIN_TEXT + ending("end_turn"), True, id="a reason without an end"),
        pytest.param(START + PLAIN_TEXT + STOP, True, id="an end without a reason"),
        pytest.param(START + PLAIN_TEXT + ERROR + END, False, id="an error, then an end"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_a_cut_stream_never_looks_complete(body: str, complete: bool) -> None:
    assert messages_stream.looks_complete(body) is complete


def test_a_stream_that_breaks_ends_in_one_error_of_the_dialect() -> None:
    assert messages_stream.ends_in_error(START + PLAIN_TEXT + ERROR)
    assert messages_stream.ends_in_error(PING + ERROR)
    assert messages_stream.error_in_band(PING + ERROR) == {"type": "overloaded_error", "message": "Overloaded"}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(START + PLAIN_TEXT, id="no error"),
        pytest.param(START + ERROR + ERROR, id="two errors"),
        pytest.param(START + ERROR + PING, id="something behind it"),
        pytest.param(START + ending("end_turn") + ERROR, id="an end beside it"),
        pytest.param(START + event("error", error={"message": "no"}), id="an error without a type"),
        pytest.param(START + event("error", error={"type": "api_error", "message": " "}), id="an error that is mute"),
        pytest.param(START + 'data: {"error": {"message": "no"}}\n\n', id="an error of the chat dialect"),
    ],
)
def test_a_failure_that_is_told_badly_is_refused(body: str) -> None:
    assert not messages_stream.ends_in_error(body)
