"""Refusals in vLLM's own words, and the envelope they travel in."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import ErrorDetails

from fakes.vllm.profiles import Profile

MAX_SHOWN_INPUT = 200
MAX_SHOWN_ERRORS = 10
BRANCH_NAMES = frozenset({"str", "int", "float", "bool", "list", "dict", "none", "literal", "constrained-str"})

ENGINE_DEAD = "EngineCore encountered an issue. See stack trace (above) for the root cause."
OVERLOADED = (
    "The engine is currently busy and cannot accept new requests. Please try again later or on a different instance."
)


class Refusal(Exception):
    """Raised when a request is answered with an error before anything is generated; carries the whole answer."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(f"{status}: {body}")
        self.status = status
        self.body = body

    @property
    def message(self) -> str:
        """The sentence of the error, whatever its envelope."""
        error = self.body.get("error", self.body.get("detail")) if isinstance(self.body, Mapping) else None
        return str(error.get("message")) if isinstance(error, Mapping) else str(error)


def envelope(message: str, kind: str, param: str | None, status: int) -> dict[str, Any]:
    """vLLM's error body; ``code`` repeats the HTTP status."""
    return {"error": {"message": message, "type": kind, "param": param, "code": status}}


def refusal(message: str, *, kind: str = "BadRequestError", param: str | None = None, status: int = 400) -> Refusal:
    """A refusal in the usual envelope, its message as given."""
    return Refusal(status, envelope(message, kind, param, status))


def invalid(profile: Profile, message: str, *, param: str | None = None, value: object = None) -> Refusal:
    """A refused value. Since 0.14 the message ends by naming parameter and value."""
    extras = [f"parameter={param}"] if param is not None else []
    if value is not None:
        extras.append(f"value={value}")
    if extras and profile.error_suffix:
        message = f"{message} ({', '.join(extras)})"
    return refusal(message, param=param if profile.error_params else None)


def unknown_model(profile: Profile, model: object, served: Sequence[str]) -> Refusal:
    message = f"The model `{model}` does not exist."
    if profile.lists_aliases:
        message += f" Valid aliases: {', '.join(served)}."
    param = "model" if profile.error_params else None
    return refusal(message, kind="NotFoundError", param=param, status=404)


def unauthorized() -> Refusal:
    """A string where all other errors have an object."""
    return Refusal(401, {"error": "Unauthorized"})


def not_found() -> Refusal:
    return Refusal(404, {"detail": "Not Found"})


def unsupported_media_type() -> Refusal:
    message = "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed"
    return refusal(message, kind="Bad Request")


def validation(errors: Sequence[ErrorDetails | Mapping[str, Any]]) -> Refusal:
    """FastAPI's validation errors, reworded as vLLM does it: one line each, at most ten, inputs shortened."""
    shown = [_shown(error) for error in errors]
    label = "error" if len(errors) == 1 else "errors"
    lines = [f"{len(errors)} validation {label}:", *(f"  {error}" for error in shown[:MAX_SHOWN_ERRORS])]
    if len(errors) > MAX_SHOWN_ERRORS:
        lines.append(f"  ...and {len(errors) - MAX_SHOWN_ERRORS} more {label}")
    return refusal("\n".join(lines), kind="Bad Request", param=shown[0]["loc"])


def _shown(error: ErrorDetails | Mapping[str, Any]) -> dict[str, Any]:
    shown = {
        "type": error["type"],
        "loc": _path(("body", *error["loc"])),
        "msg": error["msg"],
        "input": _short(error["input"]),
    }
    context = error.get("ctx")
    return {**shown, "ctx": context} if context else shown


def _path(location: Sequence[int | str]) -> str:
    """Dotted path without the names of union branches."""
    parts = [str(part) for part in location]
    return ".".join(p for p in parts if p not in BRANCH_NAMES and not any(c in p for c in "[]{}()"))


def _short(value: object) -> object:
    if isinstance(value, list | tuple | dict):
        return f"<{type(value).__name__} of {len(value)} items>"
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= MAX_SHOWN_INPUT else f"{text[:MAX_SHOWN_INPUT]}...[truncated]"


def bad_json(position: int, reason: str) -> Refusal:
    """A body that is no JSON; ``position`` is the character where reading stopped."""
    details = {
        "type": "json_invalid",
        "loc": (position,),
        "msg": "JSON decode error",
        "input": {},
        "ctx": {"error": reason},
    }
    return validation([details])


def prompt_too_long(profile: Profile, prompt_tokens: int, limit: int, *, as_ids: bool, wanted: int | None) -> Refusal:
    """A prompt that does not fit, in the words of the version.

    From 0.16 on a text prompt is only counted up to one token beyond the limit.
    """
    shown = prompt_tokens if as_ids else min(prompt_tokens, limit + 1)
    start = f"This model's maximum context length is {limit} tokens."
    if profile.overlong == "messages":
        message = f"{start} However, your request has {prompt_tokens} input tokens. "
        message += "Please reduce the length of the input messages."
        return invalid(profile, message, param="input_tokens", value=prompt_tokens)
    if profile.overlong == "passed":
        return _passed(profile, shown, limit, wanted or 1)
    if profile.overlong == "requested" and wanted is not None:
        return requested_too_much(profile, shown, limit, wanted)
    least = "" if as_ids else "at least "
    message = (
        f"{start} However, your prompt contains {least}{shown} input tokens, which exceeds this limit even "
        "without any output tokens. Please reduce the length of the input prompt."
    )
    return invalid(profile, message, param="input_tokens", value=shown)


def _passed(profile: Profile, prompt_tokens: int, limit: int, wanted: int) -> Refusal:
    message = (
        f"You passed {prompt_tokens} input tokens and requested {wanted} output tokens. However, the model's "
        f"context length is only {limit} tokens, resulting in a maximum input length of {limit - wanted} tokens. "
        "Please reduce the length of the input prompt."
    )
    return invalid(profile, message, param="input_tokens", value=prompt_tokens)


def requested_too_much(profile: Profile, prompt_tokens: int, limit: int, wanted: int) -> Refusal:
    """Prompt and wanted output together do not fit, for versions that refuse instead of clamping."""
    if profile.overlong == "messages":
        message = (
            f"'max_tokens' or 'max_completion_tokens' is too large: {wanted}. This model's maximum context length is "
            f"{limit} tokens and your request has {prompt_tokens} input tokens ({wanted} > {limit} - {prompt_tokens})."
        )
        return invalid(profile, message, param="max_tokens", value=wanted)
    if profile.overlong == "passed":
        return _passed(profile, prompt_tokens, limit, wanted)
    message = (
        f"This model's maximum context length is {limit} tokens. However, you requested {wanted} output tokens "
        f"and your prompt contains at least {prompt_tokens} input tokens, for a total of at least "
        f"{prompt_tokens + wanted} tokens. Please reduce the length of the input prompt or the number of requested "
        "output tokens."
    )
    return invalid(profile, message, param="input_tokens", value=prompt_tokens)
