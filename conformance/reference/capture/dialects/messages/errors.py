"""How a failed call looks to a client of the Messages API, and to Claude Code in particular.

Claude Code compacts its history on one sentence only, and lowers ``max_tokens`` on another; an engine's own words for
the same end the run.
"""

import re

from conformance.reference.capture.dialects.messages.stream import event
from conformance.reference.capture.errors import OVERFLOW, Refusal
from conformance.reference.capture.jsontext import JSONObject

KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}

_LIMIT = re.compile(r"(?:maximum context length is|context length is only) (\d+)")
_PROMPT = re.compile(r"(?:contains|You passed|has)(?: at least)? (\d+) input tokens|\b(\d+) in the messages")
_WANTED = re.compile(r"requested (\d+) output tokens|too large: (\d+)\b")


def error_of(refusal: Refusal) -> JSONObject:
    """The error object."""
    return {"type": "error", "error": {"type": _kind(refusal.status), "message": _message(refusal)}}


def error_event(refusal: Refusal) -> bytes:
    """The error as the last event of a stream."""
    return event(error_of(refusal))


def _kind(status: int) -> str:
    fallback = "api_error" if status >= 500 else "invalid_request_error"
    return KINDS.get(status, fallback)


def _message(refusal: Refusal) -> str:
    told = str(refusal.error["message"])
    limit, prompt, wanted = (_number(pattern, told) for pattern in (_LIMIT, _PROMPT, _WANTED))
    if limit and prompt and wanted and prompt < limit:
        sum_told = f"{prompt} + {wanted} > {limit}, decrease input length or `max_tokens` and try again"
        return f"input length and `max_tokens` exceed context limit: {sum_told}"
    if refusal.error["code"] != OVERFLOW:
        return told
    if limit and prompt:
        return f"prompt is too long: {prompt} tokens > {limit} maximum"
    return f"prompt is too long: {told}"


def _number(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.search(text)
    return int(next(group for group in found.groups() if group)) if found else None
