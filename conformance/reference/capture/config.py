"""The proxy's configuration: read, expanded and judged completely before any server library is imported."""

import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast
from urllib.parse import urlsplit

import yaml

from conformance.reference.capture.jsontext import JSON, JSONObject

CAPTURE_KEYS = ("token_capture_engine", "token_injection", "injection_transport", "tool_parser", "reasoning_parser")
TARGET_KEYS = ("base_url", "api_key", "format", "timeout_secs", "ping_secs", "pins", "extra_body", "extra_headers")
ROUTE_KEYS = ("type", "target", *TARGET_KEYS, *CAPTURE_KEYS)
NUMBER_PINS = ("temperature", "top_p", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty")
WHOLE_PINS = ("top_k", "seed")
PIN_KEYS = (*NUMBER_PINS, *WHOLE_PINS, "chat_template_kwargs")
OWNED_KEYS = (
    "logprobs",
    "return_token_ids",
    "include_reasoning",
    "n",
    "echo",
    "use_beam_search",
    "required_prefix_token_ids",
    "kv_transfer_params",
)
"""Keys of a captured call that only the proxy may set."""

NEVER_FILLED = ("model", "messages", "stream", "stream_options", "proxy_x_session_id")
HOP_HEADERS = ("host", "content-length", "transfer-encoding", "connection", "content-type", "accept-encoding")

TRANSPORTS = ("completions", "prefix_chat")
TOOL_PARSERS = ("hermes",)
REASONING_PARSERS = ("qwen3",)

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class ConfigError(Exception):
    """Raised when the configuration cannot be used. The message is one line: key, value, what is allowed."""


@dataclass(frozen=True)
class Injection:
    """How a route continues chains with their own tokens; the parsers are those of answers that are no chat answers."""

    transport: Literal["completions", "prefix_chat"]
    tool_parser: str | None = None
    reasoning_parser: str | None = None


@dataclass(frozen=True)
class Route:
    """One public model id and the engine behind it. Times are in seconds."""

    name: str
    target: str
    base_url: str
    captured: bool = False
    injection: Injection | None = None
    api_key: str | None = None
    timeout_secs: float | None = None
    ping_secs: float | None = None
    pins: JSONObject = field(default_factory=dict)
    extra_body: JSONObject = field(default_factory=dict)
    extra_headers: dict[str, str] = field(default_factory=dict)


class _FromEnvironment(str):
    """A value that was nothing but one variable: the only kind of text that may stand for a number."""


def read_routes(path: Path, *, capture: bool) -> dict[str, Route]:
    """The routes of a profile file by public model id. With ``capture`` off, capture keys are not looked at."""
    document = _expanded(_load(path))
    if not isinstance(document, dict):
        raise ConfigError(f"top level: got {_shown(document)}; allowed: a mapping with defaults and routes")
    _refuse_unknown("top level", document, ("defaults", "routes"))
    defaults = document.get("defaults") or {}
    _demand("defaults", defaults, isinstance(defaults, dict), "a mapping")
    _refuse_unknown("defaults", defaults, TARGET_KEYS)
    routes = document.get("routes")
    _demand("routes", routes, isinstance(routes, dict) and bool(routes), "a mapping with at least one route")
    return {name: _route(name, given, defaults, capture) for name, given in dict(routes or {}).items()}


def _route(name: str, given: JSON, defaults: JSONObject, capture: bool) -> Route:
    where = f"routes.{name}"
    own = {"target": given} if isinstance(given, str) else given
    _demand(where, own, isinstance(own, dict), "a mapping, or the name of the target model")
    _refuse_unknown(where, own, ROUTE_KEYS)
    _demand(f"{where}.type", own.get("type", "model"), own.get("type", "model") == "model", "model")
    target = own.get("target")
    inner = target if isinstance(target, dict) else {"model": target}
    _refuse_unknown(f"{where}.target", inner, ("model", *TARGET_KEYS))
    model = inner.get("model")
    _demand(f"{where}.target", model, isinstance(model, str) and bool(model.strip()), "the name of the served model")
    merged = {key: value for key, value in {**defaults, **own, **inner}.items() if key in TARGET_KEYS}
    captured = capture and _captures(where, own)
    checked = {key: _JUDGES[key](f"{where}.{key}", value) for key, value in merged.items()}
    if "base_url" not in checked:
        raise ConfigError(f"{where}.base_url: missing; allowed: the engine's address, as http://host:port/v1")
    checked.pop("format", None)
    _judge_fill(where, checked.get("extra_body", {}), captured)
    injection = _injection(where, own) if captured else None
    return Route(name=name, target=str(model), captured=captured, injection=injection, **checked)


def _captures(where: str, own: JSONObject) -> bool:
    """Whether a route captures, after judging all that it says about it."""
    engine = own.get("token_capture_engine")
    if "token_capture_engine" in own:
        _demand(f"{where}.token_capture_engine", engine, engine == "vllm", "vllm")
    injection = own.get("token_injection", False)
    _demand(f"{where}.token_injection", injection, isinstance(injection, bool), "true or false")
    transport = own.get("injection_transport", "completions")
    _demand(f"{where}.injection_transport", transport, transport in TRANSPORTS, " or ".join(TRANSPORTS))
    for key in ("tool_parser", "reasoning_parser"):
        _demand(f"{where}.{key}", own.get(key, "-"), isinstance(own.get(key, "-"), str), "the name of a parser")
    if injection and engine is None:
        raise ConfigError(f"{where}.token_injection: got True; allowed: only beside token_capture_engine")
    return engine is not None


def _injection(where: str, own: JSONObject) -> Injection | None:
    """How a captured route continues chains; its parsers are judged only where they are used."""
    if not own.get("token_injection", False):
        return None
    transport = cast('Literal["completions", "prefix_chat"]', own.get("injection_transport", "completions"))
    if transport == "prefix_chat":
        return Injection(transport)
    parsers = {"tool_parser": TOOL_PARSERS, "reasoning_parser": REASONING_PARSERS}
    for key, known in parsers.items():
        given = own.get(key)
        _demand(f"{where}.{key}", given, given is None or given in known, f"{', '.join(known)}, or none")
    return Injection(transport, own.get("tool_parser"), own.get("reasoning_parser"))


def _judge_fill(where: str, fill: JSONObject, captured: bool) -> None:
    asked = {"logprobs": True, "return_token_ids": True}
    for key, value in fill.items():
        if key in NEVER_FILLED or (captured and key in OWNED_KEYS and asked.get(key) is not value):
            raise ConfigError(f"{where}.extra_body.{key}: got {_shown(value)}; allowed: not here, the proxy sets it")
    most = fill.get("top_logprobs", 0)
    whole = type(most) is int and most >= -1
    _demand(f"{where}.extra_body.top_logprobs", most, whole or not captured, "a whole number")


def _text(where: str, value: JSON) -> str:
    _demand(where, value, isinstance(value, str) and bool(value.strip()), "a text that is not blank")
    return str(value)


def _api_key(where: str, value: JSON) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise ConfigError(f"{where}: got something else than text (not shown); allowed: a text of one line, in quotes")
    return str(value).strip()


def _chat_format(where: str, value: JSON) -> str:
    _demand(where, value, value == "openai", "openai")
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
    _demand(where, value, good and not parts.query and not parts.fragment and not re.search(r"\s", text), allowed)
    return text


def _seconds(where: str, value: JSON) -> float:
    if isinstance(value, _FromEnvironment):
        value = _number_of(value)
    good = type(value) in (int, float) and math.isfinite(value) and value > 0
    _demand(where, value, good, "a number of seconds above 0, without quotes")
    return float(value)


def _pins(where: str, value: JSON) -> JSONObject:
    _demand(where, value, isinstance(value, dict), "a mapping")
    _refuse_unknown(where, value, PIN_KEYS)
    pins = {key: _number_of(pin) if isinstance(pin, _FromEnvironment) else pin for key, pin in value.items()}
    for key, pin in pins.items():
        if key == "chat_template_kwargs":
            _demand(f"{where}.{key}", pin, isinstance(pin, dict), "a mapping")
        elif key in WHOLE_PINS:
            _demand(f"{where}.{key}", pin, type(pin) is int, "a whole number")
        else:
            _demand(f"{where}.{key}", pin, type(pin) in (int, float) and math.isfinite(pin), "a number")
    return _json_object(where, pins)


def _json_object(where: str, value: JSON) -> JSONObject:
    _demand(where, value, isinstance(value, dict), "a mapping")
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
        _demand(where, value, finite and isinstance(value, str | int | float | None), "values that JSON can hold")


def _header_map(where: str, value: JSON) -> dict[str, str]:
    _demand(where, value, isinstance(value, dict), "a mapping of header names and texts")
    for name, text in value.items():
        token = re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) is not None and name.lower() not in HOP_HEADERS
        _demand(f"{where}.{name}", name, token, "a header name, other than " + ", ".join(HOP_HEADERS))
        if not isinstance(text, str) or not text.isprintable():
            raise ConfigError(f"{where}.{name}: got something else than text (not shown); allowed: a text of one line")
    return {name: str(text) for name, text in value.items()}


_JUDGES: dict[str, Callable[[str, JSON], JSON]] = {
    "base_url": _address,
    "api_key": _api_key,
    "format": _chat_format,
    "timeout_secs": _seconds,
    "ping_secs": _seconds,
    "pins": _pins,
    "extra_body": _json_object,
    "extra_headers": _header_map,
}


def _demand(where: str, value: JSON, good: bool, allowed: str) -> None:
    if not good:
        raise ConfigError(f"{where}: got {_shown(value)}; allowed: {allowed}")


def _refuse_unknown(where: str, mapping: JSONObject, allowed: tuple[str, ...]) -> None:
    unknown = [key for key in mapping if key not in allowed]
    if unknown:
        raise ConfigError(f"{where}: got the unknown key {', '.join(unknown)}; allowed: {', '.join(allowed)}")


def _shown(value: JSON) -> str:
    text = repr(str(value) if isinstance(value, _FromEnvironment) else value)
    return text if len(text) <= 80 else text[:77] + "..."


def _number_of(text: str) -> JSON:
    """The number that a variable holds, or the text itself if it holds none."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return str(text)


def _expanded(document: JSON) -> JSON:
    """The document with ``${NAME}`` replaced in every text value; all unset names are reported together."""
    missing: set[str] = set()

    def value_of(match: re.Match[str]) -> str:
        if match[1] not in os.environ:
            missing.add(match[1])
        return os.environ.get(match[1], "")

    def walk(value: JSON) -> JSON:
        if isinstance(value, dict):
            return {key: walk(item) for key, item in value.items()}
        if isinstance(value, list):
            return [walk(item) for item in value]
        if not isinstance(value, str):
            return value
        text = _VARIABLE.sub(value_of, value)
        return _FromEnvironment(text) if _VARIABLE.fullmatch(value) else text

    try:
        expanded = walk(document)
    except RecursionError:
        raise ConfigError("the file: got values that contain themselves; allowed: plain values") from None
    if missing:
        names = ", ".join(sorted(missing))
        raise ConfigError(f"environment: {names} not set; allowed: set each of them, or write the value into the file")
    return expanded


class _Loader(yaml.SafeLoader):
    """YAML with text keys only, none twice, and floats such as 1e-3 read as numbers."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[JSON, JSON]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            line = key_node.start_mark.line + 1
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            if key_node.tag != "tag:yaml.org,2002:str":
                raise ConfigError(f"line {line}: got the key {_shown(key_node.value)}; allowed: text keys, quote it")
            if key_node.value in seen:
                raise ConfigError(f"line {line}: got the key {_shown(key_node.value)} twice; allowed: each key once")
            seen.add(key_node.value)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def _load(path: Path) -> JSON:
    try:
        return yaml.load(path.read_bytes(), Loader=_Loader)  # a SafeLoader
    except OSError as error:
        raise ConfigError(f"the file cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeError, ValueError, RecursionError) as error:
        raise ConfigError("the file is not YAML: " + " ".join(str(error).split())) from None
