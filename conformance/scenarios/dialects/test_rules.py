"""Rules of the other families that must not be lost on the way through another dialect."""

import asyncio
from collections.abc import Iterable
from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import MODEL, Scene
from conformance.oracle import upstream
from conformance.oracle.chat_answers import engine_fields, json_object
from conformance.oracle.named_events import told
from conformance.scenarios.dialects.asking import Ask, Asked, ask_all
from conformance.scenarios.dialects.tongues import Said, Tongue, body_of, spoken_by
from conformance.scenarios.errors.faults import engine_says, faulty
from conformance.systems.routing import route
from fakes.harnesses.plain import Reply

JSON = Any

OWN = {"seed": 1234567, "chat_template_kwargs": {"enable_thinking": False, "größe": 1.0}}
OTHER_SAMPLING = {"temperature": 0.2, "top_p": 0.5, "chat_template_kwargs": {"enable_thinking": False}}
HARMS: dict[str, tuple[str, JSON]] = {"no reasoning": ("include_reasoning", False), "two choices": ("n", 2)}
HARMLESS = {"include_reasoning": (None, True), "n": (None, 1)}


@covers("DLC-011", "DLC-012", "DLC-013", "DLC-014")
async def test_settings_mean_the_same_in_each_dialect(scene: Scene, check: Check) -> None:
    thought = {"reasoning": "I think.", "calls": [{"name": "look", "arguments": {"path": "{tag}"}}]}
    asks = {
        f"{label}, stream {stream}": Ask({key: value}, stream=stream)
        for label, (key, value) in HARMS.items()
        for stream in (False, True)
    }
    asks |= {f"own, stream {stream}": Ask(OWN, stream=stream) for stream in (False, True)}
    asks |= {f"rich, stream {stream}": Ask(stream=stream, turn=thought) for stream in (False, True)}
    if "pins" in scene.proxy.capabilities:
        asks |= {"pinned": Ask(OTHER_SAMPLING, model="pinned"), "pinned, left out": Ask(model="pinned", stream=True)}
    for label, found in (await ask_all(scene, asks)).items():
        for one in found:
            for harm, (key, _) in HARMS.items():
                if label.startswith(harm):
                    check.that("DLC-011", _refused_or_harmless(one, key))
            if label.startswith("own"):
                check.equal("DLC-013", expected=OWN, seen=_sent(one, OWN), where=one.where)
            if label.startswith("pinned"):
                pins = route("pinned").pins
                check.equal("DLC-012", expected=pins, seen=_sent(one, pins), where=one.where)
            if label.startswith("rich"):
                held = bool(one.rows) and one.reply.status == 200
                seen = _engine_words(one.reply) if held else f"answered with {one.reply.status}"
                check("DLC-014", held and not seen, expected="nothing of the engine's", seen=seen, where=one.where)


def _refused_or_harmless(one: Asked, key: str) -> Any:
    def harmless(body: dict[str, JSON]) -> bool:
        return any(body.get(key) is value for value in HARMLESS[key])

    return upstream.refused_or(one.reply.status, one.bodies, harmless, key, one.where)


def _sent(one: Asked, keys: Iterable[str]) -> JSON:
    """What the engine got of these."""
    got = one.bodies[0] if one.bodies else {}
    return {key: got.get(key) for key in keys} if one.bodies else f"answered with {one.reply.status}"


def _engine_words(reply: Reply) -> list[str]:
    """Engine fields and log probs anywhere in the answer; empty log probs are part of the Responses form."""
    body = body_of(reply)
    objects = told(body)[1] if reply.exchange.streamed else [json_object(body) or {}]
    return [*(path for one in objects for path in engine_fields(one)), *_log_probs(objects)]


def _log_probs(value: JSON) -> list[str]:
    if isinstance(value, list):
        return [found for one in value for found in _log_probs(one)]
    if not isinstance(value, dict):
        return []
    here = ["logprobs"] if value.get("logprobs") else []
    return here + [found for one in value.values() for found in _log_probs(one)]


STATUSES = {
    "bad": (400, {}),
    "busy": (429, {"Retry_After": "7"}),
    "broken": (500, {}),
    "away": (503, {"Retry_After": "3"}),
}


@covers("DLC-015", "DLC-016", "DLC-017")
async def test_failures_are_told_alike_in_each_dialect(scene: Scene, check: Check) -> None:
    body = {"error": {"message": "not now", "type": "x", "code": 1}}
    faults = {name: faulty(engine_says(status, body, **headers)) for name, (status, headers) in STATUSES.items()}
    asks = {
        f"{name}, stream {stream}": Ask(stream=stream, turn=turn)
        for name, turn in faults.items()
        for stream in (False, True)
    }
    found = await ask_all(scene, {**asks, "dead, stream True": Ask(stream=True, model="dead")})
    for label, answers in found.items():
        due = STATUSES.get(label.partition(",")[0])
        for one in answers:
            status, after = one.reply.status, one.reply.header("retry-after")
            if label.endswith("True"):
                ok = status is not None and status >= 400 and not one.reply.exchange.streamed
                check("DLC-015", ok, expected="an error status, no stream", seen=status, where=one.where)
            if due is not None:
                wanted = [due[0], due[1].get("Retry_After")]
                check.equal("DLC-016", expected=wanted, seen=[status, after], where=one.where)
    tongues = spoken_by(scene.proxy.capabilities)
    mistakes = [(tongue, label, body) for tongue in tongues for label, body in _mistakes(scene, tongue).items()]
    replies = await asyncio.gather(*(scene.post(tongue.path, body) for tongue, _, body in mistakes))
    for (tongue, label, _), reply in zip(mistakes, replies, strict=True):
        check.equal("DLC-017", expected=400, seen=reply.status, where=f"{tongue.capability}, {label}")


def _mistakes(scene: Scene, tongue: Tongue) -> dict[str, dict[str, JSON]]:
    whole = tongue.body(Said(scene.task()), model=MODEL)
    key = "input" if tongue.capability == "responses" else "messages"
    absent = {each: value for each, value in whole.items() if each != key}
    found = {"nothing said": {**whole, key: []}, "no conversation": absent}
    if tongue.capability != "chat":
        # What goes on as it came is the engine's to judge, and templates differ in the roles they know.
        found["an unknown role"] = {**whole, key: [{"role": "stranger", "content": scene.task()}]}
    return found


ODD = ("no_token_ids", "nan_logprob", "short_logprobs", "empty_ids", "no_request_id")


@covers("DLC-018")
async def test_what_cannot_be_trained_is_marked_in_each_dialect(scene: Scene, check: Check) -> None:
    asks = {
        f"{name}, stream {n % 2 == 1}": Ask(stream=n % 2 == 1, turn=faulty({"name": name}))
        for n, name in enumerate(ODD)
    }
    for answers in (await ask_all(scene, asks)).values():
        for one in answers:
            seen = [one.reply.status, one.said, [record.get("is_valid") for record in one.records]]
            check.equal("DLC-018", expected=[200, one.due, [False]], seen=seen, where=one.where)
