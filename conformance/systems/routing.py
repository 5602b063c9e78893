"""The routes that the scenarios call, the proxy's configuration that makes them, and the engine tenants behind them."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.systems.profile import Profile
from conformance.systems.tables import ProfileError

JSON = Any

ENGINE = "vllm"
SERVED = "served-policy"
"""The name under which the engine serves its one model; clients never see it."""

SMALL = "served-small"
"""A second model, where an engine serves two."""

SHORT_LENGTH = 2048
MIDDLE_LENGTH = 40960
LONG_LENGTH = 131072
UPSTREAM_KEY = "engine-key-7c41"
UPSTREAM_KEY_VARIABLE = "TRACKGAUGE_ENGINE_KEY"
CLOSED_ADDRESS = "http://127.0.0.1:1"
"""Port 1 is reserved for a service that no machine runs any more: a connection is refused at once."""

INJECTION_KEYS: Mapping[str, JSON] = {"token_injection": True, "tool_parser": "hermes", "reasoning_parser": "qwen3"}
"""The parsers are those of the tenants that these routes lead to."""

INJECTION_CAPABILITIES = {"completions": "continuity-completions", "prefix_chat": "continuity-prefix-chat"}

DEFAULTS: Mapping[str, JSON] = {"format": "openai", "api_key": "none-needed", "timeout_secs": 120}
"""What the shared configuration leaves to ``defaults``, so that one is in use.

The time-out is longer than any scenario: a call that a gate holds on a slow machine is not given up by the proxy.
"""


@dataclass(frozen=True, slots=True)
class Route:
    """One entry of ``routes``: the model name that clients ask for, and what it stands for.

    ``timeout_secs`` and ``ping_secs`` are seconds; ``injection`` is how chains are continued, and without
    ``names_parsers`` the route does not say how answers are read; None leaves a key out.
    """

    name: str
    tenant: str = "main"
    target: str = SERVED
    capture: bool = True
    extra_body: Mapping[str, JSON] = field(default_factory=dict)
    extra_headers: Mapping[str, str] = field(default_factory=dict)
    pins: Mapping[str, JSON] = field(default_factory=dict)
    timeout_secs: float | None = None
    ping_secs: float | None = None
    api_key: str | None = None
    base_url: str | None = None
    injection: str | None = None
    names_parsers: bool = True

    def entry(self, engine_url: str) -> dict[str, JSON]:
        """In the contract's form, without what is not set."""
        keys = {
            "type": "model",
            "target": self.target,
            "base_url": self.base_url or f"{engine_url}/t/{self.tenant}/v1",
            "api_key": self.api_key,
            "token_capture_engine": ENGINE if self.capture else None,
            "extra_body": dict(self.extra_body) or None,
            "extra_headers": dict(self.extra_headers) or None,
            "pins": dict(self.pins) or None,
            "timeout_secs": self.timeout_secs,
            "ping_secs": self.ping_secs,
            **({} if self.injection is None else {**INJECTION_KEYS, "injection_transport": self.injection}),
        }
        if not self.names_parsers:
            keys |= dict.fromkeys(("tool_parser", "reasoning_parser"))
        return {key: value for key, value in keys.items() if value is not None}


SHARED_ROUTES = (
    Route("policy-model"),
    Route("policy-twin"),
    Route("uncaptured", capture=False),
    Route("pinned", pins={"temperature": 1.0, "top_p": 1.0, "chat_template_kwargs": {"enable_thinking": True}}),
    Route(
        "filled",
        extra_body={"seed": 7, "chat_template_kwargs": {"enable_thinking": True}},
        extra_headers={"X-Cluster": "blue"},
    ),
    Route("asks-top", extra_body={"top_logprobs": 5}),
    Route("short-context", tenant="short"),
    Route("impatient", timeout_secs=0.5),
    Route("pinging", ping_secs=0.2),
    Route("dead", base_url=f"{CLOSED_ADDRESS}/v1"),
    Route("old", tenant="old"),
    Route("precise", tenant="precise"),
    Route("crowded", tenant="crowded"),
    Route("unlisted", tenant="unlisted"),
    Route("keyed", tenant="keyed", api_key=f"${{{UPSTREAM_KEY_VARIABLE}}}"),
    Route("spoken", tenant="spoken"),
    Route("spoken-small", tenant="spoken", target=SMALL),
    Route("continued", tenant="continued", injection="completions", extra_body={"top_k": 40, "min_p": 0.05}),
    Route("continued-pinned", tenant="continued", injection="completions", pins={"temperature": 0.75, "top_p": 0.9}),
    Route("continued-unread", tenant="continued", injection="completions", names_parsers=False),
    Route("continued-misread", tenant="spoken", injection="completions"),
    Route("continued-short", tenant="short", injection="completions"),
    Route("spliced", tenant="spliced", injection="prefix_chat", extra_body={"temperature": 1.0, "top_p": 1.0}),
    Route("spliced-in-vain", tenant="continued", injection="prefix_chat"),
)


def tenants(profile: Profile | None = None) -> dict[str, dict[str, JSON]]:
    """The engine tenants that the shared routes need: name → body of their registration.

    For a proxy that hands on the client's model name, the engine serves its models under these names as well.
    """
    found = _tenants()
    if profile is not None and profile.routing is not None and not profile.routing.aliases:
        for name, body in found.items():
            body["models"] = [*body["models"], *(each.name for each in SHARED_ROUTES if each.tenant == name)]
    return found


def _tenants() -> dict[str, dict[str, JSON]]:
    common = {"models": [SERVED], "max_model_len": LONG_LENGTH, "tool_parser": "hermes", "reasoning_parser": "qwen3"}
    return {
        "main": {**common},
        "short": {**common, "max_model_len": SHORT_LENGTH},
        "old": {**common, "profile": "0.11.2"},
        "precise": {**common, "logprob_bits": 64},
        "crowded": {
            **common,
            "models": ["big-policy", SERVED, "small-policy"],
            "lengths": {"big-policy": 262144, SERVED: MIDDLE_LENGTH, "small-policy": 512},
        },
        "unlisted": {**common, "max_model_len": MIDDLE_LENGTH, "lists_models": False},
        "keyed": {**common, "api_key": UPSTREAM_KEY},
        "continued": {**common},
        "spliced": {**common, "profile": "nemo-rl"},
        "spoken": {
            **common,
            "models": [SERVED, SMALL],
            "reasoning_parser": None,
            "template": {"strip_history_reasoning": False},
        },
    }


def environment() -> dict[str, str]:
    """What the shared configuration takes from the proxy's environment."""
    return {UPSTREAM_KEY_VARIABLE: UPSTREAM_KEY}


def route(name: str, routes: Iterable[Route] = SHARED_ROUTES) -> Route:
    """Raises KeyError."""
    return {each.name: each for each in routes}[name]


def supported(routes: Iterable[Route], profile: Profile) -> tuple[Route, ...]:
    """Without those that need an optional key of the contract, or a place, which the system does not have."""
    known: Collection[str] = profile.routing.optional_keys if profile.routing is not None else ()
    names: Collection[str] = profile.routing.routes if profile.routing is not None else ()
    return tuple(
        each
        for each in routes
        if (not names or each.name in names)
        and (not each.pins or "pins" in profile.capabilities)
        and (each.ping_secs is None or "ping_secs" in known)
        and (each.injection is None or INJECTION_CAPABILITIES[each.injection] in profile.capabilities)
    )


def configuration(routes: Iterable[Route], engine_url: str, defaults: Mapping[str, JSON] = DEFAULTS) -> str:
    """The contract's YAML."""
    import yaml

    entries = {each.name: each.entry(engine_url) for each in routes}
    return yaml.safe_dump({"defaults": dict(defaults), "routes": entries}, sort_keys=False, allow_unicode=True)


def configuration_for(profile: Profile, routes: Iterable[Route], engine_url: str) -> str:
    """In the form the profile asks for. Raises :class:`ProfileError` for a template that does not render."""
    fitting = supported(routes, profile)
    if profile.routing is not None and profile.routing.form == "none":
        return ""
    if profile.routing is None or profile.routing.template is None:
        return configuration(fitting, engine_url)
    return _rendered(profile.routing.template, fitting, engine_url)


def _rendered(template: Path, routes: tuple[Route, ...], engine_url: str) -> str:
    import jinja2

    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    try:
        entries = {each.name: each.entry(engine_url) for each in routes}
        return environment.from_string(template.read_text(encoding="utf-8")).render(
            routes=routes, entries=entries, engine=engine_url, defaults=DEFAULTS
        )
    except jinja2.TemplateError as error:
        raise ProfileError(template.name, "", f"does not render: {error}") from None
