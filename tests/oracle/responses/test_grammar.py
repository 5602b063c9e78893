"""The grammar of Responses streams: the public form holds to it, and each way to break it is told apart."""

from functools import cache
from typing import Annotated, Any, get_args

import pytest
from openai.types.responses import ResponseStreamEvent
from pydantic import Field, TypeAdapter

from conformance.oracle import responses_stream
from tests.oracle.responses.breaks import BROKEN, Rule
from tests.oracle.responses.streams import (
    CREATED,
    ERROR,
    EVENTS,
    FAILURE,
    GOOD,
    INCOMPLETE,
    PROGRESS,
    WHOLE,
    Told,
    event,
    response,
    stream,
)


@pytest.mark.parametrize("events", GOOD.values(), ids=GOOD)
@pytest.mark.parametrize("begin", [0, 1])
def test_a_stream_in_the_public_form_holds_to_the_grammar(events: list[Told], begin: int) -> None:
    body = stream(*events, begin=begin)
    assert responses_stream.grammar(body), responses_stream.grammar(body)
    assert responses_stream.looks_complete(body)
    assert responses_stream.error_in_band(body) is None
    assert not responses_stream.ends_in_error(body)


@cache
def official_types() -> TypeAdapter[Any]:
    form: Any = Annotated[get_args(ResponseStreamEvent)[0], Field(discriminator="type")]
    return TypeAdapter(form)


@pytest.mark.parametrize("events", [*GOOD.values(), [CREATED, FAILURE], [CREATED, ERROR]])
def test_the_good_streams_here_are_what_the_official_client_types(events: list[Told]) -> None:
    types = official_types()
    for n, one in enumerate(events):
        assert types.validate_python({"sequence_number": n, **one}).type == one["type"]


@pytest.mark.parametrize("odd", [": ping\n\n", ":\n\n"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_comments_and_any_line_end_are_no_fault(odd: str, line_end: str) -> None:
    body = (odd + WHOLE.replace("\n\n", f"\n\n{odd}")).replace("\n", line_end)
    assert responses_stream.grammar(body), responses_stream.grammar(body)


@pytest.mark.parametrize(("rule", "body"), [each[1:] for each in BROKEN], ids=[each[0] for each in BROKEN])
def test_each_way_to_break_a_stream_is_seen_by_its_rule(rule: Rule, body: str) -> None:
    judged = rule(body)
    assert not judged
    assert judged.expected
    assert judged.seen != judged.expected


@pytest.mark.parametrize("body", [each[2] for each in BROKEN], ids=[each[0] for each in BROKEN])
def test_the_grammar_as_a_whole_refuses_every_broken_stream(body: str) -> None:
    assert not responses_stream.grammar(body)


def test_every_rule_of_the_grammar_is_broken_here() -> None:
    assert {each[1] for each in BROKEN} >= set(responses_stream.RULES)


def test_a_stream_of_another_type_is_none() -> None:
    assert not responses_stream.framing("application/json", WHOLE)
    assert not responses_stream.framing(None, WHOLE)


@pytest.mark.parametrize(
    ("events", "complete"),
    [
        pytest.param(EVENTS[:-1], False, id="cut before the end"),
        pytest.param([CREATED, FAILURE], False, id="failed"),
        pytest.param([*EVENTS[:-1], ERROR, EVENTS[-1]], False, id="an error, then an end"),
        pytest.param(INCOMPLETE, True, id="incomplete"),
        pytest.param([], False, id="nothing"),
    ],
)
def test_a_cut_stream_never_looks_complete(events: list[Told], complete: bool) -> None:
    assert responses_stream.looks_complete(stream(*events)) is complete


@pytest.mark.parametrize("failure", [FAILURE, ERROR, event("error", error={"message": "It broke."})])
@pytest.mark.parametrize("before", [[CREATED], EVENTS[:-1], EVENTS[:9]], ids=["at once", "at the end", "in a text"])
def test_a_stream_that_breaks_ends_in_one_failure(before: list[Told], failure: Told) -> None:
    body = stream(*before, failure)
    assert responses_stream.ends_in_error(body), responses_stream.ends_in_error(body)
    error = responses_stream.error_in_band(body)
    assert error is not None
    assert error["message"] == "It broke."


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(stream(*EVENTS[:-1]), id="no failure"),
        pytest.param(stream(CREATED, ERROR, ERROR), id="two failures"),
        pytest.param(stream(CREATED, ERROR, PROGRESS), id="something behind it"),
        pytest.param(stream(*EVENTS, FAILURE), id="an end beside it"),
        pytest.param(stream(CREATED, event("error", code="x", message="")), id="a failure that is mute"),
        pytest.param(stream(CREATED, event("response.failed", response=response("failed"))), id="failed for no reason"),
        pytest.param(stream(CREATED) + 'data: {"error": {"message": "no"}}\n\n', id="an error of the chat dialect"),
    ],
)
def test_a_failure_that_is_told_badly_is_refused(body: str) -> None:
    assert not responses_stream.ends_in_error(body)
