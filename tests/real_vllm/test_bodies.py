"""What a real vLLM answers, the fake answers too: the same keys in the same order, the same nulls, types and values.

The fake is given the ids and log probs that the real one sampled, and nothing else of its answer.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from fakes.vllm.calls import World
from fakes.vllm.gates import Gates
from fakes.vllm.ledger import Ledger
from fakes.vllm.tenants import TenantConfig, Tenants
from tests.fakes.vllm.wire.alike import anonymous, forms
from tests.fakes.vllm.wire.recording import RecordedEngine, recorded_encoding
from tests.fakes.vllm.wire.serving_here import Reply, Served, call, serving
from tests.fakes.vllm.wire.test_recorded import PROMPT_LOG_PROBS
from tests.real_vllm.bodies import Case, cases
from tests.real_vllm.engine import NAMES

pytestmark = pytest.mark.real_vllm

CONFIG = TenantConfig(models=list(NAMES), max_model_len=1024, tool_parser="hermes", reasoning_parser="qwen3")

# What of a body cannot be the same, and why; its form is compared all the same.
FORM_ONLY = {
    **dict.fromkeys(PROMPT_LOG_PROBS, "log probs of a prompt, which only the weights give"),
}


class Fake:
    """The fake on a socket, whose engine samples what a real answer says was sampled."""

    def __init__(self, engine: RecordedEngine, served: Served) -> None:
        self._engine = engine
        self._served = served

    def ask(self, case: Case, real: Reply) -> Reply:
        self._engine.case = {**case, "status": real.status, "body": real.text}
        return self._served.call(case["method"], case["path"], case.get("request"))


@pytest.fixture(scope="module")
def fake() -> Iterator[Fake]:
    tenants, encoding = Tenants(), recorded_encoding()
    tenants.put("default", CONFIG)
    engine = RecordedEngine(encoding, tenants)
    with serving(World(tenants, Ledger(), Gates(), engine, encoding, "0.32")) as served:
        yield Fake(engine, served)


def _ids_are_told(body: str) -> bool:
    """Whether a body says all that the fake has to be told: the ids, and log probs where it has any."""
    return '"token_ids":[' in body or '"choices"' not in body


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["case"])
def test_the_fake_answers_as_a_real_vllm_does(real: str, fake: Fake, case: Case, record_property: Any) -> None:
    seen = call(real, case["method"], case["path"], case.get("request"))
    answer = fake.ask(case, seen)
    assert (answer.status, answer.headers.get("content-type")) == (seen.status, seen.headers.get("content-type"))
    whole = case["case"] not in FORM_ONLY and _ids_are_told(seen.text)
    record_property("body_compared", "whole" if whole else "form")
    same = anonymous if whole else forms
    assert same(answer.text) == same(seen.text)


def test_at_least_forty_bodies_are_compared_in_both_ways() -> None:
    streamed = [case for case in cases() if (case.get("request") or {}).get("stream")]
    assert len(streamed) >= 20
    assert len(cases()) - len(streamed) >= 40
