"""How a failed call looks to a client of the chat dialect."""

import re
from urllib.parse import urlsplit

from conformance.reference.capture.config import Route
from conformance.reference.capture.jsontext import JSON, JSONObject, read_engine

OVERFLOW = "context_length_exceeded"

_OVERFLOW_TEXT = re.compile(
    r"maximum context length|context length is only|context window|reduce the length of the input", re.IGNORECASE
)
_OUTPUT_CAP_TEXT = re.compile(
    r"max_completion_tokens' is too large|cannot be greater than max_model_len", re.IGNORECASE
)


class Refusal(Exception):
    """Raised when a call gets an error for an answer; what the client is told of it."""

    def __init__(
        self,
        status: int,
        code: JSON,
        message: str,
        *,
        kind: str = "invalid_request_error",
        param: JSON = None,
        retry_after: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.error: JSONObject = {"message": message, "type": kind, "param": param, "code": code}
        self.retry_after = retry_after

    @property
    def body(self) -> JSONObject:
        """The dialect's error object."""
        return {"error": self.error}


def engine_unreachable() -> Refusal:
    """The engine could not be reached, or went away before its answer was complete."""
    message = "the engine cannot be reached or broke off its answer; nothing was recorded, send the call again"
    return Refusal(502, "upstream_unreachable", message, kind="upstream_error")


def engine_too_slow(timeout_secs: float | None) -> Refusal:
    """The engine did not answer within the route's time-out."""
    return Refusal(504, "upstream_timeout", f"the engine gave no answer within {timeout_secs} s", kind="upstream_error")


def engine_garbage(what: str) -> Refusal:
    """The engine answered something that is not a chat completion."""
    return Refusal(502, "upstream_invalid_response", f"the engine's answer is unusable: {what}", kind="upstream_error")


def record_lost() -> Refusal:
    """Neither the record nor the mark of its loss could be written, so the answer must not be used."""
    message = "the call could not be recorded, nor its loss marked; the answer is withheld"
    return Refusal(500, "record_lost", message, kind="server_error")


def from_engine(route: Route, status: int, body: bytes, retry_after: str | None) -> Refusal:
    """An error status of the engine in the client's dialect: status and Retry-After kept, addresses removed."""
    if not 400 <= status < 600:
        return engine_garbage(f"unexpected status {status}")
    error = {key: _told(value, route) for key, value in _error_object(body).items()}
    message = _scrubbed(error.get("message"), route) or f"the engine returned HTTP {status}"
    code = error.get("code", status)
    if _is_overflow(status, message, error):
        code = OVERFLOW
    named = error.get("type")
    kind = named if isinstance(named, str) and named else "upstream_error"
    return Refusal(status, code, message, kind=kind, param=error.get("param"), retry_after=retry_after)


def _is_overflow(status: int, message: str, error: JSONObject) -> bool:
    if error.get("code") == OVERFLOW:
        return True
    if error.get("param") in ("max_tokens", "max_completion_tokens") or _OUTPUT_CAP_TEXT.search(message):
        # Too much output was asked for: shortening the history would not help.
        return False
    return status in (400, 413) and _OVERFLOW_TEXT.search(message) is not None


def _error_object(body: bytes) -> JSONObject:
    """The error of any of the shapes engines use: nested, flat, a bare string, ``detail``, or text."""
    try:
        parsed = read_engine(body)
    except ValueError:
        return {"message": body.decode("utf-8", "replace").strip()[:2000]}
    if not isinstance(parsed, dict):
        return {"message": str(parsed)[:2000]}
    inner = parsed.get("error", parsed.get("detail", parsed))
    if isinstance(inner, dict):
        return inner
    return {"message": inner if isinstance(inner, str) else str(inner)[:2000]}


def _told(value: JSON, route: Route) -> JSON:
    """A field of an engine's error as a client may see it; what is nested in one tells nobody what to do."""
    if isinstance(value, str):
        return _scrubbed(value, route)
    return value if isinstance(value, int | float) else None


def _scrubbed(told: JSON, route: Route) -> str:
    """A message without the engine's address and the route's credential."""
    message = told if isinstance(told, str) else ""
    address = urlsplit(route.base_url)
    for secret in (route.base_url, address.netloc, address.hostname, route.api_key):
        if secret:
            message = message.replace(secret, "<engine>")
    return message
