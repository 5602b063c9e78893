"""How a failed call has to look to a client of the chat dialect."""

import re
from typing import Any

from conformance.oracle.chat_answers import json_object
from conformance.oracle.chat_stream import error_in_band, looks_complete
from conformance.oracle.judgement import Judgement

OVERFLOW = "context_length_exceeded"


def error_of(body: str) -> dict[str, Any]:
    """The error object of a body; empty when it holds none."""
    found = (json_object(body) or {}).get("error")
    return found if isinstance(found, dict) else {}


def is_failure(status: int | None, where: str) -> Judgement:
    """An answer came, and its status says that the call failed."""
    return Judgement(status is not None and status >= 400, "a status of 400 or more", status, where)


def in_shape(content_type: str | None, body: str, where: str) -> Judgement:
    """A JSON object ``error`` with a ``message`` that says something."""
    message = error_of(body).get("message")
    ok = isinstance(message, str) and bool(message.strip())
    seen = body[:200] if ok or body else "an empty body"
    if ok and "json" not in (content_type or ""):
        return Judgement(False, "content type JSON", content_type, where)
    return Judgement(ok, "a JSON object error with a message", seen, where)


def never_complete(status: int | None, streamed: bool, body: str, where: str, *, whole: bool) -> Judgement:
    """A client cannot take it for a finished answer. ``whole``: the HTTP response came to its end."""
    if status is None or status >= 400 or (not streamed and not whole):
        return Judgement(True, "no complete answer", status, where)
    if streamed:
        return Judgement(not looks_complete(body), "an error or a cut stream", body[-200:], where)
    answer = json_object(body)
    ok = answer is None or not answer.get("choices")
    return Judgement(ok, "an error or a cut body", body[:200], where)


def failed_in_band(status: int | None, body: str, where: str) -> Judgement:
    """An error status, or an error object in a stream that does not pretend to have ended well."""
    if status is None or status >= 400:
        return Judgement(status is not None, "an error", status, where)
    error = error_in_band(body)
    ok = error is not None and bool(error.get("message"))
    return Judgement(ok, "an error event with a message", body[-200:], where)


def is_overflow(status: int | None, body: str, engine_words: str) -> Judgement:
    """What harnesses know an overflow by: 400, and the code or the engine's own words."""
    error = error_of(body)
    ok = status == 400 and (error.get("code") == OVERFLOW or engine_words in str(error.get("message")))
    return Judgement(ok, f"400 with {OVERFLOW} or: {engine_words}", {"status": status, "error": error})


def silent_on(secret: str, told: str, where: str) -> Judgement:
    """A text does not hold an address; a longer port number that begins alike is another address."""
    at = re.search(rf"{re.escape(secret)}(?!\d)", told)
    seen = "nothing of it" if at is None else told[max(0, at.start() - 60) : at.end() + 20]
    return Judgement(at is None, "no address of the engine", seen, where)


def told_as_error(status: int | None, content_type: str | None, body: str, where: str) -> Judgement:
    """An error status with the dialect's object; of a stream that had begun, an error event is one too."""
    if status == 200 and error_in_band(body) is not None:
        return failed_in_band(status, body, where)
    failed = is_failure(status, where)
    return in_shape(content_type, body, where) if failed else failed
