"""What a Responses stream says, read from its items or its pieces; no body is odd enough to raise."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.oracle import responses_answers, responses_stream
from conformance.oracle.judgement import Judgement
from tests.oracle.responses.streams import (
    CREATED,
    EVENTS,
    INCOMPLETE,
    ITEMS,
    SAID,
    SUMMED,
    USAGE,
    WHOLE,
    finished,
    response,
    stream,
)


def test_a_stream_says_what_its_items_say() -> None:
    answer = responses_answers.reassemble(WHOLE)
    assert answer == responses_answers.buffered(response("completed", output=ITEMS, usage=USAGE))
    assert (answer.id, answer.model, answer.status) == ("resp_1", "served", "completed")
    assert (answer.reasoning, answer.text) == ("Hm.", "Straße 🛠️")
    assert [call["id"] for call in answer.tool_calls] == ["call_1", "call_2"]
    assert [call["function"]["arguments"] for call in answer.tool_calls] == ['{"z": 1.0, "a": [1]}', "{}"]
    assert answer.usage == USAGE
    assert responses_answers.reassemble(stream(*INCOMPLETE)).incomplete_reason == "max_output_tokens"
    assert responses_answers.buffered({}) == responses_answers.ResponsesAnswer()


def test_deltas_alone_say_the_same() -> None:
    whole, followed = responses_answers.reassemble(WHOLE), responses_answers.from_deltas(WHOLE)
    assert (followed.text, followed.reasoning, followed.tool_calls) == (whole.text, whole.reasoning, whole.tool_calls)
    assert responses_answers.from_deltas(stream(CREATED, *SUMMED)).reasoning == "Short."


def test_what_was_done_before_a_cut_is_told_and_no_more() -> None:
    answer = responses_answers.reassemble(stream(*EVENTS[: EVENTS.index(finished(1, SAID)) + 3]))
    assert [item["id"] for item in answer.items] == ["rs_1", "msg_1"]
    assert answer.status == "in_progress"


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1, 3)
    | st.sampled_from(["", "message", "function_call", "x", "reasoning"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "id", "content", "summary", "text", "arguments"]), inner, max_size=4)
    ),
    max_leaves=8,
)
KEYS = ["output_index", "content_index", "summary_index", "item_id", "item", "delta", "part", "text", "arguments"]
ODD = st.lists(
    st.tuples(
        st.sampled_from(sorted(responses_stream.KINDS)),
        VALUES | st.dictionaries(st.sampled_from([*KEYS, "response", "sequence_number", "error"]), VALUES, max_size=6),
    ),
    max_size=7,
)


@settings(max_examples=60)
@given(ODD)
def test_no_body_is_odd_enough_to_raise(events: list[tuple[str, Any]]) -> None:
    datas = ({**value, "type": kind} if isinstance(value, dict) else value for kind, value in events)
    body = "".join(f"event: x\ndata: {json.dumps(data)}\n\n" for data in datas)
    for rule in (responses_stream.grammar, responses_stream.ends_in_error, *responses_stream.RULES):
        assert isinstance(rule(body), Judgement)
    for read in (responses_answers.reassemble, responses_answers.from_deltas):
        answer = read(body)
        assert isinstance(answer.text + answer.reasoning, str)
        assert isinstance(answer.tool_calls, list)
    responses_stream.looks_complete(body)
