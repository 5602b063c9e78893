"""Real agents in a rollout: a spawned proxy, limits from it where they ask, and every sampled token back."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conformance.oracle import triples
from conformance.oracle.rollouts import Sampled
from conformance.systems.routing import LONG_LENGTH, SERVED
from fakes.vllm.tags import format_tag
from harness_shims.launching import NOWHERE
from harness_shims.rollouts import claude_code_harness, codex_harness, opencode_harness

if TYPE_CHECKING:
    from conformance.gauge.world import World

pytestmark = pytest.mark.real_harness

JSON = Any

MODEL = "policy"
PROFILE = f"""\
routes:
  {MODEL}: {{type: model, target: {SERVED}, base_url: "${{ENGINE}}", token_capture_engine: vllm}}
"""


@dataclass(frozen=True)
class Real:
    """One agent: how it is set up for a prompt, and the call that looks around in its own words."""

    harness: Callable[[Path, str, Path], JSON]
    call: JSON
    side_calls: int = 0


def _opencode(program: Path, prompt: str, home: Path) -> JSON:
    home.mkdir()
    return opencode_harness(program, prompt, home=home, before=["git init -q"], elsewhere=NOWHERE)


LOOK = "echo one  # {tag}"
AGENTS = {
    "opencode": Real(_opencode, {"name": "bash", "arguments": {"command": LOOK, "description": "Look"}}, side_calls=1),
    "claude-code": Real(
        lambda program, prompt, _: claude_code_harness(program, prompt, elsewhere=NOWHERE),
        {"name": "Bash", "arguments": {"command": LOOK, "description": "Look"}},
    ),
    "codex": Real(
        lambda program, prompt, _: codex_harness(program, prompt, elsewhere=NOWHERE),
        {"name": "exec_command", "arguments": {"cmd": LOOK}},
    ),
}


def script(call: JSON) -> JSON:
    turns = [{"calls": [call]}, {"text": "{tag} It is done."}]
    return {"about": "Looks, then ends.", "sampling": "faithful", "scopes": {"main": {"turns": turns}}}


@pytest.mark.parametrize("name", AGENTS)
def test_a_real_agent_goes_through_the_whole_life_of_a_rollout(
    world: "World", installed: dict[str, dict[str, str]], tmp_path: Path, name: str
) -> None:
    real = AGENTS[name]
    entry = installed.get(name, {"skipped": "it is not installed; run ci/real-harness"})
    if "skipped" in entry:
        pytest.skip(f"{name}: {entry['skipped']}")
    run = world.next_run()
    asyncio.run(world.engine.play("main", run, script(real.call)))
    (tmp_path / "routes.yaml").write_text(PROFILE)
    agent = real.harness(Path(entry["program"]), f"{format_tag(run, 0, 0)} Look.", tmp_path / "home")
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
    seen = (answer["error"], answer["harness"]["exit_code"], answer["context_length"])
    assert seen == (None, 0, LONG_LENGTH), Path(answer["harness"]["log"]).read_text()[-2000:]
    rows = [row for row in asyncio.run(world.engine.ledger(run=run)) if row["rule"] is None and row["turn"] is not None]
    due = [
        Sampled(str(row["turn"]), row["prompt_token_ids"], row["generation_token_ids"], row["generation_log_probs"])
        for row in sorted(rows, key=lambda row: (row["turn"], row["attempt"]))
        if not _is_title(row)
    ]
    assert len(due) == 2
    judged = triples.one_clean_chain(answer, due)
    assert judged, judged
    assert [one["why"] for one in answer["excluded"]] == ["side_call"] * real.side_calls, "opencode's title"


def _is_title(row: dict[str, object]) -> bool:
    """opencode's title asks with the task's own tag, and offers no tools."""
    request = row["request"]
    assert isinstance(request, dict)
    return "tools" not in json.loads(request["body_text"])
