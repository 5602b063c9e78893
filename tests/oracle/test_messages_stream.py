"""The grammar of Messages streams: the public form holds to it, and each way to break it is told apart."""

import json
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, get_args

import pytest
from anthropic.types import RawMessageStreamEvent
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, TypeAdapter

from conformance.oracle import messages_answers, messages_blocks, messages_stream
from conformance.oracle.judgement import Judgement
from conformance.oracle.sse import parse

Rule = Callable[[str], Judgement]


def event(kind: str, **data: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data}, ensure_ascii=False)}\n\n"


def start(**message: Any) -> str:
    whole = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "served",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 0},
        **message,
    }
    return event("message_start", message=whole)


def opens(index: Any, kind: str, **block: Any) -> str:
    return event("content_block_start", index=index, content_block={"type": kind, **block})


def delta(index: Any, kind: str, **piece: Any) -> str:
    return event("content_block_delta", index=index, delta={"type": kind, **piece})


def closes(index: Any) -> str:
    return event("content_block_stop", index=index)


def ending(reason: Any = "tool_use", sequence: Any = None, **usage: Any) -> str:
    counted = usage or {"output_tokens": 12}
    return event("message_delta", delta={"stop_reason": reason, "stop_sequence": sequence}, usage=counted)


START = start()
PING = event("ping")
STOP = event("message_stop")
THINKING = (
    opens(0, "thinking", thinking="", signature="")
    + delta(0, "thinking_delta", thinking="Hm")
    + delta(0, "thinking_delta", thinking=".")
    + delta(0, "signature_delta", signature="a83b")
    + closes(0)
)
TEXT = opens(1, "text", text="") + delta(1, "text_delta", text="Straße ") + delta(1, "text_delta", text="🛠️") + closes(1)
FIRST = (
    opens(2, "tool_use", id="toolu_1", name="run", input={})
    + delta(2, "input_json_delta", partial_json='{"z": 1.0, ')
    + delta(2, "input_json_delta", partial_json='"a": [1]}')
    + closes(2)
)
SECOND = opens(3, "tool_use", id="toolu_2", name="look", input={}) + closes(3)
END = ending() + STOP
WHOLE = START + PING + THINKING + TEXT + FIRST + SECOND + END
PLAIN_TEXT = TEXT.replace('"index": 1', '"index": 0')
PLAIN = START + PLAIN_TEXT + ending("end_turn") + STOP
ERROR = event("error", error={"type": "overloaded_error", "message": "Overloaded"})
OF_VLLM = (
    START.replace('"stop_reason": null, "stop_sequence": null, ', "").replace("msg_1", "chatcmpl-b8")
    + PLAIN_TEXT
    + event("message_delta", delta={"stop_reason": "max_tokens"}, usage={"input_tokens": 9, "output_tokens": 60})
    + STOP
)
"""As vLLM streams it, nulls left out."""


def framed(body: str) -> Judgement:
    return messages_stream.framing("text/event-stream; charset=utf-8", body)


GOOD = {
    "thinking, text and two calls": WHOLE,
    "text only": PLAIN,
    "as vLLM streams": OF_VLLM,
    "nothing at all": START + ending("end_turn") + STOP,
    "an empty text": START + opens(0, "text", text="") + closes(0) + ending("end_turn") + STOP,
    "a block that comes whole": START + opens(0, "redacted_thinking", data="x") + closes(0) + ending("end_turn") + STOP,
    "a stop sequence": START + PLAIN_TEXT + ending("stop_sequence", "END") + STOP,
    "pings before the start": PING + PING + PLAIN,
    "counts before the reason": START + PLAIN_TEXT + ending(None, output_tokens=3) + ending("end_turn") + STOP,
    "thinking without a signature": START
    + THINKING.replace('"signature_delta", "signature"', '"thinking_delta", "thinking"')
    + ending("end_turn")
    + STOP,
}


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


def without(text: str, body: str = WHOLE) -> str:
    assert text in body
    return body.replace(text, "", 1)


def changed(text: str, by: str, body: str = WHOLE) -> str:
    assert text in body
    return body.replace(text, by, 1)


BROKEN: list[tuple[str, Rule, str]] = [
    ("no events at all", framed, ""),
    ("one body instead of events", framed, '{"type": "message"}'),
    ("a last event that is not closed", framed, WHOLE.removesuffix("\n\n")),
    ("events without names", framed, WHOLE.replace("event: message_stop\n", "")),
    ("an event named as another", framed, changed("event: message_stop", "event: message_delta")),
    ("an event that is no JSON", framed, changed(STOP, "event: message_stop\ndata: {\n\n")),
    ("an event of JSON that is no object", framed, changed(STOP, "event: message_stop\ndata: 3\n\n")),
    ("a [DONE] as in the chat dialect", framed, WHOLE + "data: [DONE]\n\n"),
    ("an event of no dialect", framed, changed(PING, event("message_pause"))),
    ("a line that is no field", framed, changed(PING, "retry: 3\n" + PING)),
    ("no start", messages_stream.starts_once, without(START)),
    ("two starts", messages_stream.starts_once, START + WHOLE),
    ("a block before the start", messages_stream.starts_once, PLAIN_TEXT + START + END),
    ("a head without an id", messages_stream.head_is_whole, start(id="") + PLAIN_TEXT + END),
    ("a head without a model", messages_stream.head_is_whole, start(model=None) + PLAIN_TEXT + END),
    ("a head of another type", messages_stream.head_is_whole, start(type="completion") + PLAIN_TEXT + END),
    ("a head of another role", messages_stream.head_is_whole, start(role="user") + PLAIN_TEXT + END),
    ("content in the head", messages_stream.head_is_whole, start(content=[{"type": "text", "text": "x"}]) + END),
    ("a reason in the head", messages_stream.head_is_whole, start(stop_reason="end_turn") + PLAIN_TEXT + END),
    ("a stop sequence in the head", messages_stream.head_is_whole, start(stop_sequence="x") + PLAIN_TEXT + END),
    ("a head without usage", messages_stream.head_is_whole, start(usage=None) + PLAIN_TEXT + END),
    ("a head that counts half", messages_stream.head_is_whole, start(usage={"input_tokens": 1}) + PLAIN_TEXT + END),
    (
        "a count that is no number",
        messages_stream.head_is_whole,
        start(usage={"input_tokens": "9", "output_tokens": 0}),
    ),
    ("a block that begins at 1", messages_blocks.blocks_in_turn, without(THINKING)),
    ("a block that skips a number", messages_blocks.blocks_in_turn, changed(SECOND, SECOND.replace("3", "4"))),
    ("a number twice", messages_blocks.blocks_in_turn, changed(SECOND, SECOND.replace('"index": 3', '"index": 2'))),
    ("a number that is none", messages_blocks.blocks_in_turn, WHOLE.replace('"index": 0', '"index": "0"')),
    ("a block opened in a block", messages_blocks.blocks_in_turn, without(closes(1))),
    ("a block that is not closed", messages_blocks.blocks_in_turn, without(closes(3))),
    ("a block closed twice", messages_blocks.blocks_in_turn, changed(closes(1), closes(1) * 2)),
    (
        "a delta behind the end of its block",
        messages_blocks.blocks_in_turn,
        WHOLE.replace(END, delta(3, "input_json_delta", partial_json="{}") + END),
    ),
    (
        "a delta of an earlier block",
        messages_blocks.blocks_in_turn,
        changed(closes(1), delta(0, "thinking_delta", thinking="x") + closes(1)),
    ),
    (
        "a delta before its block",
        messages_blocks.blocks_in_turn,
        changed(opens(1, "text", text=""), delta(1, "text_delta", text="x") + opens(1, "text", text="")),
    ),
    ("text in the start of its block", messages_blocks.blocks_open_empty, changed('"text": ""', '"text": "x"')),
    (
        "an input in the start of its block",
        messages_blocks.blocks_open_empty,
        changed('"input": {}', '"input": {"a": 1}'),
    ),
    (
        "text for a tool",
        messages_blocks.deltas_fit,
        changed('"type": "input_json_delta", "partial_json"', '"type": "text_delta", "text"'),
    ),
    (
        "an input for a text",
        messages_blocks.deltas_fit,
        changed('"type": "text_delta", "text"', '"type": "input_json_delta", "partial_json"'),
    ),
    ("a delta of no dialect", messages_blocks.deltas_fit, WHOLE.replace("text_delta", "tokens_delta")),
    (
        "a delta for a block that comes whole",
        messages_blocks.deltas_fit,
        START + opens(0, "redacted_thinking", data="x") + delta(0, "text_delta", text="x") + closes(0),
    ),
    ("a piece that is no text", messages_blocks.deltas_fit, changed('"text": "Straße "', '"text": null')),
    ("a block without a type", messages_blocks.deltas_fit, changed('"type": "text", "text": ""', '"text": ""')),
    (
        "thinking behind its signature",
        messages_blocks.signature_last,
        changed(closes(0), delta(0, "thinking_delta", thinking="x") + closes(0)),
    ),
    (
        "two signatures",
        messages_blocks.signature_last,
        changed(closes(0), delta(0, "signature_delta", signature="x") + closes(0)),
    ),
    ("a tool without an id", messages_blocks.tools_named, changed('"id": "toolu_1", ', "")),
    ("a tool without a name", messages_blocks.tools_named, changed('"name": "look"', '"name": ""')),
    ("one id for two tools", messages_blocks.tools_named, changed("toolu_2", "toolu_1")),
    (
        "an input that lacks a piece",
        messages_blocks.inputs_parse,
        without(delta(2, "input_json_delta", partial_json='"a": [1]}')),
    ),
    (
        "an input with {} in front",
        messages_blocks.inputs_parse,
        changed(r'"partial_json": "{\"z\"', r'"partial_json": "{}{\"z\"'),
    ),
    ("no end", messages_stream.stops_once, without(STOP)),
    ("two ends", messages_stream.stops_once, WHOLE + STOP),
    ("an end before the reason", messages_stream.stops_once, changed(END, STOP + ending())),
    ("a ping behind the end", messages_stream.stops_once, WHOLE + PING),
    ("no reason", messages_stream.one_reason, without(ending())),
    ("a reason that is null", messages_stream.one_reason, changed(ending(), ending(None))),
    ("two reasons", messages_stream.one_reason, changed(ending(), ending() * 2)),
    ("a reason of the chat dialect", messages_stream.one_reason, changed(ending(), ending("tool_calls"))),
    ("a reason before the last block", messages_stream.one_reason, changed(SECOND + ending(), ending() + SECOND)),
    ("a stop sequence that is not named", messages_stream.one_reason, changed(ending(), ending("stop_sequence"))),
    ("a stop sequence for another reason", messages_stream.one_reason, changed(ending(), ending("tool_use", "END"))),
    ("tool_use without a tool", messages_stream.one_reason, START + PLAIN_TEXT + ending() + STOP),
    ("a reason without usage", messages_stream.usage_told, changed(', "usage": {"output_tokens": 12}', "")),
    ("usage without output", messages_stream.usage_told, changed(ending(), ending(input_tokens=3))),
    ("counts that fall", messages_stream.usage_told, changed(ending(), ending(None, output_tokens=13) + ending())),
    ("an error that is followed by an end", messages_stream.no_error, changed(END, ERROR + END)),
]


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
