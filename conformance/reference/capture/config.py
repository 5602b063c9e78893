"""The proxy's configuration: read, expanded and judged completely before any server library is imported."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

from conformance.reference.capture.config_file import ConfigError, expanded, load, shown
from conformance.reference.capture.config_values import JUDGES, demand, refuse_unknown
from conformance.reference.capture.jsontext import JSON, JSONObject

CAPTURE_KEYS = ("token_capture_engine", "token_injection", "injection_transport", "tool_parser", "reasoning_parser")
TARGET_KEYS = tuple(JUDGES)
ROUTE_KEYS = ("type", "target", *TARGET_KEYS, *CAPTURE_KEYS)
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

TRANSPORTS = ("completions", "prefix_chat")
TOOL_PARSERS = ("hermes",)
REASONING_PARSERS = ("qwen3",)


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


def read_routes(path: Path, *, capture: bool) -> dict[str, Route]:
    """The routes of a profile file by public model id. With ``capture`` off, capture keys are not looked at."""
    document = expanded(load(path))
    if not isinstance(document, dict):
        raise ConfigError(f"top level: got {shown(document)}; allowed: a mapping with defaults and routes")
    refuse_unknown("top level", document, ("defaults", "routes"))
    defaults = document.get("defaults") or {}
    demand("defaults", defaults, isinstance(defaults, dict), "a mapping")
    refuse_unknown("defaults", defaults, TARGET_KEYS)
    routes = document.get("routes")
    demand("routes", routes, isinstance(routes, dict) and bool(routes), "a mapping with at least one route")
    return {name: _route(name, given, defaults, capture) for name, given in dict(routes or {}).items()}


def _route(name: str, given: JSON, defaults: JSONObject, capture: bool) -> Route:
    where = f"routes.{name}"
    own = {"target": given} if isinstance(given, str) else given
    demand(where, own, isinstance(own, dict), "a mapping, or the name of the target model")
    refuse_unknown(where, own, ROUTE_KEYS)
    demand(f"{where}.type", own.get("type", "model"), own.get("type", "model") == "model", "model")
    target = own.get("target")
    inner = target if isinstance(target, dict) else {"model": target}
    refuse_unknown(f"{where}.target", inner, ("model", *TARGET_KEYS))
    model = inner.get("model")
    demand(f"{where}.target", model, isinstance(model, str) and bool(model.strip()), "the name of the served model")
    merged = {key: value for key, value in {**defaults, **own, **inner}.items() if key in TARGET_KEYS}
    captured = capture and _captures(where, own)
    checked = {key: JUDGES[key](f"{where}.{key}", value) for key, value in merged.items()}
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
        demand(f"{where}.token_capture_engine", engine, engine == "vllm", "vllm")
    injection = own.get("token_injection", False)
    demand(f"{where}.token_injection", injection, isinstance(injection, bool), "true or false")
    transport = own.get("injection_transport", "completions")
    demand(f"{where}.injection_transport", transport, transport in TRANSPORTS, " or ".join(TRANSPORTS))
    for key in ("tool_parser", "reasoning_parser"):
        demand(f"{where}.{key}", own.get(key, "-"), isinstance(own.get(key, "-"), str), "the name of a parser")
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
        demand(f"{where}.{key}", given, given is None or given in known, f"{', '.join(known)}, or none")
    return Injection(transport, own.get("tool_parser"), own.get("reasoning_parser"))


def _judge_fill(where: str, fill: JSONObject, captured: bool) -> None:
    asked = {"logprobs": True, "return_token_ids": True}
    for key, value in fill.items():
        if key in NEVER_FILLED or (captured and key in OWNED_KEYS and asked.get(key) is not value):
            raise ConfigError(f"{where}.extra_body.{key}: got {shown(value)}; allowed: not here, the proxy sets it")
    most = fill.get("top_logprobs", 0)
    whole = type(most) is int and most >= -1
    demand(f"{where}.extra_body.top_logprobs", most, whole or not captured, "a whole number")
