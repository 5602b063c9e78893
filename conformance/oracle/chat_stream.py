"""The grammar of a streamed chat completion, rule by rule.

Every rule stands alone, so that one fault of a stream is one finding. None raises, whatever a body holds.
"""

import json
from collections.abc import Callable, Iterable
from typing import TypeVar

from conformance.oracle.chat_answers import (
    DONE,
    Object,
    by_index,
    call_pieces,
    choices_of,
    chunks,
    delta_of,
    function_of,
    json_object,
)
from conformance.oracle.judgement import Judgement
from conformance.oracle.sse import Stream, parse

_T = TypeVar("_T")

EVENTS_TYPE = "text/event-stream"
WHERE = "chat stream"


def framing(content_type: str | None, body: str) -> Judgement:
    """Of the type of event streams; comments aside nothing but data, each a JSON object or ``[DONE]``, all closed."""
    kind = (content_type or "").partition(";")[0].strip().lower()
    if kind != EVENTS_TYPE:
        return Judgement(False, EVENTS_TYPE, content_type, WHERE)
    stream = parse(body)
    for rule, seen in (
        ("at least one event", None if stream.events else body[:80]),
        ("a blank line behind the last event", stream.rest[:80] or None),
        ("no lines but data and comments", _odd_line(body)),
        ("every event is a JSON object or [DONE]", _not_json(stream)),
    ):
        if seen is not None:
            return Judgement(False, rule, seen, WHERE)
    return Judgement(True, "an event stream of JSON objects", f"{len(stream.events)} events", WHERE)


def ends_once(body: str) -> Judgement:
    """Exactly one ``[DONE]``, as the last event."""
    events = parse(body).events
    places = [place for place, event in enumerate(events) if event.data == DONE]
    ok = bool(events) and places == [len(events) - 1]
    return Judgement(ok, "one [DONE], last", f"[DONE] at {places} of {len(events)} events", WHERE)


def one_head(body: str, *keys: str) -> Judgement:
    """These keys, ``id`` at least, have one value over all chunks that carry choices or usage."""
    objects = [one for one in chunks(body)[1] if "error" not in one]
    for key in keys or ("id",):
        values = list(dict.fromkeys(str(one.get(key)) for one in objects))
        if len(values) != 1 or objects[0].get(key) is None:
            return Judgement(False, f"one {key} in all chunks", values[:3], WHERE)
    return Judgement(True, "one id in all chunks", "one", WHERE)


def role_once(body: str) -> Judgement:
    """Each choice opens with its role, and does not repeat it: clients append what they get."""
    for index, choices in by_index(body).items():
        places = [place for place, choice in enumerate(choices) if delta_of(choice).get("role")]
        if places != [0]:
            return Judgement(False, "the role in the first delta and nowhere else", places, _of(index))
    return Judgement(True, "each role once, first", "each role once", WHERE)


def one_finish(body: str) -> Judgement:
    """Each choice has exactly one finish reason; a stream without any choice has none."""
    found = by_index(body)
    for index, choices in found.items():
        reasons = [choice["finish_reason"] for choice in choices if choice.get("finish_reason") is not None]
        if len(reasons) != 1 or not isinstance(reasons[0], str):
            return Judgement(False, "one finish reason", reasons, _of(index))
    return Judgement(bool(found), "one finish reason a choice", f"{len(found)} choices", WHERE)


def nothing_behind_finish(body: str) -> Judgement:
    """No text, reasoning or call in a chunk behind the one with the finish reason."""
    for index, choices in by_index(body).items():
        finished = False
        for choice in choices:
            late = {key: value for key, value in delta_of(choice).items() if value and key != "role"}
            if finished and late:
                return Judgement(False, "nothing behind the finish reason", late, _of(index))
            finished = finished or choice.get("finish_reason") is not None
    return Judgement(True, "nothing behind the finish reason", "nothing", WHERE)


def calls_numbered(body: str) -> Judgement:
    """Tool calls have indexes that begin at 0 and rise by one as they open; pieces name the call they belong to."""
    for index, choices in by_index(body).items():
        opened = 0
        for call in call_pieces(choices):
            number = call.get("index")
            if type(number) is not int or not 0 <= number <= opened:
                return Judgement(False, f"an index up to {opened}", call, _of(index))
            opened = max(opened, number + 1)
    return Judgement(True, "calls numbered from 0", "calls numbered from 0", WHERE)


def calls_opened_once(body: str) -> Judgement:
    """The first piece of a call has its id and name, and no later piece repeats either."""
    for index, choices in by_index(body).items():
        opened: set[object] = set()
        for call in call_pieces(choices):
            number = str(call.get("index"))
            given = [bool(call.get("id")), bool(function_of(call).get("name"))]
            if given != ([False, False] if number in opened else [True, True]):
                when = "no second id or name" if number in opened else "id and name in the first piece"
                return Judgement(False, when, _brief(call), _of(index))
            opened.add(number)
    return Judgement(True, "id and name once a call", "once", WHERE)


def usage_once(body: str) -> Judgement:
    """One chunk tells the usage: the one without a choice, or the last with one."""
    told = [one["usage"] for one in chunks(body)[1] if one.get("usage") is not None]
    ok = len(told) == 1 and isinstance(told[0], dict)
    return Judgement(ok, "usage told once", told[:3], WHERE)


def choice_everywhere(body: str) -> Judgement:
    """Every chunk has a choice, as it has for clients that did not ask for usage."""
    for one in chunks(body)[1]:
        if "error" not in one and not choices_of(one):
            return Judgement(False, "a choice in every chunk", _brief(one), WHERE)
    return Judgement(True, "a choice in every chunk", "a choice in every chunk", WHERE)


def no_error(body: str) -> Judgement:
    """No error object: a stream that carries one did not end well."""
    found = _first(one["error"] for one in chunks(body)[1] if "error" in one)
    return Judgement(found is None, "no error object", found, WHERE)


def grammar(body: str) -> Judgement:
    """A complete stream, as vLLM and the official clients know it: all rules above, but those about usage.

    ``object`` is ``chat.completion.chunk``; only usage stands behind the finish reason.
    """
    objects = chunks(body)[1]
    rules: tuple[Callable[[str], Judgement], ...] = (
        lambda text: framing(EVENTS_TYPE, text),
        ends_once,
        no_error,
        lambda text: one_head(text, "id", "model", "created", "object"),
        role_once,
        one_finish,
        nothing_behind_finish,
        calls_numbered,
        calls_opened_once,
    )
    for rule in rules:
        judged = rule(body)
        if not judged:
            return judged
    kind = objects[0]["object"]
    if kind != "chat.completion.chunk":
        return Judgement(False, "object chat.completion.chunk", kind, WHERE)
    return Judgement(True, "a well-formed chat stream", f"{len(objects)} chunks", WHERE)


def looks_complete(body: str) -> bool:
    """Whether a client would take the stream for a finished answer: a finish reason or ``[DONE]`` without an error."""
    stream, objects = chunks(body)
    if any("error" in one for one in objects):
        return False
    finished = any(choice.get("finish_reason") for one in objects for choice in choices_of(one))
    return finished or any(event.data == DONE for event in stream.events)


def error_in_band(body: str) -> Object | None:
    """The error object a stream carries, if it carries one."""
    for one in chunks(body)[1]:
        if isinstance(one.get("error"), dict):
            error: Object = one["error"]
            return error
    return None


def _odd_line(body: str) -> str | None:
    lines = body.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff").split("\n")
    return _first(line[:80] for line in lines if line and not line.startswith((":", "data:")))


def _not_json(stream: Stream) -> str | None:
    return _first(event.data[:80] for event in stream.events if event.data != DONE and json_object(event.data) is None)


def _of(index: int) -> str:
    return f"{WHERE}, choice {index}"


def _brief(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)[:200]


def _first(values: Iterable[_T | None]) -> _T | None:
    return next((value for value in values if value is not None), None)
