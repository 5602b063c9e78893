"""The official client talks to the fake engine through the proxy."""

from collections.abc import Iterator
from itertools import count, pairwise
from typing import Any

import anthropic
import pytest
from anthropic.types import Message, MessageParam, ToolParam

from fakes.vllm import tokenizer
from fakes.vllm.app import build_world
from fakes.vllm.tags import format_tag
from tests.fakes.vllm.wire.serving_here import Served, serving
from tests.reference.capture.running import Proxy, route

pytestmark = pytest.mark.unit

JSON = Any
BASH: ToolParam = {"name": "bash", "description": "Runs it.", "input_schema": {"type": "object", "properties": {}}}
TENANT = {"models": ["served"], "max_model_len": 2048, "tool_parser": "hermes", "reasoning_parser": "qwen3"}
_runs = count(1)


@pytest.fixture(scope="module")
def fake() -> Iterator[Served]:
    with serving(build_world(tokenizer.load())) as served:
        served.put("/_fake/tenants/messages", TENANT | {"template": {"strip_history_reasoning": False}})
        yield served


@pytest.fixture(scope="module")
def line(fake: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    base_url = f"{fake.url}/t/messages/v1"
    routes = {"policy": route(base_url), "plain": {"type": "model", "target": "served", "base_url": base_url}}
    with Proxy(tmp_path_factory.mktemp("line"), {"routes": routes}) as running:
        yield running


@pytest.fixture
def client(line: Proxy, session: str) -> Iterator[anthropic.Anthropic]:
    address = f"http://127.0.0.1:{line.port}/ng-rollout/r1/"
    headers = {"X-Claude-Code-Session-Id": session}
    with anthropic.Anthropic(base_url=address, api_key="dummy", default_headers=headers, max_retries=0) as made:
        yield made


def play(fake: Served, *turns: JSON) -> str:
    """Tell the engine what to say; the prompt that starts it."""
    run = next(_runs)
    playbook = {"about": "A test.", "sampling": "faithful", "scopes": {"main": {"turns": list(turns)}}}
    fake.put(f"/_fake/tenants/messages/runs/{run}", playbook)
    return f"{format_tag(run, 0, 0)} Go."


TURNS = (
    {"reasoning": "Hm.", "calls": [{"name": "bash", "arguments": {"zeta": "ls  # {tag}", "alpha": 1.0}}]},
    {"text": "{tag} I see é 🙂.", "reasoning": "So."},
    {"text": "{tag} Done."},
)


def ask(client: anthropic.Anthropic, model: str, history: list[MessageParam], *, stream: bool) -> Message:
    if not stream:
        return client.messages.create(model=model, max_tokens=200, messages=history, tools=[BASH], system="Be good.")
    with client.messages.stream(
        model=model, max_tokens=200, messages=history, tools=[BASH], system="Be good."
    ) as events:
        return events.get_final_message()


def converse(client: anthropic.Anthropic, model: str, prompt: str, *, stream: bool) -> list[Message]:
    """Three turns, everything that came echoed as the client's own models give it."""
    history: list[MessageParam] = [{"role": "user", "content": prompt}]
    answers = []
    for _ in range(3):
        answer = ask(client, model, history, stream=stream)
        answers.append(answer)
        echoed: JSON = {"role": "assistant", "content": [block.to_dict() for block in answer.content]}
        history.append(echoed)
        uses = [block for block in answer.content if block.type == "tool_use"]
        results: JSON = [{"type": "tool_result", "tool_use_id": use.id, "content": "fine"} for use in uses]
        history.append({"role": "user", "content": results or "Go on."})
    return answers


@pytest.mark.parametrize("stream", [False, True], ids=["buffered", "streamed"])
def test_a_conversation_is_captured_token_by_token(
    client: anthropic.Anthropic, line: Proxy, fake: Served, session: str, stream: bool
) -> None:
    answers = converse(client, "policy", play(fake, *TURNS), stream=stream)
    assert [answer.stop_reason for answer in answers] == ["tool_use", "end_turn", "end_turn"]
    records = line.records(session)
    assert [record["is_valid"] for record in records] == [True] * 3
    assert [record["request_id"] for record in records] == [answer.id for answer in answers]
    for answer, record in zip(answers, records, strict=True):
        (row,) = fake.rows(f"tenant=messages&request_id={answer.id}")
        for name in ("prompt_token_ids", "generation_token_ids", "generation_log_probs"):
            assert record[name] == row[name]
        assert (answer.usage.input_tokens, answer.usage.output_tokens) == (
            len(row["prompt_token_ids"]),
            len(row["generation_token_ids"]),
        )
    for before, after in pairwise(records):
        sampled = before["prompt_token_ids"] + before["generation_token_ids"]
        assert after["prompt_token_ids"][: len(sampled)] == sampled


def test_buffered_and_streamed_answers_are_the_same(client: anthropic.Anthropic, fake: Served) -> None:
    prompt = play(fake, *TURNS)
    said = [[_said(answer) for answer in converse(client, "policy", prompt, stream=way)] for way in (False, True)]
    assert said[0] == said[1]


def test_a_call_of_no_session_is_answered_the_same(client: anthropic.Anthropic, fake: Served) -> None:
    prompt = play(fake, *TURNS)
    assert [_said(one) for one in converse(client, "plain", prompt, stream=False)] == [
        _said(one) for one in converse(client, "policy", prompt, stream=False)
    ]


def _said(answer: Message) -> JSON:
    names = {"id", "model", "stop_details"}
    told = answer.to_dict(exclude_unset=False)
    content: JSON = told["content"]
    kept = [{key: value for key, value in block.items() if key != "id"} for block in content]
    return {key: value for key, value in told.items() if key not in names and value is not None} | {"content": kept}


def test_a_count_is_what_the_call_then_costs(client: anthropic.Anthropic, fake: Served) -> None:
    history: list[MessageParam] = [{"role": "user", "content": play(fake, *TURNS)}]
    counted = client.messages.count_tokens(model="policy", messages=history, tools=[BASH], system="Be good.")
    assert counted.input_tokens == ask(client, "policy", history, stream=False).usage.input_tokens


def test_an_overlong_prompt_is_told_so_that_a_harness_compacts(client: anthropic.Anthropic) -> None:
    history: list[MessageParam] = [{"role": "user", "content": "word " * 5000}]
    for stream in (False, True):
        with pytest.raises(anthropic.BadRequestError, match=r"prompt is too long: \d+ tokens > 2048 maximum"):
            ask(client, "policy", history, stream=stream)


def test_an_unknown_model_is_not_found(client: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError, match="policy"):
        ask(client, "claude-haiku-4-5", [{"role": "user", "content": "hi"}], stream=False)


def test_a_fault_of_the_engine_is_an_error_of_the_clients_own(client: anthropic.Anthropic, fake: Served) -> None:
    prompt = play(fake, {"text": "{tag} No.", "fault": {"name": "http_error", "status": 529}})
    with pytest.raises(anthropic.APIStatusError) as caught:
        ask(client, "policy", [{"role": "user", "content": prompt}], stream=True)
    assert caught.value.status_code == 529
