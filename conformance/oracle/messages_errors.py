"""How a failed call has to look to a client of the Messages dialect, and to Claude Code in particular."""

import re

from conformance.oracle.chat_answers import json_object
from conformance.oracle.judgement import Judgement
from conformance.oracle.messages_stream import ends_in_error, looks_complete
from conformance.oracle.named_events import inner, text_in

TOO_LONG = "prompt is too long"
"""By these words alone Claude Code knows that it has to compact."""

NO_ROOM = re.compile(r"input length and `max_tokens` exceed context limit: (\d+) \+ (\d+) > (\d+)")
"""By these it knows how far it has to lower ``max_tokens``: prompt, wanted output, and the limit of both."""


def message_of(body: str) -> str:
    """What the error says; empty where there is none."""
    return text_in(inner(json_object(body) or {}, "error"), "message")


def in_shape(content_type: str | None, body: str, where: str) -> Judgement:
    """A JSON object of type ``error``, whose ``error`` has a ``type`` and a ``message`` that say something."""
    found = json_object(body) or {}
    error = inner(found, "error")
    for rule, ok in (
        ("a JSON object of type error", found.get("type") == "error"),
        ("an error with a type", bool(text_in(error, "type").strip())),
        ("an error with a message", bool(text_in(error, "message").strip())),
    ):
        if not ok:
            return Judgement(False, rule, body[:200] or "an empty body", where)
    if "json" not in (content_type or ""):
        return Judgement(False, "content type JSON", content_type, where)
    return Judgement(True, "an error of the dialect", body[:200], where)


def told_as_too_long(status: int | None, body: str, where: str) -> Judgement:
    """400, and a message that begins with the words."""
    said = message_of(body)
    return Judgement(status == 400 and said.startswith(TOO_LONG), f"400 {TOO_LONG}", f"{status} {said[:200]}", where)


def told_as_no_room(status: int | None, body: str, where: str) -> Judgement:
    """400, and the words with three numbers of which the first lies below the last."""
    said = message_of(body)
    found = NO_ROOM.search(said)
    ok = status == 400 and found is not None and int(found[1]) < int(found[3]) and not said.startswith(TOO_LONG)
    return Judgement(ok, f"400 {NO_ROOM.pattern}", f"{status} {said[:200]}", where)


def never_complete(status: int | None, streamed: bool, body: str, where: str, *, whole: bool) -> Judgement:
    """A client cannot take it for a finished answer. ``whole``: the HTTP response came to its end."""
    if status is None or status >= 400 or (not streamed and not whole):
        return Judgement(True, "no complete answer", status, where)
    if streamed:
        return Judgement(not looks_complete(body), "an error or a cut stream", body[-200:], where)
    told = (json_object(body) or {}).get("stop_reason")
    return Judgement(told is None, "an error or a cut body", body[:200], where)


def failed_in_band(status: int | None, body: str, where: str) -> Judgement:
    """An error status, or a stream whose last event is an error with type and message."""
    if status is None or status >= 400:
        return Judgement(status is not None, "an error", status, where)
    judged = ends_in_error(body)
    return Judgement(judged.ok, judged.expected, judged.seen, where)
