"""Each way to break a Responses stream, and the rule of the grammar that has to see it."""

import json
from collections.abc import Callable

from conformance.oracle import responses_items, responses_stream
from conformance.oracle.judgement import Judgement
from tests.oracle.responses.streams import (
    CALL,
    CREATED,
    CUT,
    ERROR,
    EVENTS,
    FAILURE,
    INCOMPLETE,
    ITEMS,
    OTHER_CALL,
    PROGRESS,
    SAID,
    USAGE,
    WHOLE,
    Told,
    calling,
    ending,
    event,
    finished,
    of,
    opened,
    response,
    saying,
    stream,
)

Rule = Callable[[str], Judgement]


def framed(body: str) -> Judgement:
    return responses_stream.framing("text/event-stream; charset=utf-8", body)


def without(*gone: Told, events: list[Told] = EVENTS) -> str:
    assert all(one in events for one in gone)
    return stream(*(one for one in events if one not in gone))


def put(new: Told | list[Told], *, behind: Told, events: list[Told] = EVENTS) -> str:
    at = events.index(behind) + 1
    return stream(*events[:at], *(new if isinstance(new, list) else [new]), *events[at:])


def swapped(old: Told, by: Told, events: list[Told] = EVENTS) -> str:
    assert old in events
    return stream(*(by if one == old else one for one in events))


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
