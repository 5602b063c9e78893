"""Each way to break a Messages stream, and the rule of the grammar that has to see it."""

from collections.abc import Callable

from conformance.oracle import messages_blocks, messages_stream
from conformance.oracle.judgement import Judgement
from tests.oracle.messages.streams import (
    END,
    ERROR,
    PING,
    PLAIN_TEXT,
    SECOND,
    START,
    STOP,
    THINKING,
    WHOLE,
    closes,
    delta,
    ending,
    event,
    opens,
    start,
)

Rule = Callable[[str], Judgement]


def framed(body: str) -> Judgement:
    return messages_stream.framing("text/event-stream; charset=utf-8", body)


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
