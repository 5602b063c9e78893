"""With continuity every later turn of every agent is contiguous and clean; without it none is."""

import subprocess
import sys

from conformance.demo.casts import CASTS
from conformance.demo.continuity import WAYS, playbook
from fakes.vllm.reading import read_playbook


def test_each_agent_is_partial_as_rendered_and_clean_when_it_is_continued() -> None:
    command = [sys.executable, "-m", "conformance.cli", "demo", "--continuity"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if any(f" {way.name} " in line for way in WAYS)]
    assert len(lines) == len(CASTS) * len(WAYS)
    assert all(("clean" in line) is ("as rendered" not in line) for line in lines)
    assert done.stdout.count("fallback {}") == 2


def test_what_the_model_does_can_be_played_for_every_agent() -> None:
    for one in CASTS:
        read_playbook(playbook(one), one.name)
