"""How a failed call has to look to a client of the Responses dialect."""

from conformance.oracle import chat_errors
from conformance.oracle.chat_answers import json_object
from conformance.oracle.judgement import Judgement
from conformance.oracle.responses_stream import ends_in_error, looks_complete


def in_shape(content_type: str | None, body: str, where: str) -> Judgement:
    """A JSON object ``error`` whose ``message`` and ``type`` say something."""
    judged = chat_errors.in_shape(content_type, body, where)
    kind = chat_errors.error_of(body).get("type")
    if judged and not (isinstance(kind, str) and kind.strip()):
        return Judgement(False, "a type that is a text", kind, where)
    return judged


def never_complete(status: int | None, streamed: bool, body: str, where: str, *, whole: bool) -> Judgement:
    """A client cannot take it for a finished answer. ``whole``: the HTTP response came to its end."""
    if status is None or status >= 400 or (not streamed and not whole):
        return Judgement(True, "no complete answer", status, where)
    if streamed:
        return Judgement(not looks_complete(body), "a failure or a cut stream", body[-200:], where)
    told = (json_object(body) or {}).get("status")
    return Judgement(told not in ("completed", "incomplete"), "an error or a cut body", body[:200], where)


def failed_in_band(status: int | None, body: str, where: str) -> Judgement:
    """An error status, or a stream that ends in a failure with a message."""
    if status is None or status >= 400:
        return Judgement(status is not None, "an error", status, where)
    judged = ends_in_error(body)
    return Judgement(judged.ok, judged.expected, judged.seen, where)
