"""A client cannot change which tokens a captured call means, nor keep the proxy from asking for them."""

from collections.abc import Callable
from typing import Any

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.oracle import upstream
from conformance.oracle.judgement import Judgement
from conformance.oracle.upstream import TRIPLE, Body
from conformance.scenarios.upstream.asking import Ask, Asked, ask_all

JSON = Any

ONE_TOKEN = {"prompt_token_ids": [1, 2, 3], "generation_token_ids": [4, 5], "generation_log_probs": [-0.5, -0.25]}
SAID = {"role": "assistant", "content": "I look.", **ONE_TOKEN}
RESULT = {"role": "tool", "tool_call_id": "1", "content": "b", **ONE_TOKEN}


def _absent_or(*values: JSON) -> Callable[[str], Callable[[Body], bool]]:
    """Absent, null, or one of these values, which change nothing."""
    return lambda key: lambda body: any(body.get(key) is value or body.get(key) == value for value in (None, *values))


HARMS: dict[str, tuple[str, Ask, str, Callable[[str], Callable[[Body], bool]]]] = {
    "no reasoning": ("UPS-012", Ask({"include_reasoning": False}), "include_reasoning", _absent_or(True)),
    "no reasoning, streamed": (
        *("UPS-012", Ask({"include_reasoning": False}, stream=True)),
        *("include_reasoning", _absent_or(True)),
    ),
    "two choices": ("UPS-013", Ask({"n": 2}), "n", _absent_or(1)),
    "echo": ("UPS-014", Ask({"echo": True}), "echo", _absent_or(False)),
    "beam search": ("UPS-014", Ask({"use_beam_search": True}), "use_beam_search", _absent_or(False)),
    "prefix": ("UPS-015", Ask({"required_prefix_token_ids": [1, 2]}), "required_prefix_token_ids", _absent_or()),
    "transfer": (
        "UPS-015",
        Ask({"kv_transfer_params": {"do_remote_decode": True}}),
        "kv_transfer_params",
        _absent_or(),
    ),
}


CAPTURED = ("plain", "streamed", "nulls", "three", "by the target")


@covers("UPS-012", "UPS-013", "UPS-014", "UPS-015", "UPS-016")
async def test_what_would_change_the_tokens_is_refused_or_taken_out(scene: Scene, check: Check) -> None:
    triples = {
        "triples": Ask(messages=(SAID, RESULT)),
        "triples, streamed": Ask(messages=(SAID, {**SAID, "content": "Again."}), stream=True),
    }
    asked = await ask_all(scene, {**{label: ask for label, (_, ask, _, _) in HARMS.items()}, **triples})
    for label, (requirement, _, key, harmless) in HARMS.items():
        if label not in asked:
            continue
        one = asked[label]
        check.that(requirement, upstream.refused_or(one.reply.status, one.bodies, harmless(key), key, label))
    for label in [one for one in triples if one in asked]:
        one = asked[label]
        check.that("UPS-016", upstream.refused_or(one.reply.status, one.bodies, _has_no_triple, "messages", label))


@covers("UPS-008", "UPS-009", "UPS-010", "UPS-011", "UPS-017", "UPS-018")
async def test_a_captured_call_asks_for_its_tokens_whatever_the_client_says(scene: Scene, check: Check) -> None:
    asked = await ask_all(
        scene,
        {
            "plain": Ask(),
            "streamed": Ask(stream=True),
            "told not to": Ask({"logprobs": False, "return_token_ids": False}),
            "told not to, streamed": Ask({"logprobs": False, "return_token_ids": False}, stream=True),
            "nulls": Ask({"logprobs": None, "top_logprobs": None, "return_token_ids": None}),
            "three": Ask({"logprobs": True, "top_logprobs": 3}),
            "by the target": Ask(model="asks-top"),
            "limit": Ask({"max_tokens": 41}),
            "new limit": Ask({"max_completion_tokens": 42}),
            "both limits": Ask({"max_tokens": 43, "max_completion_tokens": None}),
            "streamed limit": Ask({"max_tokens": 44}, stream=True),
            "tiny limit": Ask({"max_tokens": 1}),
        },
    )
    for label in [one for one in asked if one in CAPTURED]:
        check.that("UPS-008", upstream.asks_for_tokens(asked[label].got, label))
        check.that("UPS-009", upstream.counts_top_log_probs(asked[label].got, label))
    for label in [one for one in asked if one.startswith("told not to")]:
        check.that("UPS-011", upstream.asks_for_tokens(asked[label].got, label))
    check.equal("UPS-010", expected=3, seen=asked["three"].got.get("top_logprobs"), where="of the client")
    if "by the target" in asked:
        check.equal("UPS-010", expected=5, seen=asked["by the target"].got.get("top_logprobs"), where="of the target")
    for label in (label for label in asked if "streamed" in label):
        check.that("UPS-017", _streams_as_it_says(asked[label]))
    for label in (label for label in asked if "limit" in label):
        limit = upstream.limit_of(asked[label].sent)
        check.equal("UPS-018", expected=limit, seen=upstream.limit_of(asked[label].got), where=label)
    await _never_raised(scene, check)


async def _never_raised(scene: Scene, check: Check) -> None:
    """More than the engine has room for: lowered, refused or sent as it is."""
    wants = {"too much": Ask({"max_tokens": 5000}, model="short-context")}
    if not scene.takes(model="short-context"):
        return
    asked = (await ask_all(scene, wants, tenant="short"))["too much"]
    seen = [upstream.limit_of(body) for body in asked.bodies]
    ok = all(type(limit) is int and limit <= 5000 for limit in seen)
    check("UPS-018", ok, expected="at most 5000", seen=seen, where="too much")


def _has_no_triple(body: Body) -> bool:
    return not any(key in message for message in body.get("messages", ()) for key in TRIPLE)


def _streams_as_it_says(asked: Asked) -> Judgement:
    """Options of a stream only where the engine is asked for a stream."""
    if not asked.rows:
        return Judgement(
            False, "a call to the engine", f"none; {asked.reply.status} {asked.reply.text:.200}", asked.label
        )
    seen = {key: asked.got.get(key) for key in ("stream", "stream_options")}
    ok = seen["stream"] is True or seen["stream_options"] is None
    return Judgement(ok, "no stream_options without a stream", seen, asked.label)
