"""What the ledger calls faithful is contiguous for a real client: over a socket, through the parsers, in both modes."""

from collections.abc import Iterator
from itertools import count, pairwise
from typing import Any

import pytest

from fakes.vllm import tokenizer
from fakes.vllm.app import build_world
from fakes.vllm.tags import format_tag
from tests.fakes.vllm.engine.making import Message
from tests.fakes.vllm.wire.serving_here import Served, serving

CALLING = {"name": "a", "arguments": {"x": "1  # {tag}", "ü": ["é", 1.5, None]}}
TURNS: dict[str, list[dict[str, Any]]] = {
    "plain calls": [
        {"calls": [CALLING, {"name": "b"}]},
        {"calls": [CALLING]},
        {"text": "Done."},
        {"text": "Really."},
    ],
    "thinking calls": [
        {"reasoning": "I look.", "calls": [CALLING]},
        {"reasoning": "I change.", "calls": [CALLING]},
        {"text": "Done."},
    ],
    "thinking, then a user": [{"reasoning": "I look.", "text": "Well."}, {"calls": [CALLING]}, {"text": "Done."}],
}
TENANTS: dict[str, dict[str, Any]] = {
    "no reasoning parser": {},
    "reasoning parser": {"reasoning_parser": "qwen3"},
    "history keeps reasoning": {"reasoning_parser": "qwen3", "template": {"strip_history_reasoning": False}},
    "empty think block": {"template": {"prefill_empty_think": True}},
}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("a", "b")]

_runs = count(1)


@pytest.fixture(scope="module")
def fake() -> Iterator[Served]:
    with serving(build_world(tokenizer.load())) as served:
        yield served


def _ask(fake: Served, path: str, messages: list[Message], streamed: bool) -> Message:
    body = {"model": "tiny", "messages": messages, "tools": TOOLS, "logprobs": True, "return_token_ids": True}
    reply = fake.call("POST", path, body | {"stream": streamed})
    assert reply.status == 200, reply.text
    if not streamed:
        message: Message = reply.json()["choices"][0]["message"]
        return {key: value for key, value in message.items() if value is not None}
    gathered: Message = {"role": "assistant", "content": None}
    calls: dict[int, dict[str, Any]] = {}
    for chunk in reply.chunks():
        for choice in chunk["choices"]:
            for key in ("content", "reasoning"):
                if choice["delta"].get(key):
                    gathered[key] = (gathered.get(key) or "") + choice["delta"][key]
            for delta in choice["delta"].get("tool_calls", ()):
                call = calls.setdefault(delta["index"], {"id": "", "type": "function", "name": "", "arguments": ""})
                call["id"] += delta.get("id", "")
                for key in ("name", "arguments"):
                    call[key] += delta["function"].get(key, "")
    if calls:
        gathered["tool_calls"] = [
            {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
            for call in calls.values()
        ]
    return gathered


def _rows(fake: Served, tenant: dict[str, Any], turns: list[dict[str, Any]], streamed: bool) -> list[dict[str, Any]]:
    """The ledger of a client that plays the turns and echoes everything."""
    run = next(_runs)
    fake.put(f"/_fake/tenants/t{run}", tenant)
    fake.put(f"/_fake/tenants/t{run}/runs/{run}", {"about": "x", "scopes": {"main": {"turns": turns}}})
    messages: list[Message] = [{"role": "user", "content": f"{format_tag(run, 0, 0)} Go."}]
    for _ in turns:
        answer = _ask(fake, f"/t/t{run}/v1/chat/completions", messages, streamed)
        messages.append(answer)
        calls = answer.get("tool_calls", [])
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in calls]
        if not calls:
            messages.append({"role": "user", "content": "Go on."})
    return fake.rows(f"tenant=t{run}&run={run}")


@pytest.mark.parametrize("streamed", [False, True], ids=["buffered", "streamed"])
@pytest.mark.parametrize("tenant", TENANTS.values(), ids=TENANTS)
@pytest.mark.parametrize("turns", TURNS.values(), ids=TURNS)
def test_a_history_is_contiguous_as_long_as_its_rows_are_faithful(
    turns: list[dict[str, Any]], tenant: dict[str, Any], streamed: bool, fake: Served
) -> None:
    rows = _rows(fake, tenant, turns, streamed)
    assert [row["turn"] for row in rows] == list(range(len(turns)))
    contiguous = []
    for earlier, later in pairwise(rows):
        sequence = earlier["prompt_token_ids"] + earlier["generation_token_ids"]
        contiguous.append(later["prompt_token_ids"][: len(sequence)] == sequence)
    promised = [all(row["faithful"] for row in rows[: number + 1]) for number in range(len(contiguous))]
    assert all(kept for kept, due in zip(contiguous, promised, strict=True) if due), (contiguous, promised)
    # A row that is called unfaithful has to show it, or the mark says nothing.
    assert all(contiguous) == all(promised), (contiguous, promised)
