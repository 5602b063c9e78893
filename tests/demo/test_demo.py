"""The demo accounts for every token, and says the same twice."""

import subprocess
import sys

import pytest

from conformance.demo.casts import CASTS, Cast, Kind
from fakes.vllm.reading import read_playbook


def run_demo() -> tuple[int, str]:
    command = [sys.executable, "-m", "conformance.cli", "demo"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout


def test_the_demo_accounts_for_every_token_and_says_the_same_twice() -> None:
    status, table = run_demo()
    assert status == 0
    assert all(cast.name in table for cast in CASTS)
    assert run_demo() == (status, table)


@pytest.mark.parametrize("cast", CASTS, ids=lambda cast: cast.name)
def test_every_conversation_of_a_cast_is_a_good_playbook_or_says_why_it_is_not_played(cast: Cast) -> None:
    for kind in Kind:
        if kind not in cast.unrecorded:
            read_playbook(cast.playbook(kind), f"{kind}")
