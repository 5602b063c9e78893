"""What each value of a profile has to be, key by key, and the one line that says so where it is not."""

import math
import re
from collections.abc import Callable
from urllib.parse import urlsplit

from conformance.reference.capture.config_file import ConfigError, FromEnvironment, shown
from conformance.reference.capture.jsontext import JSON, JSONObject

NUMBER_PINS = ("temperature", "top_p", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty")
WHOLE_PINS = ("top_k", "seed")
PIN_KEYS = (*NUMBER_PINS, *WHOLE_PINS, "chat_template_kwargs")
HOP_HEADERS = ("host", "content-length", "transfer-encoding", "connection", "content-type", "accept-encoding")


def demand(where: str, value: JSON, good: bool, allowed: str) -> None:
    """Raises ConfigError unless ``good``; ``where`` is the dotted path of the key."""
    if not good:
        raise ConfigError(f"{where}: got {shown(value)}; allowed: {allowed}")


def refuse_unknown(where: str, mapping: JSONObject, allowed: tuple[str, ...]) -> None:
    """Raises ConfigError that names every key of the mapping that is not allowed."""
    unknown = [key for key in mapping if key not in allowed]
    if unknown:
        raise ConfigError(f"{where}: got the unknown key {', '.join(unknown)}; allowed: {', '.join(allowed)}")


def _text(where: str, value: JSON) -> str:
    demand(where, value, isinstance(value, str) and bool(value.strip()), "a text that is not blank")
    return str(value)


def _api_key(where: str, value: JSON) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise ConfigError(f"{where}: got something else than text (not shown); allowed: a text of one line, in quotes")
    return str(value).strip()


def _chat_format(where: str, value: JSON) -> str:
    demand(where, value, value == "openai", "openai")
    return "openai"


def _address(where: str, value: JSON) -> str:
    allowed = "an address as http://host:port/v1"
    text = _text(where, value).rstrip("/").removesuffix("/chat/completions")
    try:
        parts = urlsplit(text)
        # A name that DNS cannot spell would only show at the first call.
        host = (parts.hostname or "").encode("idna")
        good = parts.scheme in ("http", "https") and bool(host) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    demand(where, value, good and not parts.query and not parts.fragment and not re.search(r"\s", text), allowed)
    return text


def _seconds(where: str, value: JSON) -> float:
    if isinstance(value, FromEnvironment):
        value = _number_of(value)
    good = type(value) in (int, float) and math.isfinite(value) and value > 0
    demand(where, value, good, "a number of seconds above 0, without quotes")
    return float(value)


def _number_of(text: str) -> JSON:
    """The number that a variable holds, or the text itself if it holds none."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return str(text)


def _pins(where: str, value: JSON) -> JSONObject:
    demand(where, value, isinstance(value, dict), "a mapping")
    refuse_unknown(where, value, PIN_KEYS)
    pins = {key: _number_of(pin) if isinstance(pin, FromEnvironment) else pin for key, pin in value.items()}
    for key, pin in pins.items():
        if key == "chat_template_kwargs":
            demand(f"{where}.{key}", pin, isinstance(pin, dict), "a mapping")
        elif key in WHOLE_PINS:
            demand(f"{where}.{key}", pin, type(pin) is int, "a whole number")
        else:
            demand(f"{where}.{key}", pin, type(pin) in (int, float) and math.isfinite(pin), "a number")
    return _json_object(where, pins)


def _json_object(where: str, value: JSON) -> JSONObject:
    demand(where, value, isinstance(value, dict), "a mapping")
    _demand_json(where, value)
    return dict(value)


def _demand_json(where: str, value: JSON) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            _demand_json(f"{where}.{key}", item)
    elif isinstance(value, list):
        for item in value:
            _demand_json(where, item)
    else:
        finite = not isinstance(value, float) or math.isfinite(value)
        demand(where, value, finite and isinstance(value, str | int | float | None), "values that JSON can hold")


def _header_map(where: str, value: JSON) -> dict[str, str]:
    demand(where, value, isinstance(value, dict), "a mapping of header names and texts")
    for name, text in value.items():
        token = re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) is not None and name.lower() not in HOP_HEADERS
        demand(f"{where}.{name}", name, token, "a header name, other than " + ", ".join(HOP_HEADERS))
        if not isinstance(text, str) or not text.isprintable():
            raise ConfigError(f"{where}.{name}: got something else than text (not shown); allowed: a text of one line")
    return {name: str(text) for name, text in value.items()}


JUDGES: dict[str, Callable[[str, JSON], JSON]] = {
    "base_url": _address,
    "api_key": _api_key,
    "format": _chat_format,
    "timeout_secs": _seconds,
    "ping_secs": _seconds,
    "pins": _pins,
    "extra_body": _json_object,
    "extra_headers": _header_map,
}
"""By key of a target: takes where it stands and its value; gives what is kept of it, or raises ConfigError."""
