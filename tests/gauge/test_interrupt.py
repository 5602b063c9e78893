"""However a run ends, no process of it is left. Real runs, real signals."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

SCENARIO = """
import pytest
from conformance.gauge.covers import covers

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

@pytest.fixture
def anyio_backend():
    return "asyncio"

@covers("CAP-001")
async def test_it(scene, rebuild, check):
    print("PLAYING", flush=True)
    await scene.engine.wait("finished", run=scene.run, seconds=300)
"""


PYTEST = ("pytest", "-m", "e2e", "--import-mode=importlib")


def deaf_to_control_c() -> None:
    """As a shell makes what it runs in the background."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class Run:
    """A run that stands in the middle of a scenario, with all its servers up."""

    def __init__(
        self, folder: Path, *arguments: str, program: tuple[str, ...] = PYTEST, in_background: bool = False
    ) -> None:
        file = folder / "scenarios" / "test_stuck.py"
        file.parent.mkdir()
        file.write_text(SCENARIO, encoding="utf-8")
        own = [f"--basetemp={folder / 'files'}"] if program is PYTEST else []
        command = [sys.executable, "-m", *program, "-s", "-p", "no:cacheprovider", *own]
        self.process = subprocess.Popen(
            [*command, *arguments, str(file)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            preexec_fn=deaf_to_control_c if in_background else None,
        )
        self.output = ""
        self.below: list[psutil.Process] = []

    def wait_until_it_plays(self, marks: int) -> None:
        """Until the engine, the proxy and the rebuild run below it."""
        assert self.process.stdout is not None
        whole = psutil.Process(self.process.pid)
        while True:
            self.below = whole.children(recursive=True)
            lines = [" ".join(each.cmdline()) for each in self.below if each.status() != psutil.STATUS_ZOMBIE]
            servers = [line for line in lines if "supervise" not in line]
            wanted = ("fakes.vllm", "conformance.reference.capture", "conformance.reference.rebuild")
            if all(sum(name in line for line in servers) >= marks for name in wanted):
                return
            try:
                self.process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
            pytest.fail(f"the run ended early: {self.process.stdout.read()}")

    def end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def left(self) -> list[str]:
        """What is still there of everything that ran below it, after at most a minute."""
        _, alive = psutil.wait_procs(self.below, timeout=60)
        return [" ".join(each.cmdline()) for each in alive if each.is_running()]


@pytest.fixture
def stuck(tmp_path: Path) -> Iterator[Run]:
    run = Run(tmp_path)
    yield run
    run.end()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
def test_a_run_that_is_ended_by_a_signal_leaves_no_process(stuck: Run, how: signal.Signals) -> None:
    stuck.wait_until_it_plays(1)
    stuck.process.send_signal(how)
    stuck.process.communicate(timeout=60)
    assert stuck.left() == []


@pytest.mark.parametrize("in_background", [False, True], ids=["in front", "in the background"])
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
def test_a_command_that_is_ended_takes_its_run_along(tmp_path: Path, how: signal.Signals, in_background: bool) -> None:
    """As by a CI that cancels a job: the signal reaches the command alone."""
    program = ("conformance.cli", "run", "--report", str(tmp_path / "report"))
    run = Run(tmp_path, program=program, in_background=in_background)
    try:
        run.wait_until_it_plays(1)
        run.process.send_signal(how)
        run.process.wait(60)
        assert run.left() == []
        assert run.process.returncode == {signal.SIGTERM: 128 + signal.SIGTERM, signal.SIGKILL: -signal.SIGKILL}[how]
    finally:
        run.end()


def test_a_worker_that_is_killed_leaves_no_process_and_the_run_says_so(tmp_path: Path) -> None:
    run = Run(tmp_path, "-n", "1", "--max-worker-restart=0")
    try:
        run.wait_until_it_plays(1)
        (worker,) = [each for each in psutil.Process(run.process.pid).children() if "python" in each.name()]
        worker.kill()
        output, _ = run.process.communicate(timeout=60)
        assert run.left() == []
        assert run.process.returncode == 1
        assert "the worker that played it died" in output
    finally:
        run.end()
