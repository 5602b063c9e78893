"""Does a record have the published form, and does it say what was asked and answered? See contract §1."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from conformance.contract.difference import tree_difference
from conformance.oracle.conversation import spoken
from conformance.oracle.judgement import Judgement, nothing_to_judge
from conformance.oracle.matching import Record, Row
from conformance.oracle.records import name

JSON = Any

EXTRAS = "x_trackgauge"
COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")
SAMPLING = (
    *("temperature", "top_p", "top_k", "min_p", "seed"),
    *("presence_penalty", "frequency_penalty", "repetition_penalty"),
    *("max_tokens", "max_completion_tokens", "stop", "stop_token_ids", "chat_template_kwargs"),
)
"""What decides how tokens are drawn from the model's distribution, and how many."""

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|\+00:00)")


def _is_text(value: JSON) -> bool:
    return isinstance(value, str)


def _is_text_or_null(value: JSON) -> bool:
    return value is None or isinstance(value, str)


def _are_counts(value: JSON) -> bool:
    return isinstance(value, Mapping) and all(type(value.get(count)) is int for count in COUNTS)


def _are_objects(value: JSON) -> bool:
    return isinstance(value, list) and all(isinstance(one, Mapping) for one in value)


def _are_numbers(value: JSON) -> bool:
    return isinstance(value, list) and {type(one) for one in value} <= {int, float}


FORM: Mapping[str, Callable[[JSON], bool]] = {
    "schema_version": lambda value: type(value) is int and value == 1,
    "uuid": _is_text,
    "session_id": _is_text,
    "parent_session_id": _is_text_or_null,
    "captured_at": _is_text,
    "request_id": _is_text,
    "model": _is_text,
    "messages": _are_objects,
    "tools": _are_objects,
    "tool_choice": _is_text,
    "token_count": _are_counts,
    "prompt_token_ids": _are_numbers,
    "generation_token_ids": _are_numbers,
    "generation_log_probs": _are_numbers,
    "finish_reason": _is_text_or_null,
    "is_valid": lambda value: type(value) is bool,
}
"""The published keys, and what a valid record has under each."""


def published_form(records: Iterable[Record]) -> Judgement:
    """Every key is there, with a value of its type. For valid records: in others the engine's oddities stand."""
    records = list(records)
    if not records:
        return nothing_to_judge("record")
    for record in records:
        wrong = {key: record.get(key, "no such key") for key, fits in FORM.items() if not fits(record.get(key))}
        absent = [key for key in FORM if key not in record]
        if wrong or absent:
            return Judgement(False, "a value of its type under each key", wrong or absent, name(record))
    return Judgement(True, "the published form", "the published form")


def nothing_beside(records: Iterable[Record]) -> Judgement:
    """What is not published lies in one object of its own."""
    records = list(records)
    if not records:
        return nothing_to_judge("record")
    extra = sorted({key for record in records for key in record} - {*FORM, EXTRAS})
    return Judgement(not extra, f"no key but the published ones and {EXTRAS}", extra)


def distinct_uuids(records: Iterable[Record]) -> Judgement:
    uuids = [record.get("uuid") for record in records]
    if not uuids:
        return nothing_to_judge("record")
    odd = [one for one in uuids if not isinstance(one, str) or not _UUID.fullmatch(one)]
    twice = sorted({str(one) for one in uuids if uuids.count(one) > 1})
    return Judgement(not odd and not twice, f"{len(uuids)} different UUIDs", odd or twice or f"{len(uuids)} UUIDs")


def one_form_of_time(records: Iterable[Record]) -> Judgement:
    """UTC to the microsecond, written in one and the same way in all of these records."""
    times = [record.get("captured_at") for record in records]
    if not times:
        return nothing_to_judge("record")
    odd = [time for time in times if not isinstance(time, str) or not _TIME.fullmatch(time)]
    offsets = {str(time)[26:] for time in times}
    ok = not odd and len(offsets) == 1
    return Judgement(ok, "YYYY-MM-DDTHH:MM:SS.ssssss+00:00, one offset form", odd or sorted(offsets))


def rising(records: Sequence[Record]) -> Judgement:
    """These records, given in the order in which they must sort, do sort so, no two at the same time."""
    times = [str(record.get("captured_at")) for record in records]
    if len(times) < 2:
        return nothing_to_judge("second record")
    falls = [list(pair) for pair in pairwise(times) if pair[0] >= pair[1]]
    return Judgement(not falls, "each later than the one before", falls[:2] or "each later")


def tells_request(record: Record, messages: Sequence[JSON]) -> Judgement:
    """All but its last message are those of the client's request."""
    difference = tree_difference(messages, _messages(record)[:-1])
    return Judgement(difference is None, "the client's messages", str(difference or "the same"), name(record))


def tells_answer(record: Record, row: Row) -> Judgement:
    """Its last message is the assistant turn that the engine reported: text and calls, each letter of them."""
    due, where = spoken([row["message"]]), f"{name(record)} messages, the last"
    last: JSON = next(reversed(_messages(record)), None)
    try:
        seen = spoken([last])
    except (KeyError, TypeError, AttributeError):  # no message of the chat form
        return Judgement(False, due, last, where)
    return Judgement(last["role"] == "assistant" and due == seen, due, seen, where)


def finish_reported(row: Row) -> JSON:
    """The finish reason in the engine's answer: its chat endpoint calls a stop at tool calls by another name.

    Not for a tool choice that names its function, where the stop stays a stop.
    """
    stopped_at_calls = row["finish_reason"] == "stop" and row["message"].get("tool_calls")
    return "tool_calls" if stopped_at_calls else row["finish_reason"]


def tells_tools(record: Record, offered: Sequence[Mapping[str, JSON]]) -> Judgement:
    """Each offered function in order, key order of its schema included. What was not given may be empty or absent."""
    due = [
        {
            "id": one["function"]["name"],
            "description": one["function"].get("description") or "",
            "schema": one["function"].get("parameters") or {},
        }
        for one in offered
    ]
    seen = [
        {
            "id": one.get("id"),
            "description": one.get("description") or "",
            "schema": (one.get("inputSchema") or {}).get("jsonSchema") or {},
        }
        for one in record.get("tools") or []
    ]
    difference = tree_difference(due, seen, key_order=True)
    return Judgement(difference is None, due, seen, f"{name(record)} tools: {difference}")


def tells_sampling(record: Record, sent: Mapping[str, JSON]) -> Judgement:
    """``sampling`` has what stands in the body that the engine got, and nothing that does not."""
    told = (record.get(EXTRAS) or {}).get("sampling") or {}
    due = {key: sent[key] for key in SAMPLING if sent.get(key) is not None}
    seen = {key: told[key] for key in SAMPLING if told.get(key) is not None}
    return Judgement(tree_difference(due, seen) is None, due, seen, f"{name(record)} {EXTRAS}.sampling")


def same_but_for_ids_and_times(one: Record, other: Record) -> Judgement:
    difference = tree_difference(_timeless(one), _timeless(other))
    return Judgement(difference is None, "no difference", str(difference or "no difference"), name(other))


def _timeless(record: Record) -> Record:
    """A record without what no two calls have in common; calls are named by their place."""
    kept = {key: value for key, value in record.items() if key not in ("uuid", "captured_at", "request_id")}
    if isinstance(record.get(EXTRAS), Mapping):
        kept[EXTRAS] = {key: value for key, value in record[EXTRAS].items() if key != "started_at"}
    kept["messages"] = [_with_numbered_calls(message) for message in _messages(record)]
    return kept


def _with_numbered_calls(message: JSON) -> JSON:
    calls = [{**call, "id": place} for place, call in enumerate(message.get("tool_calls") or [])]
    return {**message, "tool_calls": calls}


def _messages(record: Record) -> list[JSON]:
    found = record.get("messages")
    return found if isinstance(found, list) else []
