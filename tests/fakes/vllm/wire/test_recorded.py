"""Every recorded case of a real vLLM 0.32, replayed against the fake over a socket."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from fakes.vllm.answers import AnswerOptions, Identity
from fakes.vllm.calls import World
from fakes.vllm.completion_answer import completion_body
from fakes.vllm.detokenize import detokenizer
from fakes.vllm.forms import Material
from fakes.vllm.gates import Gates
from fakes.vllm.ledger import Ledger
from fakes.vllm.profiles import profile
from fakes.vllm.tenants import Tenants
from tests.fakes.vllm.wire.alike import anonymous, forms
from tests.fakes.vllm.wire.recording import (
    CONFIG,
    Recorded,
    RecordedEngine,
    recorded_cases,
    recorded_encoding,
    sample_of,
)
from tests.fakes.vllm.wire.serving_here import Reply, Served, serving

CASES = recorded_cases()

PROMPT_LOG_PROBS = ("completion echo", "completion prompt_logprobs")

# Cases whose bodies only the real weights decide; their form must be the recorded one.
FORM_ONLY = {
    "ERR chat ctx prompt+max": "315 tokens of noise, ids not recorded",
    **dict.fromkeys(PROMPT_LOG_PROBS, "values of prompt log probs; fed to the assembler in a test of their own"),
}


@pytest.fixture(scope="module")
def engine() -> RecordedEngine:
    tenants = Tenants()
    tenants.put("default", CONFIG)
    return RecordedEngine(recorded_encoding(), tenants)


@pytest.fixture(scope="module")
def fake(engine: RecordedEngine) -> Iterator[Served]:
    tenants = engine._engine._tenants
    world = World(tenants, Ledger(), Gates(), engine, recorded_encoding(), "0.32")
    with serving(world) as served:
        yield served


def _send(fake: Served, case: dict[str, Any]) -> Reply:
    """The request of a case; three are rebuilt, as the recording does not hold them whole."""
    method, path = case["method"], case["path"]
    if case["case"] == "ERR bad json":
        return fake.call(method, path, b"{bad")
    if case["case"] == "ERR content type":
        return fake.call(method, path, b"{}", {"content-type": "text/plain"})
    if "request_raw" in case:
        content = "hello world " * 1000
        body = {"model": "tiny", "messages": [{"role": "user", "content": content}]}
        return fake.call(method, path, body | {"stream": case["case"].startswith("ERR stream")})
    return fake.call(method, path, case.get("request"))


@pytest.mark.parametrize("case", CASES, ids=[f"{n:02}-{c['case']}" for n, c in enumerate(CASES)])
def test_a_recorded_case_is_answered_alike(fake: Served, engine: RecordedEngine, case: dict[str, Any]) -> None:
    engine.case = case
    reply = _send(fake, case)
    assert reply.status == case["status"], reply.text
    for name in ("content-type", "vary"):
        assert reply.headers.get(name) == case["headers"].get(name)
    if case["case"] not in FORM_ONLY:
        # The recording lost the newlines that end a stream.
        assert anonymous(reply.text).rstrip("\n") == anonymous(case["body"])
    else:
        assert forms(reply.text) == forms(case["body"])


@pytest.mark.parametrize("name", PROMPT_LOG_PROBS)
def test_a_completion_with_prompt_log_probs_is_assembled_as_recorded(name: str) -> None:
    case = next(case for case in CASES if case["case"] == name)
    body = json.loads(case["body"])
    choice, request = body["choices"][0], case["request"]
    encoding = recorded_encoding()
    prompt = choice["prompt_token_ids"] or request["prompt"]
    sample = sample_of(Recorded(encoding).entries(_generated_part(case, len(prompt))))
    options = AnswerOptions(
        logprobs="logprobs" in request,
        top_logprobs=request.get("logprobs"),
        prompt_logprobs=request.get("prompt_logprobs"),
        return_token_ids=request.get("return_token_ids", False),
        echo=request.get("echo", False),
        reasoning_parser=False,
        tool_parser=False,
    )
    names = Identity(body["id"], body["created"], "tiny", "")
    material = Material(names, [prompt], [[sample]], options, detokenizer(encoding), profile("0.32"))
    made = completion_body(material, [choice["prompt_logprobs"]])
    assert json.dumps(made) == json.dumps(body)


def _generated_part(case: dict[str, Any], prompt_tokens: int) -> dict[str, Any]:
    """The case with its log probs reduced to those of generated tokens."""
    body = json.loads(case["body"])
    for choice in body["choices"]:
        if choice["logprobs"] is not None:
            choice["logprobs"] = {key: row[prompt_tokens:] for key, row in choice["logprobs"].items()}
    return case | {"body": json.dumps(body)}
