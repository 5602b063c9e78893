"""``trackgauge repro``: one requirement or scenario alone, and everything held for a look."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.gauge.launch import SCENARIOS
from conformance.gauge.repro import NothingToPlay, selection
from conformance.requirements.catalogue import load
from conformance.systems.servers import accepts
from tests.gauge.suite import Suite

CATALOGUE = load()
SMOKE = "test_a_stream_is_well_formed_and_says_what_the_engine_said"
FILE = "streams/test_chat_streams.py"
REPRO = [sys.executable, "-m", "conformance.cli", "repro"]


@pytest.mark.parametrize(
    ("name", "chosen"),
    [
        pytest.param("STR-002", "--covering=STR-002 --judging=STR-002", id="a requirement"),
        pytest.param("str-002", "--covering=STR-002 --judging=STR-002", id="in small letters"),
        pytest.param(f"{FILE}::{SMOKE}", f"{SCENARIOS}/{FILE}::{SMOKE}", id="as a report names it"),
        pytest.param(f"{FILE}::{SMOKE}[a-b]", f"{SCENARIOS}/{FILE}::{SMOKE}[a-b]", id="one of several"),
        pytest.param(SMOKE, f"{SCENARIOS}/{FILE}::{SMOKE}", id="by its bare name"),
    ],
)
def test_a_requirement_and_a_scenario_can_be_named(name: str, chosen: str) -> None:
    assert selection(name, CATALOGUE) == chosen.split()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        pytest.param("STR-092", "STR-092: no such requirement; did you mean STR-0", id="no such requirement"),
        pytest.param("STR-0077", "no requirement and no scenario; did you mean STR-007?", id="one figure too many"),
        pytest.param(SMOKE[:-1], f"no requirement and no scenario; did you mean {SMOKE}", id="misspelt"),
        pytest.param(f"{FILE}::{SMOKE}s", f"has no such scenario; did you mean {SMOKE}", id="misspelt in its file"),
        pytest.param("nothing", "nothing: no requirement and no scenario; results.ndjson names", id="nothing like it"),
    ],
)
def test_what_is_nothing_ends_with_one_line_that_knows_better(name: str, told: str) -> None:
    with pytest.raises(NothingToPlay, match=re.escape(told)) as raised:
        selection(name, CATALOGUE)
    assert "\n" not in str(raised.value)


def test_what_no_scenario_can_judge_says_why() -> None:
    excluded = next(one for one in CATALOGUE.values() if one.excluded is not None)
    with pytest.raises(NothingToPlay, match=re.escape(excluded.excluded or "")):
        selection(excluded.id, CATALOGUE)


def test_an_unknown_id_ends_the_command_with_status_2(tmp_path: Path) -> None:
    done = subprocess.run([*REPRO, "STR-999"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("asked", "status"), [("CAP-005", 1), ("CAP-002", 0), ("CAP-003", 1)], ids=["fails", "holds", "is left open"]
)
def test_the_requirement_that_was_asked_for_decides_alone_and_whatever_its_level(
    suite: Suite, asked: str, status: int
) -> None:
    """CAP-005 is a SHOULD."""
    ran = suite.run(
        '@covers("CAP-001", "CAP-002", "CAP-005")\ndef test_it(check):\n'
        '    check("CAP-001", False)\n    check("CAP-002", True)\n    check("CAP-005", False)\n'
        '@covers("CAP-003", "CAP-006")\ndef test_open(check):\n    check.need("CAP-006", False)\n',
        f"--covering={asked}",
        f"--judging={asked}",
    )
    assert ran.status == status
    assert [line["requirement"] for line in ran.lines if line.get("gates")] == [asked]


@pytest.mark.parametrize("way", ["Enter", "Ctrl-C"])
def test_everything_is_held_for_a_look_and_gone_afterwards(tmp_path: Path, way: str) -> None:
    running = subprocess.Popen(
        [*REPRO, SMOKE, "--hold"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
        start_new_session=True,
    )
    assert running.stdin is not None
    assert running.stdout is not None
    said = []
    for line in running.stdout:
        said.append(line)
        if line.startswith("press Enter"):
            break
    text = "".join(said)
    engine, proxy = re.findall(r"^  (?:engine|proxy) +(http://\S+)", text, re.MULTILINE)
    assert "everything held" in text
    assert accepts(engine)
    assert accepts(proxy)
    if way == "Enter":
        running.stdin.write("\n")
        running.stdin.flush()
    else:
        os.killpg(running.pid, signal.SIGINT)  # as a terminal tells all processes in front
    rest = running.stdout.read()
    running.stdin.close()
    running.stdout.close()
    assert running.wait(30) == 0, rest
    assert not accepts(engine)
    assert not accepts(proxy)
    with pytest.raises(ProcessLookupError):
        os.killpg(running.pid, 0)
