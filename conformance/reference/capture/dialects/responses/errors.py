"""How a failed call looks to a client of the Responses dialect."""

from conformance.reference.capture.errors import OVERFLOW, Refusal
from conformance.reference.capture.jsontext import JSONObject

TOO_MANY = 429


def mistake(param: str, message: str) -> Refusal:
    """A request that cannot be read, or cannot be told to a chat engine."""
    return Refusal(400, "invalid_value", message, param=param)


def unsupported(param: str, message: str) -> Refusal:
    """A request for something that this proxy cannot do."""
    return Refusal(400, "unsupported_parameter", message, param=param)


def stream_error(refusal: Refusal) -> JSONObject:
    """The error inside a failed response, with a code that clients decide by: shorten, wait, give up or try again."""
    if refusal.error.get("code") == OVERFLOW:
        code = OVERFLOW
    elif refusal.status == TOO_MANY:
        code = "rate_limit_exceeded"
    else:
        code = "invalid_prompt" if refusal.status < 500 else "server_error"
    return {"code": code, "message": refusal.error["message"]}
