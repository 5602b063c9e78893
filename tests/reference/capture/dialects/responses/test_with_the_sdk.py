"""The official client in an agent's loop, against the fake vLLM, the reference proxy and the reference rebuild."""

import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI
from openai.types.responses import Response

from conformance.systems import engine, profiles, routing
from conformance.systems.engine import FakeEngine
from conformance.systems.proxy import ProxyUnderTest
from conformance.systems.proxy_start import start_proxy
from conformance.systems.rebuild import RebuildUnderTest
from fakes.vllm.tags import format_tag

pytestmark = [pytest.mark.anyio, pytest.mark.unit]

JSON = Any
RUNS = itertools.count(700)
TOOLS: list[JSON] = [
    {"type": "function", "name": "execute_bash", "strict": False, "parameters": {"type": "object", "properties": {}}},
    {"type": "web_search"},
]
LOOP = {
    "about": "Two calls at once, one more, and the answer, with a thought before each.",
    "sampling": "faithful",
    "scopes": {
        "main": {
            "turns": [
                {
                    "reasoning": "I look around, naïve 🤔.",
                    "calls": [
                        {"name": "execute_bash", "arguments": {"command": "ls  # {tag}", "timeout": 10}},
                        {"name": "execute_bash", "arguments": {"command": "pwd"}},
                    ],
                },
                {
                    "reasoning": "Now I build.",
                    "calls": [{"name": "execute_bash", "arguments": {"command": "make  # {tag}"}}],
                },
                {"reasoning": "It is done.", "text": "{tag} Die Straße ist frei."},
            ]
        }
    },
}


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FakeEngine, ProxyUnderTest, RebuildUnderTest]]:
    place = tmp_path_factory.mktemp("line")
    with ExitStack() as ends:
        fake = engine.start_engine(place)
        ends.callback(fake.close)
        system = start_proxy(profiles.find("reference"), fake.url, place / "log")
        ends.callback(system.close)
        rebuilding = RebuildUnderTest(profiles.find("reference-rebuild"), place)
        ends.callback(rebuilding.close)
        yield fake, system, rebuilding


Line = tuple[FakeEngine, ProxyUnderTest, RebuildUnderTest]


@pytest.fixture
async def client(line: Line) -> AsyncIterator[AsyncOpenAI]:
    fake, system, _ = line
    for name, body in routing.tenants().items():
        await fake.tenant(name, body)
    async with AsyncOpenAI(base_url=f"{system.url}/v1", api_key="none", max_retries=0, timeout=20) as opened:
        yield opened


async def answered(client: AsyncOpenAI, history: list[JSON], headers: dict[str, str], **keys: JSON) -> Response:
    """One call, whole or as a stream read to its end."""
    asked: JSON = {"model": "policy-model", "input": history, "instructions": "Work.", "tools": TOOLS, **keys}
    if not asked.pop("stream", False):
        return await client.responses.create(**asked, extra_headers=headers)
    async with client.responses.stream(**asked, extra_headers=headers) as stream:
        return await stream.get_final_response()


async def loop(client: AsyncOpenAI, run: int, session: str, *, stream: bool) -> list[Response]:
    history: list[JSON] = [{"role": "user", "content": f"{format_tag(run, 0, 0)} Begin."}]
    responses: list[Response] = []
    while not responses or any(item.type == "function_call" for item in responses[-1].output):
        responses.append(await answered(client, history, {"session-id": session}, stream=stream))
        assert responses[-1].status == "completed"
        history += [item.to_dict() for item in responses[-1].output]
        history += [
            {"type": "function_call_output", "call_id": item.call_id, "output": f"done {item.call_id}"}
            for item in responses[-1].output
            if item.type == "function_call"
        ]
    return responses


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_an_agents_loop_is_captured_and_rebuilt_clean(line: Line, client: AsyncOpenAI, stream: bool) -> None:
    fake, system, rebuilding = line
    run = next(RUNS)
    session = f"loop/{run}"
    await fake.play("main", run, LOOP)
    responses = await loop(client, run, session, stream=stream)
    # The engine's parser leaves the newlines behind the thought to the text.
    assert responses[-1].output_text.lstrip() == f"{format_tag(run, 0, 3)} Die Straße ist frei."
    rows = await fake.wait("finished", run=run, count=3)
    records = await system.records(session)
    triple = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")
    assert [[record[name] for name in triple] for record in records] == [[row[name] for name in triple] for row in rows]
    assert [row["faithful"] for row in rows] == [True] * 3
    usage = responses[1].usage
    assert usage is not None
    assert usage.input_tokens == len(rows[1]["prompt_token_ids"])
    assert usage.output_tokens == len(rows[1]["generation_token_ids"])
    rollout = await rebuilding.ask({"envelope": (await system.completions_answer(session)).json()})
    assert rollout["outcome"] == "clean", rollout
    whole = rollout["trajectories"][0]
    assert len(whole["record_uuids"]) == 3
    assert sum(whole["mask"]) == sum(len(row["generation_token_ids"]) for row in rows)


async def test_a_generation_cut_by_length_is_incomplete(line: Line, client: AsyncOpenAI) -> None:
    fake, system, _ = line
    run = next(RUNS)
    await fake.play("main", run, LOOP)
    history: list[JSON] = [{"role": "user", "content": f"{format_tag(run, 0, 0)} Begin."}]
    response = await answered(client, history, {"session-id": f"cut/{run}"}, max_output_tokens=4)
    assert response.status == "incomplete"
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "max_output_tokens"
    assert [record["finish_reason"] for record in await system.records(f"cut/{run}")] == ["length"]


async def test_an_uncaptured_stream_comes_in_the_engines_own_pieces(line: Line, client: AsyncOpenAI) -> None:
    fake, _, _ = line
    run = next(RUNS)
    await fake.play("main", run, LOOP)
    history: list[JSON] = [{"role": "user", "content": f"{format_tag(run, 0, 0)} Begin."}]
    stream = await client.responses.create(model="policy-model", input=history, tools=TOOLS, stream=True)
    events = [event async for event in stream]
    assert events[-1].type == "response.completed"
    deltas = [event.type for event in events if event.type.endswith(".delta")]
    assert deltas.count("response.reasoning_summary_text.delta") > 1
    assert deltas.count("response.function_call_arguments.delta") > 2
    whole = await client.responses.create(model="policy-model", input=history, tools=TOOLS)
    assert said(events[-1].response) == said(whole)
    rows = await fake.ledger(run=run)
    assert ["token_ids" in row["request"]["body_text"] for row in rows] == [False, False]


async def test_a_stream_that_is_cut_upstream_raises_in_the_client(line: Line, client: AsyncOpenAI) -> None:
    fake, _, _ = line
    run = next(RUNS)
    cut = {"name": "cut_stream", "at_token": 3, "on_attempts": "all"}
    turns = [{"text": "{tag} one two three four", "fault": cut}]
    await fake.play("main", run, {"about": "Cut.", "sampling": "faithful", "scopes": {"main": {"turns": turns}}})
    history: list[JSON] = [{"role": "user", "content": f"{format_tag(run, 0, 0)} Begin."}]
    stream = await client.responses.create(model="policy-model", input=history, stream=True)
    assert [event.type async for event in stream][-1] == "response.failed"
    with pytest.raises(openai.InternalServerError) as error:
        await answered(client, history, {"session-id": f"broken/{run}"}, stream=True)
    assert error.value.status_code == 502


async def test_an_overflow_is_the_official_clients_own_error(line: Line, client: AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as error:
        await client.responses.create(model="short-context", input="word " * 20000)
    assert error.value.code == "context_length_exceeded"


def said(response: Response) -> JSON:
    """Thought and calls; a streaming engine gives the white space between them as text, a buffered one does not."""
    items = [item.to_dict() | {"id": "", "call_id": ""} for item in response.output]
    return [item for item in items if item["type"] != "message"]
