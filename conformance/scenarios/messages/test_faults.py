"""Failures and mistakes as a Messages client is told them."""

import asyncio
from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import MODEL, Scene
from conformance.oracle import messages_errors
from conformance.scenarios.errors.faults import Fault, Faulty, Turn, engine_says, faulty, play
from conformance.scenarios.messages.asking import PATH, Message, answered, ask, body_of
from fakes.harnesses.plain import Call, Reply

JSON = Any

OUTPUT_CAP = (
    "max_tokens=64000 cannot be greater than max_model_len=2048. Please request fewer output tokens. "
    "(parameter=max_tokens, value=64000)"
)
REQUESTED = (
    "This model's maximum context length is 40960 tokens. However, you requested 32000 output tokens and your prompt "
    "contains at least 9000 input tokens, for a total of at least 41000 tokens. Please reduce the length of the input "
    "prompt or the number of requested output tokens. (parameter=input_tokens, value=9000)"
)
OLD_CAP = (
    "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 40960 tokens "
    "and your request has 9000 input tokens (32000 > 40960 - 9000). (parameter=max_tokens, value=32000)"
)
NO_ROOM = {"requested": REQUESTED, "too large": OLD_CAP}
SHORTEN = "Please reduce the length of the input"
TOO_LONG = {
    "contains": "This model's maximum context length is 40960 tokens. However, your prompt contains at least 40961 "
    f"input tokens, which exceeds this limit even without any output tokens. {SHORTEN} prompt.",
    "has": "This model's maximum context length is 40960 tokens. However, your request has 50123 input tokens. "
    f"{SHORTEN} messages.",
    "passed": "You passed 40961 input tokens and requested 1 output tokens. However, the model's context length is "
    f"only 40960 tokens, resulting in a maximum input length of 40959 tokens. {SHORTEN} prompt.",
}
"""What several versions of a real vLLM say."""


def _vllm(message: str) -> Fault:
    return engine_says(400, {"error": {"message": message, "type": "BadRequestError", "param": None, "code": 400}})


FAULTS: dict[str, Fault] = {
    "busy": engine_says(503, {"error": {"message": "busy", "type": "x", "code": 503}}, Retry_After="3"),
    "plain text": engine_says(500, "Internal Server Error"),
    "a detail": engine_says(422, {"detail": [{"msg": "too odd"}]}),
    "a bare string": engine_says(401, {"error": "Unauthorized"}),
    "limited": engine_says(429, {"message": "too many", "object": "error"}),
    "gone": {"name": "close_before_headers"},
    "no JSON": {"name": "not_json"},
    **{f"too long: {label}": _vllm(said) for label, said in TOO_LONG.items()},
    **{f"no room: {label}": _vllm(said) for label, said in NO_ROOM.items()},
    "no room at all": _vllm(OUTPUT_CAP),
}
MISTAKES: dict[str, dict[str, JSON]] = {
    "an unknown model": {"model": "nobody-knows"},
    "no limit": {"max_tokens": None},
    "a text for tools": {"tools": "bash"},
    "a tool without schema": {"tools": [{"name": "bash"}]},
    "an odd choice": {"tool_choice": {"type": "perhaps"}},
}
ODD_MESSAGES: dict[str, list[Message]] = {
    "no messages": [],
    "an odd role": [{"role": "wizard", "content": "Abracadabra."}],
    "a number for content": [{"role": "user", "content": 7}],
}


@covers("ANT-038", "ANT-039", "ANT-040")
async def test_failures_and_mistakes_are_told_in_the_dialects_own_shape(scene: Scene, check: Check) -> None:
    wrong = await play(scene, FAULTS)
    calls = {
        f"{name}, stream {stream}": _start(wrong, name, stream=stream) for name in FAULTS for stream in (False, True)
    }
    calls |= {name: ask(scene, scene.task(), **body) for name, body in MISTAKES.items()}
    calls |= {name: ask(scene, messages) for name, messages in ODD_MESSAGES.items()}
    calls["no JSON from the client"] = _post_raw(scene, b'{"model": "policy-model", "messages": [')
    long = f"{scene.task()} {'over and over and ' * 1000}"
    calls["really too long"] = ask(scene, long, model="short-context", max_tokens=16)
    calls["really no room"] = ask(scene, scene.task(), model="short-context", max_tokens=32000)
    replies = dict(zip(calls, await asyncio.gather(*calls.values()), strict=True))
    for label, reply in replies.items():
        if label == "really no room" and answered(reply):
            continue  # The contract lets a proxy lower the limit to what fits.
        _is_an_error(check, reply, label)
        told = (reply.status, body_of(reply), label)
        if "too long" in label:
            check.that("ANT-039", messages_errors.told_as_too_long(*told))
        elif label.startswith("no room:"):
            check.that("ANT-040", messages_errors.told_as_no_room(*told))
        elif "no room" in label:
            said = messages_errors.message_of(body_of(reply))
            ok = reply.status == 400 and messages_errors.TOO_LONG not in said
            check("ANT-040", ok, expected="400, not as an overlong prompt", seen=[reply.status, said], where=label)


def _is_an_error(check: Check, reply: Reply, label: str) -> None:
    failed = reply.status is not None and reply.status >= 400
    check("ANT-038", failed, expected="a status of 400 or more", seen=reply.status, where=label)
    check.that("ANT-038", messages_errors.in_shape(reply.header("content-type"), body_of(reply), label))


def _start(wrong: Faulty, name: str, **keys: JSON) -> Call:
    return ask(wrong.scene, wrong.task(name), **keys)


def _post_raw(scene: Scene, body: bytes) -> Call:
    carried = scene.proxy.carry(scene.session())
    return scene.client.post(f"{carried.base_path}{PATH}", body, headers=carried.headers)


CUTS: dict[str, Fault] = {
    "dropped": {"name": "cut_stream", "at_token": 3},
    "ended early": {"name": "cut_clean", "at_token": 3},
    "half an object": {"name": "bad_json", "at_token": 3},
    "engine died": {"name": "error_event", "at_token": 3},
    "no finish": {"name": "cut_clean", "at_token": 0},
}


@covers("ANT-041")
async def test_an_answer_that_the_engine_cut_never_looks_complete(scene: Scene, check: Check) -> None:
    cut = await play(scene, CUTS)
    ways = [(name, stream, model) for name in CUTS for stream in (False, True) for model in (MODEL, "uncaptured")]
    replies = await asyncio.gather(*(_start(cut, name, stream=stream, model=model) for name, stream, model in ways))
    for (name, stream, model), reply in zip(ways, replies, strict=True):
        where = f"{name}, {model}, {'streamed' if stream else 'buffered'}"
        told = (reply.status, reply.exchange.streamed, body_of(reply), where)
        check.that("ANT-041", messages_errors.never_complete(*told, whole=reply.ended == "complete"))


PATIENCE_SECONDS = 10.0
"""Many times the route's ping_secs; only a proxy without pings is waited for so long."""


@covers("ANT-042")
async def test_a_failure_behind_a_ping_is_the_last_event_of_its_stream(scene: Scene, check: Check) -> None:
    gate = f"messages-pings-{scene.run}"
    failures: dict[str, Fault] = {
        "busy": engine_says(503, {"error": {"message": "busy", "type": "x", "code": 503}}),
        "overlong": _vllm(TOO_LONG["contains"]),
        "gone": {"name": "close_before_headers"},
    }
    turns: dict[str, Turn] = {name: {"gate": gate, **faulty(fault)} for name, fault in failures.items()}
    waits = await Faulty(scene, turns).script()
    calls = [_start(waits, name, model="pinging", stream=True) for name in failures]
    await scene.engine.wait("held", run=scene.run, count=len(calls))
    await asyncio.gather(*(_sign(call) for call in calls))
    await scene.engine.open_gate("main", gate)
    for name, reply in zip(failures, await asyncio.gather(*calls), strict=True):
        check.that("ANT-042", messages_errors.failed_in_band(reply.status, body_of(reply), name))


async def _sign(call: Call) -> None:
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await call.watch.until_bytes(1)
    except TimeoutError:
        pass  # Without pings the failure will have a status of its own.
