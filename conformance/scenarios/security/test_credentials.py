"""A client's keys stay with the proxy's caller, the engine's key with the engine."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.oracle import upstream
from conformance.oracle.judgement import Judgement
from conformance.scenarios.upstream.asking import Ask, ask_all
from conformance.systems.routing import UPSTREAM_KEY

JSON = Any
Headers = list[tuple[str, str]]

MARKER = "sycap-session:"


def _keys(scene: Scene) -> dict[str, Headers]:
    """The places where clients carry a key; each key is found nowhere else."""
    secret = f"s3cr3t-{scene.run}"
    return {
        "bearer": [("Authorization", f"Bearer sk-live-{secret}-a")],
        "basic": [("Authorization", f"Basic {secret}-b")],
        "x-api-key": [("x-api-key", f"sk-ant-{secret}-c")],
        "api-key": [("api-key", f"azure-{secret}-d")],
        "cookie": [("Cookie", f"token={secret}-e")],
        "proxy": [("Proxy-Authorization", f"Basic {secret}-f")],
        "two": [("Authorization", f"Bearer sk-live-{secret}-g"), ("x-api-key", f"sk-ant-{secret}-h")],
    }


@covers("SEC-006", "SEC-007", "SEC-008")
async def test_a_clients_key_goes_nowhere(scene: Scene, check: Check) -> None:
    keys = _keys(scene)
    marked = f"{MARKER}launch-{scene.run}"
    scene.sessions.append(f"launch-{scene.run}")
    asks = {label: Ask(headers=headers, stream=label == "cookie") for label, headers in keys.items()}
    asks |= {f"{label}, no session": Ask(headers=headers, session=False) for label, headers in keys.items()}
    asks |= {
        "uncaptured": Ask(headers=keys["bearer"], model="uncaptured", stream=True),
        "dead": Ask(headers=keys["bearer"], model="dead"),
        "unknown": Ask(headers=keys["bearer"], model="no-such-model"),
        "bad choice": Ask({"n": 2}, headers=keys["two"]),
        "invalid": Ask(headers=keys["two"], turn={"fault": {"name": "no_logprobs"}}),
        "broken": Ask(headers=keys["two"], turn={"fault": {"name": "cut_stream"}}),
        "marked": Ask(headers=[("Authorization", f"Bearer {marked}")], session=False),
        "marked, other id": Ask(headers=[("Authorization", f"Bearer {marked}")]),
        "marked, uncaptured": Ask(headers=[("x-api-key", marked)], session=False, model="uncaptured"),
    }
    asked = await ask_all(scene, asks)
    await _stumble(scene, keys["two"])
    secrets = [f"s3cr3t-{scene.run}", marked]
    if not asked["bearer"].rows:
        raise Inconclusive(f"the call did not reach the engine: {asked['bearer'].reply.status}")
    for one in asked.values():
        check.that("SEC-006", upstream.carries_none_of(one.rows, secrets, one.label))
    if "records-disk" in scene.proxy.capabilities:
        if not scene.proxy.record_files(scene.session("bearer")) or scene.proxy.log_dir is None:
            raise Inconclusive("nothing was recorded of a call with a key")
        check.that("SEC-007", _nowhere_below(scene.proxy.log_dir, secrets))
    printed = scene.proxy.process.started.output() if "config-cli" in scene.proxy.capabilities else ""
    lines = [line for line in printed.splitlines() if any(secret in line for secret in secrets)]
    check("SEC-008", not lines, expected="no line with a client's key", seen=lines[:2])


async def _stumble(scene: Scene, headers: Headers) -> None:
    """Requests that go wrong before anybody knows whose they are: what is said of those is easily too much."""
    await scene.client.post("/v1/chat/completions", b"{", headers=headers)
    await scene.client.post("/v1/chat/completions", {"model": "policy-model"}, headers=headers)
    for path in ("/v1/models", "/v1/nothing", "/v1/chat/completions", "/v1/sessions/none/completions"):
        await scene.client.get(path, headers=headers)


OTHER_FIELDS = ("type", "param", "code")


@covers("SEC-009")
async def test_the_engines_key_is_never_told(scene: Scene, check: Check) -> None:
    said = {"error": {"message": f"Incorrect API key provided: {UPSTREAM_KEY}.", "type": "auth", "code": 401}}
    echo = {"X-Echo": f"Bearer {UPSTREAM_KEY}"}
    errors: dict[str, dict[str, JSON]] = {
        "as an engine says it": {"status": 401, "raw": json.dumps(said)},
        "beside the message": {"status": 401, "raw": json.dumps({"error": dict.fromkeys(OTHER_FIELDS, UPSTREAM_KEY)})},
        "nested": {"status": 400, "raw": json.dumps({"error": {"message": "no", "param": {"key": UPSTREAM_KEY}}})},
        "flat": {"status": 403, "raw": json.dumps({"message": f"no use of {UPSTREAM_KEY}", "code": 403})},
        "detail": {"status": 422, "raw": json.dumps({"detail": [{"msg": "bad", "input": f"Bearer {UPSTREAM_KEY}"}]})},
        "text": {"status": 502, "raw": f"upstream said no to Authorization: Bearer {UPSTREAM_KEY}"},
        "header": {"status": 429, "raw": "slow down", "headers": {"Retry-After": "1", **echo}},
    }
    faults = {label: {"name": "http_error", "on_attempts": "all", **error} for label, error in errors.items()}
    asks = {
        f"{label}{how}": Ask(model="keyed", stream=bool(how), turn={"fault": fault})
        for label, fault in faults.items()
        for how in ("", ", streamed")
    }
    asks |= {"plain": Ask(model="keyed"), "streamed": Ask(model="keyed", stream=True)}
    asks |= {"no session": Ask(model="keyed", session=False), "bad": Ask({"temperature": -1}, model="keyed")}
    asks |= {"broken": Ask(model="keyed", turn={"fault": {"name": "not_json", "raw": f"<p>{UPSTREAM_KEY}</p>"}})}
    asked = await ask_all(scene, asks, tenant="keyed")
    if upstream.carries_none_of(asked["plain"].rows, [UPSTREAM_KEY], "plain"):
        raise Inconclusive("the engine's key did not come with the call, so there is nothing to tell")
    for path in ("/v1/models", "/health", "/v1/sessions", f"/v1/sessions/{scene.session('plain')}/completions"):
        await scene.client.get(path)
    for exchange in scene.client.exchanges:
        answer = exchange.response
        told = "" if answer is None else f"{answer.headers}{answer.body_text}"
        where = f"{exchange.request.method} {exchange.request.path}"
        check("SEC-009", UPSTREAM_KEY not in told, expected="no key of the engine's", seen=told[:300], where=where)


def _nowhere_below(folder: Path, secrets: Iterable[str]) -> Judgement:
    """Neither in a file nor in a name."""
    wanted = [secret.encode() for secret in secrets]
    for path in folder.rglob("*"):
        text = path.name.encode() + (path.read_bytes() if path.is_file() else b"")
        found = [secret.decode() for secret in wanted if secret in text]
        if found:
            return Judgement(False, "no client's key on disk", found, path.relative_to(folder).as_posix())
    return Judgement(True, "no client's key on disk", "none")
