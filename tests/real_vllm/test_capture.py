"""The reference proxy before a real vLLM: what it records is what that engine answered, to the last bit."""

import asyncio
import itertools
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from conformance.oracle import chat_answers, chat_stream, records, rollouts
from conformance.systems import profiles
from conformance.systems.engine import FakeEngine, start_recorder
from conformance.systems.proxy import ProxyUnderTest
from conformance.systems.proxy_start import start_proxy
from conformance.systems.rebuild import RebuildUnderTest
from tests.fakes.vllm.wire.serving_here import Reply, call
from tests.real_vllm.bodies import ASKED, CAPTURED, QUIET, TEXTS, TOOL
from tests.real_vllm.engine import LENGTH, NAMES

JSON = Any
pytestmark = pytest.mark.real_vllm

ROUTES = """
defaults: {{api_key: dummy, format: openai}}
routes:
  policy-model: {{type: model, target: tiny, base_url: "{engine}/t/main/v1", token_capture_engine: vllm}}
"""
TENANT = {"models": list(NAMES), "max_model_len": LENGTH, "tool_parser": "hermes", "reasoning_parser": "qwen3"}
NUMBERS = itertools.count(1)


@dataclass
class Line:
    """vLLM, what was recorded of it, the proxy before it and a rebuild behind it."""

    engine: FakeEngine
    system: ProxyUnderTest
    rebuild: RebuildUnderTest

    def session(self) -> str:
        return f"real-{next(NUMBERS):03}"

    def ask(self, session: str | None, path: str = "/v1/chat/completions", **body: JSON) -> Reply:
        head = {} if session is None else {"proxy_x_session_id": session}
        return call(self.system.url, "POST", path, {"model": "policy-model", "temperature": 0, **body}, head)

    def records(self, session: str) -> list[JSON]:
        reply = call(self.system.url, "GET", f"/v1/sessions/{session}/completions")
        found: list[JSON] = reply.json()["completions"] if reply.status == 200 else []
        return found

    def rows(self, since: int = 0) -> list[JSON]:
        told = asyncio.run(self.engine.ledger(tenant="main"))
        return [row for row in told if row["endpoint"] in ("chat", "completions")][since:]


@pytest.fixture(scope="module")
def line(real: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    place = tmp_path_factory.mktemp("line")
    with ExitStack() as ends:
        (place / "engine").mkdir()
        engine = start_recorder(place / "engine", real)
        ends.callback(engine.close)
        asyncio.run(engine.tenant("main", TENANT))
        routes = ROUTES.format(engine=engine.url)
        system = start_proxy(profiles.find("reference"), engine.url, place / "log", config_text=routes)
        ends.callback(system.close)
        rebuild = RebuildUnderTest(profiles.find("reference-rebuild"), place)
        ends.callback(rebuild.close)
        yield Line(engine, system, rebuild)


def _lawful(captured: list[JSON], rows: list[JSON], count: int) -> None:
    assert [len(captured), len(rows)] == [count, count]
    judged = records.law(captured, rows)
    assert judged, judged
    judged = records.none_lost(captured, rows)
    assert judged, judged
    assert [record["is_valid"] for record in captured] == [True] * count
    assert not list(filter(None, map(records.broken_promise, captured)))


@pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
def test_each_form_of_answer_is_recorded_as_sampled_and_read_alike_streamed_and_buffered(line: Line, text: str) -> None:
    session, since = line.session(), len(line.rows())
    asked: dict[str, JSON] = {
        "messages": ASKED,
        "tools": [TOOL],
        "max_tokens": 200,
        "structured_outputs": {"choice": [text]},
    }
    whole, stream = line.ask(session, **asked), line.ask(session, **asked, stream=True)
    assert [whole.status, stream.status] == [200, 200]
    _lawful(line.records(session), line.rows(since), 2)
    judged = chat_stream.grammar(stream.text)
    assert judged, judged
    one, other = chat_answers.buffered(whole.json()), chat_answers.reassemble(stream.text)
    for answer in (one, other):
        for tool_call in answer.tool_calls:
            tool_call.pop("id")
            tool_call.pop("index", None)
    assert (one.content, one.reasoning, one.tool_calls, one.finish_reason) == (
        other.content,
        other.reasoning,
        other.tool_calls,
        other.finish_reason,
    )
    judged = chat_answers.unasked([whole.json(), *chat_answers.chunks(stream.text)[1]])
    assert judged, judged


def test_a_conversation_is_trained_by_nothing_but_what_the_engine_sampled(line: Line) -> None:
    session, since = line.session(), len(line.rows())
    messages = list(ASKED)
    for text in ("I look.", "A header is missing.", "It is repaired."):
        reply = line.ask(session, messages=messages, max_tokens=60, structured_outputs={"choice": [text]}, **QUIET)
        said = reply.json()["choices"][0]["message"]
        messages = [*messages, {"role": "assistant", "content": said["content"]}, {"role": "user", "content": "Go on."}]
    captured, rows = line.records(session), line.rows(since)
    _lawful(captured, rows, 3)
    answer = line.rebuild.ask_now({"envelope": {"schema_version": 1, "session_id": session, "completions": captured}})
    truth = {
        record["uuid"]: rollouts.Sampled(
            record["uuid"], row["prompt_token_ids"], row["generation_token_ids"], row["generation_log_probs"]
        )
        for record, row in zip(captured, rows, strict=True)
    }
    for judged in (rollouts.never_wrong(answer, truth), rollouts.conserved(answer, truth)):
        assert judged, judged


def test_a_cut_answer_keeps_its_reason(line: Line) -> None:
    session, since = line.session(), len(line.rows())
    line.ask(session, messages=ASKED, max_tokens=3, structured_outputs={"choice": ["It is the header."]}, **QUIET)
    [record] = line.records(session)
    _lawful([record], line.rows(since), 1)
    assert record["finish_reason"] == "length"
    assert len(record["generation_token_ids"]) == 3


def test_a_call_without_a_session_is_passed_on_and_not_recorded(line: Line) -> None:
    since = len(line.rows())
    body = {**CAPTURED, "messages": ASKED, "max_tokens": 2}
    reply = line.ask(None, **body)
    [row] = line.rows(since)
    assert json.loads(row["request"]["body_text"]) == {**body, "model": "tiny"}
    assert reply.json()["choices"][0]["token_ids"] == row["generation_token_ids"]


def test_a_prompt_that_is_too_long_comes_back_as_the_engine_said_and_leaves_nothing_valid(line: Line) -> None:
    session = line.session()
    reply = line.ask(session, messages=[{"role": "user", "content": "hello world " * 1000}])
    assert reply.status == 400
    assert "maximum context length is 1024" in reply.text
    assert not [record for record in line.records(session) if record["is_valid"]]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages", {"messages": [{"role": "user", "content": "Look."}], "max_tokens": 8}),
        ("/v1/responses", {"input": "Look.", "max_output_tokens": 8}),
    ],
    ids=["messages", "responses"],
)
@pytest.mark.parametrize("stream", [False, True], ids=["buffered", "streamed"])
def test_other_dialects_are_recorded_as_sampled(line: Line, path: str, body: dict[str, JSON], stream: bool) -> None:
    session, since = line.session(), len(line.rows())
    assert line.ask(session, path, **body, stream=stream).status == 200
    _lawful(line.records(session), line.rows(since), 1)
