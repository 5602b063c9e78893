"""The grammar of Responses streams: the public form holds to it, and each way to break it is told apart."""

import json
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import ResponseStreamEvent
from pydantic import Field, TypeAdapter

from conformance.oracle import responses_answers, responses_items, responses_stream
from conformance.oracle.judgement import Judgement

Rule = Callable[[str], Judgement]
Told = dict[str, Any]


def event(kind: str, **data: Any) -> Told:
    return {"type": kind, **data}


def stream(*events: Told, begin: int = 0) -> str:
    """The bytes of these events, numbered in order where they bear no number of their own."""
    numbered = ({"sequence_number": begin + n, **one} for n, one in enumerate(events))
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one, ensure_ascii=False)}\n\n" for one in numbered)


def response(status: str = "in_progress", **more: Any) -> Told:
    head = {
        "id": "resp_1",
        "object": "response",
        "created_at": 7,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": "served",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
    }
    return {**head, **more}


USAGE = {
    "input_tokens": 9,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 12,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 21,
}
THOUGHT = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [],
    "content": [{"type": "reasoning_text", "text": "Hm."}],
    "encrypted_content": None,
    "status": "completed",
}
SAID = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Straße 🛠️", "annotations": []}],
}
CALL = {
    "id": "fc_1",
    "type": "function_call",
    "status": "completed",
    "call_id": "call_1",
    "name": "run",
    "arguments": '{"z": 1.0, "a": [1]}',
}
OTHER_CALL = {**CALL, "id": "fc_2", "call_id": "call_2", "name": "look", "arguments": "{}"}


def begun(item: Told) -> Told:
    empty = {key: [] if key != "arguments" else "" for key in ("content", "arguments", "summary") if item.get(key)}
    return {**item, "status": "in_progress", **empty}


def opened(index: Any, item: Told) -> Told:
    return event("response.output_item.added", output_index=index, item=begun(item))


def finished(index: Any, item: Told) -> Told:
    return event("response.output_item.done", output_index=index, item=item)


def of(index: int, item: Told, kind: str, **data: Any) -> Told:
    return event(f"response.{kind}", output_index=index, item_id=item["id"], **data)


def thinking(index: int) -> list[Told]:
    pieces = [of(index, THOUGHT, "reasoning_text.delta", content_index=0, delta=piece) for piece in ("H", "m.")]
    whole = of(index, THOUGHT, "reasoning_text.done", content_index=0, text="Hm.")
    return [opened(index, THOUGHT), *pieces, whole, finished(index, THOUGHT)]


def saying(index: int) -> list[Told]:
    part = {"content_index": 0, "part": {"type": "output_text", "text": "", "annotations": []}}
    pieces = ("Straße ", "🛠️")
    return [
        opened(index, SAID),
        of(index, SAID, "content_part.added", **part),
        *(of(index, SAID, "output_text.delta", content_index=0, delta=piece, logprobs=[]) for piece in pieces),
        of(index, SAID, "output_text.done", content_index=0, text="Straße 🛠️", logprobs=[]),
        of(index, SAID, "content_part.done", content_index=0, part=SAID["content"][0]),
        finished(index, SAID),
    ]


def calling(index: int, call: Told) -> list[Told]:
    text = call["arguments"]
    return [
        opened(index, call),
        *(of(index, call, "function_call_arguments.delta", delta=piece) for piece in (text[:1], text[1:])),
        of(index, call, "function_call_arguments.done", arguments=text),
        finished(index, call),
    ]


def ending(status: str = "completed", **more: Any) -> Told:
    return event(f"response.{status}", response=response(status, **{"usage": USAGE, **more}))


CREATED = event("response.created", response=response())
PROGRESS = event("response.in_progress", response=response())
ITEMS = [THOUGHT, SAID, CALL, OTHER_CALL]
EVENTS = [
    CREATED,
    PROGRESS,
    *thinking(0),
    *saying(1),
    *calling(2, CALL),
    *calling(3, OTHER_CALL),
    ending(output=ITEMS),
]
WHOLE = stream(*EVENTS)
PLAIN = [CREATED, PROGRESS, *saying(0), ending(output=[SAID])]
FAILURE = event("response.failed", response=response("failed", error={"code": "server_error", "message": "It broke."}))
ERROR = event("error", code="server_error", message="It broke.", param=None)
CUT = {**SAID, "status": "incomplete"}
INCOMPLETE = [
    *(finished(0, CUT) if one == finished(0, SAID) else one for one in PLAIN[:-1]),
    ending("incomplete", output=[CUT], incomplete_details={"reason": "max_output_tokens"}),
]
SUMMARY = {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Short."}]}
SUMMED = [
    opened(0, SUMMARY),
    of(0, SUMMARY, "reasoning_summary_part.added", summary_index=0, part={"type": "summary_text", "text": ""}),
    of(0, SUMMARY, "reasoning_summary_text.delta", summary_index=0, delta="Short."),
    of(0, SUMMARY, "reasoning_summary_text.done", summary_index=0, text="Short."),
    of(0, SUMMARY, "reasoning_summary_part.done", summary_index=0, part=SUMMARY["summary"][0]),
    finished(0, SUMMARY),
]
SILENT = {**CALL, "arguments": ""}


def framed(body: str) -> Judgement:
    return responses_stream.framing("text/event-stream; charset=utf-8", body)


GOOD: dict[str, list[Told]] = {
    "reasoning, text and two calls": EVENTS,
    "text only": PLAIN,
    "cut by a limit": INCOMPLETE,
    "nothing at all": [CREATED, ending()],
    "a summary": [CREATED, *SUMMED, ending(output=[SUMMARY])],
    "queued first": [CREATED, event("response.queued", response=response("queued")), PROGRESS, ending()],
    "told twice that it goes on": [CREATED, PROGRESS, PROGRESS, *PLAIN[2:]],
    "items that overlap": [
        CREATED,
        *saying(0)[:-1],
        *calling(1, CALL)[:-1],
        finished(0, SAID),
        finished(1, CALL),
        ending(output=[SAID, CALL]),
    ],
    "a call without a text": [CREATED, opened(0, SILENT), finished(0, SILENT), ending(output=[SILENT])],
}


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


def without(*gone: Told, events: list[Told] = EVENTS) -> str:
    assert all(one in events for one in gone)
    return stream(*(one for one in events if one not in gone))


def put(new: Told | list[Told], *, behind: Told, events: list[Told] = EVENTS) -> str:
    at = events.index(behind) + 1
    return stream(*events[:at], *(new if isinstance(new, list) else [new]), *events[at:])


def swapped(old: Told, by: Told, events: list[Told] = EVENTS) -> str:
    assert old in events
    return stream(*(by if one == old else one for one in events))


def changed(kind: str, **changes: Any) -> str:
    """The whole stream with the first event of a kind changed."""
    old = next(one for one in EVENTS if one["type"] == kind)
    return swapped(old, {**old, **changes})


LAST = EVENTS[-1]
PART_ADDED = next(one for one in EVENTS if one["type"] == "response.content_part.added")
PART_DONE = next(one for one in EVENTS if one["type"] == "response.content_part.done")
TEXT_DONE = next(one for one in EVENTS if one["type"] == "response.output_text.done")
TEXT = next(one for one in EVENTS if one["type"] == "response.output_text.delta")
ARGUMENTS = next(one for one in EVENTS if one["type"] == "response.function_call_arguments.delta")
ARGUMENTS_DONE = next(one for one in EVENTS if one["type"] == "response.function_call_arguments.done")

BROKEN: list[tuple[str, Rule, str]] = [
    ("no events at all", framed, ""),
    ("one body instead of events", framed, json.dumps(response("completed"))),
    ("a last event that is not closed", framed, WHOLE.removesuffix("\n\n")),
    ("events without names", framed, WHOLE.replace("event: response.completed\n", "")),
    ("an event named as another", framed, WHOLE.replace("event: response.completed", "event: response.created")),
    (
        "the bare response as an event",
        framed,
        stream(CREATED) + f"event: response.completed\ndata: {json.dumps(response())}\n\n",
    ),
    ("an event that is no JSON", framed, WHOLE + "event: response.completed\ndata: {\n\n"),
    ("a [DONE] as in the chat dialect", framed, WHOLE + "data: [DONE]\n\n"),
    ("an event of no dialect", framed, put(event("response.reasoning.delta"), behind=PROGRESS)),
    ("a line that is no field", framed, "id: 3\n" + WHOLE),
    ("no numbers", responses_stream.numbered, WHOLE.replace("sequence_number", "number")),
    ("numbers from 5", responses_stream.numbered, stream(*EVENTS, begin=5)),
    ("a number twice", responses_stream.numbered, swapped(TEXT, {**TEXT, "sequence_number": 7})),
    ("a number left out", responses_stream.numbered, WHOLE.replace(stream(TEXT, begin=EVENTS.index(TEXT)), "")),
    ("a number that is none", responses_stream.numbered, swapped(CREATED, {**CREATED, "sequence_number": False})),
    ("nothing created", responses_stream.created_first, without(CREATED)),
    ("created twice", responses_stream.created_first, put(CREATED, behind=CREATED)),
    ("in progress before created", responses_stream.created_first, stream(PROGRESS, *EVENTS)),
    ("a beginning among the items", responses_stream.created_first, put(PROGRESS, behind=TEXT)),
    ("another id for the end", responses_stream.one_response, swapped(LAST, ending(output=ITEMS, id="resp_2"))),
    ("another model for the end", responses_stream.one_response, swapped(LAST, ending(output=ITEMS, model="m"))),
    ("another time for the end", responses_stream.one_response, swapped(LAST, ending(output=ITEMS, created_at=8))),
    ("no id anywhere", responses_stream.one_response, WHOLE.replace('"resp_1"', '""')),
    (
        "another object",
        responses_stream.one_response,
        WHOLE.replace('"object": "response"', '"object": "chat.completion"'),
    ),
    ("a response without its tools", responses_stream.one_response, WHOLE.replace('"tools": [], ', "")),
    (
        "a response that is not nested",
        responses_stream.one_response,
        swapped(LAST, {"type": "response.completed", **response("completed")}),
    ),
    (
        "a response that begins completed",
        responses_stream.begins_empty,
        swapped(CREATED, event("response.created", response=response("completed"))),
    ),
    (
        "output in the beginning",
        responses_stream.begins_empty,
        swapped(PROGRESS, event("response.in_progress", response=response(output=[SAID]))),
    ),
    (
        "usage in the beginning",
        responses_stream.begins_empty,
        swapped(PROGRESS, event("response.in_progress", response=response(usage=USAGE))),
    ),
    ("no end", responses_stream.ends_once, without(LAST)),
    ("two ends", responses_stream.ends_once, stream(*EVENTS, LAST)),
    ("two kinds of end", responses_stream.ends_once, stream(*EVENTS, FAILURE)),
    ("an end before an item is done", responses_stream.ends_once, put(finished(3, OTHER_CALL), behind=LAST)),
    ("an item that begins at 1", responses_items.items_in_turn, stream(CREATED, *saying(1), ending(output=[SAID]))),
    (
        "an item that skips a number",
        responses_items.items_in_turn,
        stream(CREATED, *saying(0), *calling(2, CALL), LAST),
    ),
    ("two items of one number", responses_items.items_in_turn, stream(CREATED, *saying(0), *calling(0, CALL), LAST)),
    ("an item that is not done", responses_items.items_in_turn, without(finished(3, OTHER_CALL))),
    ("an item done twice", responses_items.items_in_turn, put(finished(1, SAID), behind=finished(1, SAID))),
    ("an item done that never opened", responses_items.items_in_turn, without(opened(1, SAID))),
    ("a delta behind its item", responses_items.items_in_turn, put(TEXT, behind=finished(1, SAID))),
    ("a delta of no item", responses_items.items_in_turn, put(TEXT, behind=CREATED)),
    ("an item without an id", responses_items.ids_stable, WHOLE.replace('"fc_1"', '""')),
    ("one id for two items", responses_items.ids_stable, WHOLE.replace('"fc_2"', '"fc_1"')),
    ("one call id for two calls", responses_items.ids_stable, WHOLE.replace('"call_2"', '"call_1"')),
    ("a call without a call id", responses_items.ids_stable, WHOLE.replace('"call_1"', "null")),
    (
        "another id when done",
        responses_items.ids_stable,
        swapped(finished(1, SAID), finished(1, {**SAID, "id": "msg_2"})),
    ),
    (
        "another call id when done",
        responses_items.ids_stable,
        swapped(finished(2, CALL), finished(2, {**CALL, "call_id": "call_9"})),
    ),
    (
        "another name when done",
        responses_items.ids_stable,
        swapped(finished(2, CALL), finished(2, {**CALL, "name": "walk"})),
    ),
    ("a delta under another id", responses_items.ids_stable, swapped(TEXT, {**TEXT, "item_id": "msg_9"})),
    ("a delta without an id", responses_items.ids_stable, swapped(ARGUMENTS, {**ARGUMENTS, "item_id": None})),
    (
        "an item that opens with its text",
        responses_items.items_open_empty,
        swapped(
            opened(1, SAID), event("response.output_item.added", output_index=1, item={**SAID, "status": "in_progress"})
        ),
    ),
    (
        "a call that opens with its arguments",
        responses_items.items_open_empty,
        swapped(
            opened(2, CALL), event("response.output_item.added", output_index=2, item={**CALL, "status": "in_progress"})
        ),
    ),
    (
        "an item that opens completed",
        responses_items.items_open_empty,
        swapped(opened(1, SAID), event("response.output_item.added", output_index=1, item={**SAID, "content": []})),
    ),
    ("text without a part", responses_items.parts_in_turn, without(PART_ADDED, PART_DONE)),
    ("a part that begins at 1", responses_items.parts_in_turn, swapped(PART_ADDED, {**PART_ADDED, "content_index": 1})),
    ("a part opened twice", responses_items.parts_in_turn, put(PART_ADDED, behind=PART_ADDED)),
    ("a part that is not done", responses_items.parts_in_turn, without(PART_DONE)),
    ("a part done twice", responses_items.parts_in_turn, put(PART_DONE, behind=PART_DONE)),
    ("text behind its part", responses_items.parts_in_turn, put(TEXT, behind=PART_DONE)),
    (
        "a part that the item lacks",
        responses_items.parts_in_turn,
        swapped(finished(1, SAID), finished(1, {**SAID, "content": []})),
    ),
    (
        "a part that says something else",
        responses_items.parts_repeat_the_item,
        swapped(PART_DONE, {**PART_DONE, "part": {"type": "output_text", "text": "x"}}),
    ),
    (
        "arguments in a message",
        responses_items.pieces_fit,
        put(of(1, SAID, "function_call_arguments.delta", delta="x"), behind=TEXT),
    ),
    (
        "text in a call",
        responses_items.pieces_fit,
        put(of(2, CALL, "output_text.delta", content_index=0, delta="x"), behind=ARGUMENTS),
    ),
    ("a delta that is no text", responses_items.pieces_fit, swapped(ARGUMENTS, {**ARGUMENTS, "delta": {"z": 1}})),
    ("a delta behind its done", responses_items.pieces_fit, put(ARGUMENTS, behind=ARGUMENTS_DONE)),
    ("a text done twice", responses_items.pieces_fit, put(TEXT_DONE, behind=TEXT_DONE)),
    ("a text that is not done", responses_items.pieces_fit, without(TEXT_DONE)),
    ("arguments that are not done", responses_items.pieces_fit, without(ARGUMENTS_DONE)),
    ("a delta lost", responses_items.pieces_make_the_whole, without(TEXT)),
    ("a delta twice", responses_items.pieces_make_the_whole, put(ARGUMENTS, behind=ARGUMENTS)),
    (
        "arguments only when done",
        responses_items.pieces_make_the_whole,
        stream(*(one for one in EVENTS if one["type"] != ARGUMENTS["type"])),
    ),
    (
        "arguments only in the item",
        responses_items.pieces_make_the_whole,
        stream(*(one for one in EVENTS if "arguments." not in one["type"])),
    ),
    (
        "arguments written anew when done",
        responses_items.pieces_make_the_whole,
        swapped(ARGUMENTS_DONE, {**ARGUMENTS_DONE, "arguments": '{"a": [1], "z": 1.0}'}),
    ),
    (
        "arguments done as an object",
        responses_items.pieces_make_the_whole,
        swapped(ARGUMENTS_DONE, {**ARGUMENTS_DONE, "arguments": {}}),
    ),
    (
        "an item with another text",
        responses_items.pieces_make_the_whole,
        swapped(finished(2, CALL), finished(2, {**CALL, "arguments": "{}"})),
    ),
    (
        "reasoning only in the item",
        responses_items.pieces_make_the_whole,
        stream(*(one for one in EVENTS if "reasoning_text" not in one["type"])),
    ),
    (
        "a status that is not the event's",
        responses_stream.end_fits,
        swapped(LAST, event("response.completed", response=response("in_progress", output=ITEMS, usage=USAGE))),
    ),
    (
        "completed, though cut by a limit",
        responses_stream.end_fits,
        swapped(LAST, ending(output=ITEMS, incomplete_details={"reason": "max_output_tokens"})),
    ),
    ("incomplete for no reason", responses_stream.end_fits, swapped(LAST, ending("incomplete", output=ITEMS))),
    (
        "completed with an error",
        responses_stream.end_fits,
        swapped(LAST, ending(output=ITEMS, error={"code": "x", "message": "y"})),
    ),
    ("completed with a cut item", responses_stream.end_fits, stream(*INCOMPLETE[:-1], ending(output=[CUT]))),
    ("an end without the items", responses_stream.output_agrees, swapped(LAST, ending())),
    (
        "an end with the items in another order",
        responses_stream.output_agrees,
        swapped(LAST, ending(output=ITEMS[::-1])),
    ),
    ("an end with another text", responses_stream.output_agrees, swapped(LAST, ending(output=[*ITEMS[:3], CALL]))),
    ("an end without usage", responses_stream.usage_told, swapped(LAST, ending(output=ITEMS, usage=None))),
    (
        "usage in chat words",
        responses_stream.usage_told,
        swapped(LAST, ending(output=ITEMS, usage={"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21})),
    ),
    ("a failure that is followed by an end", responses_stream.no_error, put([ERROR, FAILURE], behind=TEXT)),
]


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
        pytest.param([*EVENTS[:-1], ERROR, LAST], False, id="an error, then an end"),
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
