"""Whatever ends a run on Ray, no process of it is left: clusters, workers, proxies, harnesses."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.timeout(300)

HARNESS_SECONDS = 120.0

SCENARIO = """
import pytest
from conformance.gauge.covers import covers
from conformance.scenarios.ray.conftest import cluster, ray_runner, shared_ray_runner
from conformance.scenarios.spawn.rollouts import rollouts

pytestmark = [pytest.mark.ray, pytest.mark.anyio, pytest.mark.timeout(240)]

@pytest.fixture
def anyio_backend():
    return "asyncio"

@covers("RAY-001")
async def test_it(ray_runner, tmp_path, check):
    async with rollouts(ray_runner, tmp_path) as asked:
        going, proxy, harness = await asked.raised()
        await harness.do("fork", session=True)
        await asked.next("harness's child")
        print("PLAYING", flush=True)
        await going.answer(200)
"""


def left_of(below: list[psutil.Process]) -> list[str]:
    """What still runs, after at most 30 seconds."""
    _, alive = psutil.wait_procs(below, timeout=30)
    return [" ".join(each.cmdline())[:200] for each in alive if each.is_running()]


def places() -> set[str]:
    """The folders of clusters."""
    return {str(path) for path in Path("/tmp").glob("tgr-*")}


def test_a_runner_with_a_cluster_of_its_own_takes_it_along(tmp_path: Path) -> None:
    before = places()
    harness = {"name": "shell", "command": "touch there; read line < gate"}
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps({"id": "r", "folder": str(tmp_path / "out"), "model": "m", "harness": harness}))
    words = [sys.executable, "-m", "conformance.reference.rollout", "--ray", str(spec)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as runner:
        assert runner.stdout is not None
        assert json.loads(runner.stdout.readline())["event"] == "task"
        below = psutil.Process(runner.pid).children(recursive=True)
        assert any(each.name() == "raylet" for each in below)
        answer = json.loads(runner.stdout.readline())
    assert runner.returncode == 0
    assert answer["harness"]["exit_code"] == 1, "there is no gate to read"
    assert left_of(below) == []
    assert places() - before == set()


def test_guards_that_are_killed_on_a_worker_leave_nothing_behind(tmp_path: Path) -> None:
    script = "setsid sleep 1000 & echo $! > child; echo $PPID > keeper; mkfifo gate; read line < gate"
    harness = {"name": "shell", "command": script, "grace_seconds": 0.2}
    victims = ("keeper", "warden", "both")
    asked = [{"id": name, "folder": str(tmp_path / name), "model": "m", "harness": harness} for name in victims]
    spec = tmp_path / "spec.jsonl"
    spec.write_text("\n".join(map(json.dumps, asked)))
    words = [sys.executable, "-m", "conformance.reference.rollout", "--ray", str(spec)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as runner:
        assert runner.stdout is not None
        children = []
        for name in victims:
            children.append(psutil.Process(written(tmp_path / name, "child")))
            keeper = psutil.Process(written(tmp_path / name, "keeper"))
            guards = {"keeper": [keeper], "warden": keeper.parents()[:1], "both": [*keeper.parents()[:1], keeper]}
            for guard in guards[name]:
                guard.kill()
        answers = [told for told in map(json.loads, runner.stdout) if "event" not in told]
    assert {each["harness"]["exit_code"] for each in answers} <= {-signal.SIGKILL, -signal.SIGTERM}
    assert (len(answers), runner.returncode, left_of(children)) == (len(victims), 0, [])


def written(place: Path, name: str) -> int:
    """The number that the harness wrote down, once it did."""
    deadline = time.monotonic() + HARNESS_SECONDS
    while not (found := "".join(path.read_text() for path in place.glob(f"*/workspace/{name}"))).endswith("\n"):
        assert time.monotonic() < deadline, f"no harness came to write {name}"
        time.sleep(0.02)
    return int(found)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "ctrl-c"])
def test_a_run_that_is_ended_in_the_middle_of_a_rollout_leaves_no_process(tmp_path: Path, number: int) -> None:
    file = tmp_path / "scenarios" / "test_stuck.py"
    file.parent.mkdir()
    file.write_text(SCENARIO, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-m", "ray", "--import-mode=importlib", "-s", "-p", "no:cacheprovider"]
    with subprocess.Popen(
        [*command, f"--basetemp={tmp_path / 'files'}", str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as run:
        assert run.stdout is not None
        seen = []
        for line in run.stdout:
            seen.append(line)
            if "PLAYING" in line:
                break
        else:
            pytest.fail("".join(seen))
        below = psutil.Process(run.pid).children(recursive=True)
        names = " ".join(" ".join(each.cmdline()) for each in below)
        assert all(name in names for name in ("raylet", "gcs_server", "ray::", "puppet.py"))
        os.kill(run.pid, number)
        run.stdout.read()
    assert left_of(below) == []
