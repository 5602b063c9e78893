"""A sample depends on playbook, tenant, run, scope, turn and attempt: on nothing else."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.vllm import tokenizer
from fakes.vllm.engine import PlaybookEngine
from fakes.vllm.sample import Sample
from fakes.vllm.tenants import TenantConfig, Tenants
from tests.fakes.vllm.engine.making import Conversation, playbook_from

SCRIPT = """
about: Three turns that drift, the second with attempts of its own.
sampling: drifting
scopes:
  main:
    turns:
      - calls: [{name: execute_bash, arguments: {command: "ls  # {tag}"}}]
      - {text: Look again., attempts: fresh}
      - text: Done.
"""
IN_ANOTHER_PROCESS = """
import json
from tests.fakes.vllm.engine.test_determinism import play
print(json.dumps(play([(7, "t"), (8, "t"), (7, "t"), (7, "u"), (7, "t")])))
"""


def play(order: list[tuple[int, str]]) -> dict[str, list[list[float]]]:
    """Let conversations (run, tenant) take turns in this order; ids and log probs by conversation."""
    tenants = Tenants()
    engine = PlaybookEngine(tokenizer.load(), tenants)
    talks: dict[tuple[int, str], Conversation] = {}
    seen: dict[str, list[list[float]]] = {}
    for run, name in order:
        if (run, name) not in talks:
            tenant = tenants.get(name) or tenants.put(name, TenantConfig())
            tenant.register(run, playbook_from(SCRIPT))
            talks[run, name] = Conversation(engine, name, run)
        drawn = talks[run, name].ask()
        talks[run, name].take(drawn)
        seen.setdefault(f"{run} {name}", []).append(_flat(drawn.samples[0]))
    return seen


def _flat(sample: Sample) -> list[float]:
    return [*sample.token_ids, *sample.log_probs]


def test_another_process_samples_the_same_bits() -> None:
    here = play([(7, "u"), (7, "t"), (7, "t"), (7, "t"), (8, "t")])
    root = Path(__file__).parents[4]
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS],
        capture_output=True,
        check=True,
        cwd=root,
        env=environment,
        text=True,
    )
    assert json.loads(done.stdout) == here


@settings(max_examples=25, deadline=None)
@given(st.permutations([(run, tenant) for run in (7, 8) for tenant in ("t", "u")] * 3))
def test_the_order_in_which_conversations_take_turns_changes_nothing(order: list[tuple[int, str]]) -> None:
    assert play(order) == play(sorted(order))


def test_no_two_conversations_or_turns_or_attempts_are_alike() -> None:
    tenants = Tenants()
    engine = PlaybookEngine(tokenizer.load(), tenants)
    rows: list[tuple[float, ...]] = []
    for name in ("t", "u"):
        tenant = tenants.put(name, TenantConfig())
        for run in range(20):
            tenant.register(run, playbook_from(SCRIPT))
            talk = Conversation(engine, name, run)
            talk.take(talk.ask())
            rows += [tuple(talk.ask().samples[0].log_probs) for _ in range(3)]
    values = list(itertools.chain.from_iterable(rows))
    assert len(set(rows)) == len(rows)
    assert len(set(values)) > 0.999 * len(values)


def test_the_way_the_proxy_rendered_the_prompt_changes_no_sample() -> None:
    samples = []
    for extra in ({}, {"tools": None}, {"template_kwargs": {"other": 1}}):
        tenants = Tenants()
        tenants.put("t", TenantConfig()).register(7, playbook_from(SCRIPT))
        talk = Conversation(PlaybookEngine(tokenizer.load(), tenants), "t", 7)
        samples.append(talk.ask(**extra).samples)
    assert samples[0] == samples[1] == samples[2]
