"""The real opencode in a rollout: spawned proxy, its own ids, limits from the proxy, and every sampled token back."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance.oracle import triples
from conformance.oracle.rollouts import Sampled
from conformance.systems.routing import LONG_LENGTH, SERVED
from fakes.vllm.tags import format_tag
from harness_shims.rollouts import opencode_harness

if TYPE_CHECKING:
    from conformance.gauge.world import World

pytestmark = pytest.mark.real_harness

HARNESS = "opencode"
MODEL = "policy"
PROFILE = f"""\
routes:
  {MODEL}: {{type: model, target: {SERVED}, base_url: "${{ENGINE}}", token_capture_engine: vllm}}
"""
SCRIPT = {
    "about": "Looks, then ends.",
    "sampling": "faithful",
    "scopes": {
        "main": {
            "turns": [
                {"calls": [{"name": "bash", "arguments": {"command": "echo one  # {tag}", "description": "Look"}}]},
                {"text": "{tag} It is done."},
            ]
        }
    },
}


def test_a_real_agent_goes_through_the_whole_life_of_a_rollout(
    world: "World", installed: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    entry = installed.get(HARNESS, {"skipped": "it is not installed; run ci/real-harness"})
    if "skipped" in entry:
        pytest.skip(f"{HARNESS}: {entry['skipped']}")
    run = world.next_run()
    asyncio.run(world.engine.play("main", run, SCRIPT))
    (tmp_path / "routes.yaml").write_text(PROFILE)
    (tmp_path / "home").mkdir()
    agent = opencode_harness(
        Path(entry["program"]),
        f"{format_tag(run, 0, 0)} Look.",
        home=tmp_path / "home",
        before=["git init -q"],
        elsewhere="http://127.0.0.1:1",
    )
    spawn = {
        "command": ["trackgauge", "proxy"],
        "profile": str(tmp_path / "routes.yaml"),
        "variables": {"ENGINE": "{backend}/v1"},
    }
    request = {
        "id": "real",
        "folder": str(tmp_path / "rollout"),
        "model": MODEL,
        "backends": f"{world.engine.url}/t/main",
        "proxy": {"spawn": spawn},
        "harness": agent,
    }
    (tmp_path / "spec.json").write_text(json.dumps(request))
    words = [sys.executable, "-m", "conformance.reference.rollout", str(tmp_path / "spec.json")]
    ran = subprocess.run(words, capture_output=True, check=True)
    answer = json.loads(ran.stdout.splitlines()[-1])
    assert (answer["error"], answer["harness"]["exit_code"], answer["context_length"]) == (None, 0, LONG_LENGTH)
    rows = [row for row in asyncio.run(world.engine.ledger(run=run)) if row["rule"] is None and row["turn"] is not None]
    due = [
        Sampled(str(row["turn"]), row["prompt_token_ids"], row["generation_token_ids"], row["generation_log_probs"])
        for row in sorted(rows, key=lambda row: (row["turn"], row["attempt"]))
        if not _is_title(row)
    ]
    judged = triples.one_clean_chain(answer, due)
    assert judged, judged
    assert [one["why"] for one in answer["excluded"]] == ["side_call"], "the title"


def _is_title(row: dict[str, object]) -> bool:
    """opencode's title asks with the task's own tag, and offers no tools."""
    request = row["request"]
    assert isinstance(request, dict)
    return "tools" not in json.loads(request["body_text"])
