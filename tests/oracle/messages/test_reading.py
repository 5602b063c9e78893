"""What a Messages stream says, read from its pieces; no body is odd enough to raise."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from conformance.oracle import messages_answers, messages_blocks, messages_stream
from conformance.oracle.judgement import Judgement
from tests.oracle.messages.breaks import without
from tests.oracle.messages.streams import WHOLE, delta


def test_a_stream_says_what_its_pieces_say() -> None:
    answer = messages_answers.reassemble(WHOLE)
    assert (answer.id, answer.model, answer.stop_reason) == ("msg_1", "served", "tool_use")
    assert (answer.reasoning, answer.text) == ("Hm.", "Straße 🛠️")
    assert [call["id"] for call in answer.tool_calls] == ["toolu_1", "toolu_2"]
    inputs = [call["function"]["arguments"] for call in answer.tool_calls]
    assert [json.dumps(one) for one in inputs] == ['{"z": 1.0, "a": [1]}', "{}"]
    assert answer.usage == {"input_tokens": 9, "output_tokens": 12}
    assert answer.blocks[0] == {"type": "thinking", "thinking": "Hm.", "signature": "a83b"}


def test_a_buffered_message_and_a_stream_of_the_same_say_the_same() -> None:
    whole = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "served",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "a83b"},
            {"type": "text", "text": "Straße 🛠️"},
            {"type": "tool_use", "id": "toolu_1", "name": "run", "input": {"z": 1.0, "a": [1]}},
            {"type": "tool_use", "id": "toolu_2", "name": "look", "input": {}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 12},
    }
    assert messages_answers.buffered(whole) == messages_answers.reassemble(WHOLE)
    assert messages_answers.buffered({}) == messages_answers.MessagesAnswer()


def test_an_input_that_is_no_json_stays_the_text_that_came() -> None:
    cut = without(delta(2, "input_json_delta", partial_json='"a": [1]}'))
    assert messages_stream.grammar(cut)
    assert messages_answers.reassemble(cut).blocks[2]["input"] == '{"z": 1.0, '


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 4) | st.sampled_from(["", "text", "tool_use", "text_delta", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "index",
                    "delta",
                    "content_block",
                    "message",
                    "usage",
                    "text",
                    "id",
                    "name",
                    "input",
                    "error",
                    "stop_reason",
                    "output_tokens",
                    "content",
                    "partial_json",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)
EVENTS = st.lists(st.tuples(st.sampled_from(sorted(messages_stream.KINDS)), JSON), max_size=6)


@given(EVENTS)
def test_no_body_is_odd_enough_to_raise(events: list[tuple[str, Any]]) -> None:
    datas = ({"type": kind, **value} if isinstance(value, dict) else value for kind, value in events)
    body = "".join(f"event: x\ndata: {json.dumps(data)}\n\n" for data in datas)
    rules = (
        messages_stream.grammar,
        messages_stream.ends_in_error,
        messages_blocks.inputs_parse,
        *messages_stream.RULES,
    )
    for rule in rules:
        assert isinstance(rule(body), Judgement)
    messages_answers.reassemble(body)
    messages_stream.looks_complete(body)
    for _, value in events:
        if isinstance(value, dict):
            messages_answers.buffered(value)
