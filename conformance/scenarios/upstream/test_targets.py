"""What a route adds to its calls, what it takes out, and what of a client never goes along."""

from collections.abc import Mapping
from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.oracle import upstream
from conformance.oracle.judgement import Judgement
from conformance.scenarios.upstream.asking import Ask, Asked, ask_all
from conformance.systems.routing import route

JSON = Any

OWN_TEMPLATE = {"enable_thinking": False}
OWN: dict[str, JSON] = {"seed": 99, "chat_template_kwargs": OWN_TEMPLATE}
_OF_THE_CONNECTION = ("host", "connection", "content-type", "content-length", "accept", "accept-encoding")
"""Headers that every client of HTTP sends for itself, the proxy too."""

OTHER_SAMPLING: dict[str, JSON] = {"temperature": 0.2, "top_p": 0.5, "chat_template_kwargs": OWN_TEMPLATE}


@covers("UPS-019", "UPS-020", "UPS-021", "UPS-022", "UPS-023")
async def test_a_target_fills_and_pins_and_hides_the_client(scene: Scene, check: Check) -> None:
    fill, pins = route("filled").extra_body, route("pinned").pins
    asks = {
        "filled": Ask(model="filled"),
        "filled, streamed": Ask(model="filled", stream=True),
        "filled, no session": Ask(model="filled", session=False),
        "own": Ask(OWN, model="filled"),
        "own seed": Ask({"seed": 0}, model="filled"),
        "headers": Ask(headers=_headers(scene)),
        "headers, streamed": Ask(headers=_headers(scene), stream=True),
        "headers, no session": Ask(headers=_headers(scene), session=False),
        "headers, uncaptured": Ask(headers=_headers(scene), model="uncaptured"),
    }
    if "pins" in scene.proxy.capabilities:
        asks["pinned"] = Ask(OTHER_SAMPLING, model="pinned")
        asks["pinned, left out"] = Ask(model="pinned", stream=True)
    asked = await ask_all(scene, asks)
    if scene.takes(model="filled"):
        for label in (label for label in asked if label.startswith("filled")):
            check.that("UPS-019", _holds(asked[label], fill))
        check.that("UPS-019", _holds(asked["own seed"], {"chat_template_kwargs": fill["chat_template_kwargs"]}))
        check.that("UPS-020", _holds(asked["own"], OWN))
        check.that("UPS-020", _holds(asked["own seed"], {"seed": 0}))
        for label in (label for label in ("filled", "filled, streamed") if label in asked):
            check.that("UPS-023", _has_headers(asked[label], route("filled").extra_headers))
    for label in (label for label in asked if label.startswith("pinned")):
        check.that("UPS-021", _holds(asked[label], pins))
    for label in (label for label in asked if label.startswith("headers")):
        check.that("UPS-022", _hides_client(asked[label]))


def _headers(scene: Scene) -> list[tuple[str, str]]:
    """What clients and the proxies in front of them send along; each value is found nowhere else."""
    mark = f"of-the-client-{scene.run}"
    return [
        ("Authorization", f"Bearer sk-{mark}"),
        ("X-Request-Id", f"id-{mark}"),
        ("Cookie", f"crumb={mark}"),
        ("User-Agent", f"Harness/1 ({mark})"),
        ("OpenAI-Organization", f"org-{mark}"),
        ("X-Stainless-Retry-Count", f"0-{mark}"),
        ("X-Cluster", f"red-{mark}"),
        ("Traceparent", f"00-{mark}-01"),
        ("X-data-parallel-rank", f"7-{mark}"),
        ("X-Forwarded-For", f"10.0.0.9, {mark}"),
    ]


def _hides_client(asked: Asked) -> Judgement:
    """Neither a header as the client sent it, nor what is found in the client's headers alone."""
    if not asked.rows:
        return Judgement(False, "a call to the engine", asked.reply.status, asked.label)
    mine = {(name.lower(), value) for name, value in asked.reply.exchange.request.headers}
    theirs = {(name.lower(), value) for row in asked.rows for name, value in row["request"]["headers"]}
    both = sorted(mine & {pair for pair in theirs if pair[0] not in _OF_THE_CONNECTION})
    if both:
        return Judgement(False, "no header of the client's", both, asked.label)
    return upstream.carries_none_of(asked.rows, ["of-the-client-"], asked.label, bodies=False)


def _holds(asked: Asked, wanted: Mapping[str, JSON]) -> Judgement:
    """What reached the engine has these keys with these values; of an object, these keys at least."""
    for key, value in wanted.items():
        seen = asked.got.get(key, upstream.ABSENT)
        if isinstance(value, dict) and isinstance(seen, dict):
            seen = {inner: seen.get(inner, upstream.ABSENT) for inner in value}
        if type(seen) is not type(value) or seen != value:
            return Judgement(False, {key: value}, {key: seen}, asked.label)
    return Judgement(True, dict(wanted), "the same", asked.label)


def _has_headers(asked: Asked, wanted: Mapping[str, str]) -> Judgement:
    seen = {name.lower(): value for row in asked.rows for name, value in row["request"]["headers"]}
    found = {name: seen.get(name.lower()) for name in wanted}
    return Judgement(found == dict(wanted), dict(wanted), found, asked.label)
