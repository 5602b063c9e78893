"""Routing profiles as a user writes them: one that is right, and what can be wrong with it."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.systems.routing import ENGINE, SERVED, UPSTREAM_KEY_VARIABLE

JSON = Any
Profile = dict[str, JSON]

OWN_KEY = "key-of-one-route"
NUMBERS: Profile = {
    "seed": 7,
    "temperature": 1.0,
    "top_p": 1,
    "top_k": 40,
    "repetition_penalty": 1.05,
    "min_p": 0.0,
    "chat_template_kwargs": {"budget": 3, "share": 2.0},
}
"""Whole numbers and floats, some of which are equal to one of the other kind."""


def right(engine_url: str) -> Profile:
    """Each of its routes shows one thing; the engine's address and key stand under ``defaults``."""
    captured = {"type": "model", "target": SERVED, "token_capture_engine": ENGINE}
    return {
        "defaults": {
            "format": "openai",
            "base_url": f"{engine_url}/t/main/v1",
            "api_key": f"${{{UPSTREAM_KEY_VARIABLE}}}",
            "timeout_secs": 30,
        },
        "routes": {
            "plain": {**captured},
            "elsewhere": {**captured, "base_url": f"{engine_url}/t/old/v1", "api_key": OWN_KEY},
            "slashed": {**captured, "base_url": f"{engine_url}/t/main/v1/"},
            "numbers": {**captured, "extra_body": NUMBERS},
        },
    }


def written(profile: JSON) -> str:
    import yaml

    return yaml.safe_dump(profile, sort_keys=False)


Words = list[str]


@dataclass(frozen=True, slots=True)
class Wrong:
    """A start that has to be refused. ``says`` are texts that the one line about it holds.

    ``written`` is the profile file's text; ``arguments`` makes the command line; ``log_dir`` is below the folder of
    the scenario.
    """

    name: str
    requirement: str
    written: str
    says: tuple[str, ...] = ()
    arguments: Callable[[Words], Words] = list
    log_dir: str = "records"


def wrong_ones(engine_url: str) -> list[Wrong]:
    """Each differs from the right profile in one thing."""

    def with_route(name: str, requirement: str, says: tuple[str, ...], **keys: JSON) -> Wrong:
        profile = right(engine_url)
        profile["routes"]["plain"].update(keys)
        return Wrong(name, requirement, written(profile), says)

    def with_top(name: str, requirement: str, says: tuple[str, ...], **keys: JSON) -> Wrong:
        return Wrong(name, requirement, written({**right(engine_url), **keys}), says)

    uncaptured = copy.deepcopy(right(engine_url))
    uncaptured["routes"]["plain"] = {"type": "model", "target": SERVED, "token_injection": True}
    two_unset = right(engine_url)
    two_unset["routes"]["plain"]["target"] = "${TRACKGAUGE_UNSET_ONE}"
    two_unset["routes"]["elsewhere"]["extra_headers"] = {"X-Cluster": "in ${TRACKGAUGE_UNSET_TWO}"}
    fine = written(right(engine_url))
    return [
        with_top("unknown key at the top", "CFG-002", ("captures", "routes", "defaults"), captures=True),
        with_route(
            "unknown key in a route",
            "CFG-002",
            ("token_captur_engine", "token_capture_engine"),
            token_captur_engine=ENGINE,
        ),
        with_route(
            "unsupported engine",
            "CFG-003",
            ("token_capture_engine", "sglang", ENGINE),
            token_capture_engine="sglang",
        ),
        with_route(
            "unknown transport",
            "CFG-004",
            ("injection_transport", "telepathy", "completions"),
            token_injection=True,
            injection_transport="telepathy",
        ),
        Wrong("injection without capture", "CFG-004", written(uncaptured), ("token_injection", "token_capture_engine")),
        with_top("no routes", "CFG-005", ("routes",), routes={}),
        with_route("unknown type", "CFG-005", ("type", "modle", "model"), type="modle"),
        with_route("text for a number", "CFG-006", ("timeout_secs", "soon"), timeout_secs="soon"),
        with_route("list for a mapping", "CFG-006", ("extra_body",), extra_body=["seed", 7]),
        Wrong("no such file", "CFG-007", fine, ("nowhere.yaml",), lambda words: _instead(words, "nowhere.yaml")),
        Wrong("a list", "CFG-007", "- routes\n- defaults\n"),
        Wrong("no YAML", "CFG-007", "routes: {plain: [\n"),
        with_route("unset variable", "CFG-008", ("TRACKGAUGE_UNSET",), target="${TRACKGAUGE_UNSET}"),
        Wrong("two unset variables", "CFG-009", written(two_unset), ("TRACKGAUGE_UNSET_ONE", "TRACKGAUGE_UNSET_TWO")),
        with_route("pin of no parameter", "CFG-022", ("warmth", "temperature"), pins={"warmth": 1.0}),
        Wrong("log directory is a file", "CFG-018", fine, ("occupied",), log_dir="occupied"),
        Wrong("log directory below a file", "CFG-018", fine, ("occupied",), log_dir="occupied/below/records"),
    ]


def _instead(words: Words, name: str) -> Words:
    """The command line with another profile file."""
    return [str(Path(word).with_name(name)) if word.endswith("routing.yaml") else word for word in words]
