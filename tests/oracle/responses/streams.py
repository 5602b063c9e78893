"""Responses streams in the public form, event by event: what the grammar has to hold for good."""

import json
from typing import Any

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
