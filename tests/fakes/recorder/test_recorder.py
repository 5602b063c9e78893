"""The recorder of a real engine, before the fake: what it keeps of a call is what the engine behind it keeps."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from conformance.systems import engine
from conformance.systems.engine import EngineCannot, FakeEngine
from fakes.harnesses.plain import PlainClient, Reply
from fakes.recorder.command import main
from fakes.vllm.tags import format_tag

pytestmark = pytest.mark.anyio

JSON = Any
RUNS = itertools.count(1)
TENANT: dict[str, JSON] = {
    "models": ["policy"],
    "max_model_len": 4096,
    "tool_parser": "hermes",
    "reasoning_parser": "qwen3",
}
TURN: dict[str, JSON] = {
    "reasoning": "Größe?",
    "text": "{tag} I look first.",
    "calls": [{"name": "bash", "arguments": {"command": "ls"}}],
}
TOOL = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}
CAPTURED = {"logprobs": True, "return_token_ids": True}
SAME = (
    *(
        "endpoint",
        "request_id",
        "run",
        "scope",
        "turn",
        "rule",
        "attempt",
        "off_script",
        "streamed",
        "prompt_token_ids",
    ),
    *("generation_token_ids", "generation_log_probs", "finish_reason", "stop_reason", "usage", "status", "state"),
)


def playbook(**turn: JSON) -> JSON:
    return {"about": "One turn.", "sampling": "drifting", "scopes": {"main": {"turns": [{**TURN, **turn}]}}}


@dataclass
class Line:
    """An engine of the fake's make, the recorder before it, and a run of this test's own."""

    behind: FakeEngine
    recorder: FakeEngine
    client: PlainClient
    run: int

    async def play(self, **turn: JSON) -> None:
        """The engine behind is scripted too, as it hears nothing of structured outputs."""
        await self.recorder.play("main", self.run, playbook(**turn))
        await self.behind.play("default", self.run, playbook(**turn))

    def ask(self, path: str = "/t/main/v1/chat/completions", **body: JSON) -> Any:
        task = {"role": "user", "content": f"{format_tag(self.run, 0, 0)} Größe?"}
        whole = {"model": "policy", "messages": [task], "tools": [TOOL], **CAPTURED, **body}
        return self.client.send("POST", path, whole)

    async def rows(self) -> tuple[JSON, JSON]:
        """What the engine tells of its last call, and what the recorder does."""
        return (await self.behind.ledger(run=self.run))[-1], (await self.recorder.ledger(run=self.run))[-1]


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FakeEngine, FakeEngine]]:
    behind = engine.start_engine(tmp_path_factory.mktemp("behind"))
    asyncio.run(behind.tenant("default", TENANT))
    recorder = engine.start_recorder(tmp_path_factory.mktemp("recorder"), behind.url)
    asyncio.run(recorder.tenant("main", TENANT))
    yield behind, recorder
    recorder.close()
    behind.close()


@pytest.fixture
async def line(engines: tuple[FakeEngine, FakeEngine]) -> AsyncIterator[Line]:
    client = PlainClient(engines[1].url)
    yield Line(*engines, client, next(RUNS))
    await client.close()


@pytest.mark.parametrize("more", [{}, {"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}])
async def test_a_call_is_told_as_the_engine_itself_tells_it(line: Line, more: dict[str, JSON]) -> None:
    await line.play()
    reply: Reply = await line.ask(**more)
    assert reply.answered
    own, seen = await line.rows()
    if more and "stream_options" not in more:
        own["usage"] = None  # which a stream that does not say it cannot tell
    assert {key: seen[key] for key in SAME} == {key: own[key] for key in SAME}
    assert own["generation_token_ids"]
    said = {key: value for key, value in own["message"].items() if value is not None}
    assert {key: value for key, value in seen["message"].items() if value is not None} == said


async def test_the_text_that_is_due_is_the_engines_only_choice_and_no_other_byte_changes(line: Line) -> None:
    await line.play()
    await line.ask()
    own, seen = await line.rows()
    asked, forced = seen["request"]["body_text"], own["request"]["body_text"]
    chosen = json.loads(forced)["structured_outputs"]
    assert chosen == {
        "choice": [
            (
                f"<think>\nGröße?\n</think>\n\n{format_tag(line.run, 0, 1)} I look first.\n"
                '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>'
            )
        ]
    }
    assert forced.startswith(asked[:-1])
    assert "structured_outputs" not in asked


async def test_a_turn_has_its_seed_unless_the_client_names_one(line: Line) -> None:
    await line.play()
    seeds = []
    for more in ({}, {"stream": True, "seed": None}, {"seed": 5}):
        await line.ask(**more)
        seeds.append(json.loads((await line.rows())[0]["request"]["body_text"])["seed"])
    assert seeds[0] == seeds[1] != seeds[2] == 5


async def test_a_prompt_of_ids_is_read_by_the_engine_whose_ids_they_are(line: Line) -> None:
    await line.play()
    await line.ask()
    prompt = (await line.rows())[0]["prompt_token_ids"]
    body = {"model": "policy", "prompt": prompt, "logprobs": 0, "return_token_ids": True, "max_tokens": 90}
    reply = await line.client.send("POST", "/t/main/v1/completions", body)
    assert reply.status == 200
    own, seen = await line.rows()
    assert {key: seen[key] for key in SAME} == {key: own[key] for key in SAME}
    assert seen["endpoint"] == "completions"


async def test_what_the_engine_refuses_is_handed_on_and_is_no_attempt(line: Line) -> None:
    await line.play()
    reply = await line.ask(temperature=-1)
    own, seen = await _last(line)
    assert [reply.status, own["state"], seen["state"]] == [400, "refused", "refused"]
    assert seen["error"] == own["error"]
    await line.ask()
    assert [row["attempt"] for row in await line.rows()] == [0, 0]


async def test_a_client_that_leaves_leaves_the_engine_too(line: Line) -> None:
    await line.recorder.play("main", line.run, playbook())
    await line.behind.play("default", line.run, playbook(gate="late"))
    call = line.ask()
    await line.behind.wait("held", run=line.run)
    call.leave()
    await line.behind.wait("aborted", run=line.run)
    await line.recorder.wait("aborted", run=line.run)


@pytest.mark.parametrize(
    ("turn", "why"),
    [
        ({"fault": {"name": "cut_stream"}}, r"^a real engine has no fault cut_stream \(scopes\.main\.turns\[0\]\)$"),
        ({"text": None, "reasoning": None, "calls": [], "ids": ["{tag}"]}, "chooses its tokens itself"),
        ({"message": {"content": "{tag}"}}, "parses its answers itself"),
        ({"finish": "length"}, "does not end by length when told to"),
    ],
    ids=["a fault", "ids", "a parsed answer", "another end"],
)
async def test_what_only_the_fake_can_play_is_refused_with_the_reason(
    line: Line, turn: dict[str, JSON], why: str
) -> None:
    with pytest.raises(EngineCannot, match=why):
        await line.recorder.play("main", line.run, playbook(**turn))


async def test_what_only_the_fake_can_be_is_refused_with_the_reason_whatever_it_is_to_play(line: Line) -> None:
    why = "^a real engine has max_model_len 4096, and not 8$"
    with pytest.raises(EngineCannot, match=why):
        await line.recorder.tenant("short", {**TENANT, "max_model_len": 8})
    with pytest.raises(EngineCannot, match=why):
        await line.recorder.play("short", line.run, playbook())


def test_without_a_real_engine_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--engine", "http://127.0.0.1:1"]) == 4
    said = capsys.readouterr().err
    assert said.startswith(
        "engine-recorder: --engine http://127.0.0.1:1: expected a vLLM that lists its models, seen: "
    )
    assert said.count("\n") == 1


async def _last(line: Line) -> tuple[JSON, JSON]:
    """Of calls that no run is known of."""
    return (await line.behind.ledger())[-1], (await line.recorder.ledger())[-1]
