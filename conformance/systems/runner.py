"""A rollout runner under test: a long-lived command that reads requests and answers each rollout as it ends."""

import asyncio
import itertools
import json
import os
import signal
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

from conformance.systems import guard, jsonlines
from conformance.systems.calls import SystemFailed
from conformance.systems.profile import Profile

JSON = Any
PROTOCOL_VERSION = 1
KEPT_LINES = 256
KEPT_REQUESTS = 64
ANSWER_SECONDS = 30.0


class RunnerFailed(SystemFailed):
    """Raised when no answer came. The first line says what; the end of the command's log follows."""

    def __init__(self, why: str, tail: str = "") -> None:
        self.why = why
        super().__init__("\n  | ".join([why, *tail.splitlines()]))


class Going:
    """A rollout under way."""

    def __init__(self, runner: "RunnerUnderTest", identity: str, folder: str = "") -> None:
        self.identity = identity
        self.folder = folder
        self.first_task: Future[dict[str, JSON]] = Future()
        self.last_line: Future[dict[str, JSON]] = Future()
        self.tasks: list[dict[str, JSON]] = []
        self._runner = runner

    async def task(self, seconds: float = ANSWER_SECONDS) -> dict[str, JSON]:
        """The line that tells which process of which node runs it. Raises RunnerFailed."""
        return await self._runner.until(self.first_task, seconds, f"tell the process of rollout {self.identity}")

    async def answer(self, seconds: float = ANSWER_SECONDS) -> dict[str, JSON]:
        """What was collected, of the contract's form. Raises RunnerFailed."""
        found = await self._runner.until(self.last_line, seconds, f"answer rollout {self.identity}")
        self._runner.refuse_other_forms(found)
        return found

    async def cancel(self) -> None:
        await self._runner.send({"v": PROTOCOL_VERSION, "id": self.identity, "op": "cancel"})

    @property
    def answered(self) -> bool:
        return self.last_line.done()


class RunnerUnderTest:
    """Many rollouts at once. ``junk`` holds the last lines on its stdout that belong to no rollout under way.

    It blocks only where it says so; all else is for scenarios.
    """

    def __init__(
        self, profile: Profile, files: Path, env: Mapping[str, str] | None = None, arguments: Sequence[str] = ()
    ) -> None:
        """``files`` is an existing directory for its log. Raises :class:`SystemNotStarted`; blocks."""
        self.profile = profile
        self.junk: deque[str] = deque(maxlen=KEPT_LINES)
        self.asked: deque[tuple[dict[str, JSON], Going]] = deque(maxlen=KEPT_REQUESTS)
        self._files = files
        self._env = dict(env or {})
        self._arguments = list(arguments)
        self._numbers = itertools.count(1)
        self._going: dict[str, Going] = {}
        self._writing = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._started = jsonlines.start(self.profile, self._files, "runner.log", self._env, self._arguments)
        self._reader = threading.Thread(target=self._read, args=(self._started,), daemon=True)
        self._reader.start()

    @property
    def capabilities(self) -> frozenset[str]:
        return self.profile.capabilities

    @property
    def proxy_command(self) -> list[str]:
        """Of a capture proxy that the runner can spawn."""
        return [] if self.profile.runner is None else list(self.profile.runner.proxy)

    @property
    def pid(self) -> int:
        return self._started.pid

    def is_alive(self) -> bool:
        return self._started.is_alive()

    def death(self) -> str | None:
        """One line on how it ended, None while it runs."""
        code = self._started.exit_code()
        return None if code is None else f"{self.profile.name} has ended with exit code {code}: {self.tail(1).strip()}"

    def tail(self, lines: int = 20) -> str:
        return self._started.tail(lines)

    def close(self) -> int:
        """TERM, grace, KILL; returns the exit code. Blocks."""
        code = self._started.stop()
        self._reader.join()
        return code

    def restart(self) -> None:
        """Blocks. Raises :class:`SystemNotStarted`."""
        self.close()
        self._begin()

    def send_signal(self, number: signal.Signals) -> None:
        self._started.send_signal(number)

    async def rollout(self, request: Mapping[str, JSON]) -> Going:
        """Begins one; the id is the suite's own. Raises RunnerFailed."""
        identity = f"rollout-{next(self._numbers)}"
        whole = {"v": PROTOCOL_VERSION, "id": identity, "op": "rollout", **request}
        going = Going(self, identity, str(request.get("folder", "")))
        self._going[identity] = going
        self.asked.append((whole, going))
        await self.send(whole)
        return going

    async def send(self, line: Mapping[str, JSON] | bytes, answers_to: str | None = None) -> Going | None:
        """A line as it is; with ``answers_to``, what is to be answered under that id. Raises RunnerFailed."""
        going = None
        if answers_to is not None:
            going = self._going[answers_to] = Going(self, answers_to)
        text = line if isinstance(line, bytes) else json.dumps(line).encode()
        try:
            await asyncio.to_thread(self._write, text.rstrip(b"\n") + b"\n")
        except (OSError, ValueError):
            raise self._dead() from None
        return going

    async def until(self, told: Future[dict[str, JSON]], seconds: float, what: str) -> dict[str, JSON]:
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(told)), seconds)
        except TimeoutError:
            raise RunnerFailed(f"{self.profile.name} did not {what} within {seconds:g} s", self.tail()) from None

    def refuse_other_forms(self, answer: Mapping[str, JSON]) -> None:
        """Raises RunnerFailed where an answer is not as the contract has it."""
        from conformance.contract.rollouts import Collected

        wrong = jsonlines.misfit(answer, Collected)
        if wrong is not None:
            raise RunnerFailed(f"{self.profile.name}: its answer is not of the contract's form: {wrong}")

    def _write(self, line: bytes) -> None:
        stdin = self._started.stdin
        if stdin is None:
            raise BrokenPipeError
        with self._writing:
            left = memoryview(line)
            while left:
                left = left[os.write(stdin.fileno(), left) :]

    def _read(self, started: guard.Started) -> None:
        """In a thread of its own, until the command has closed its stdout."""
        if started.stdout is not None:
            with suppress(ValueError):  # closed under the reader when the command was ended
                for line in started.stdout:
                    self._take(line)
        for going in list(self._going.values()):
            for told in (going.first_task, going.last_line):
                if not told.done():
                    told.set_exception(self._dead())
        self._going.clear()

    def _take(self, line: bytes) -> None:
        try:
            found = json.loads(line)
            going = self._going[found["id"]]
        except (ValueError, TypeError, KeyError):
            self.junk.append(line.decode(errors="replace"))
            return
        if found.get("event") == "task":
            going.tasks.append(found)
            if not going.first_task.done():
                going.first_task.set_result(found)
            return
        del self._going[going.identity]
        if not going.first_task.done():
            going.first_task.set_exception(RunnerFailed(f"rollout {going.identity} was answered without a task"))
        going.last_line.set_result(found)

    def _dead(self) -> RunnerFailed:
        return RunnerFailed(f"{self.profile.name} ended with exit code {self._started.wait(1.0)}", self.tail())


PRESET = {"GAUGE_PRESET": "inherited-and-stale"}
"""What a runner of the suite's inherits besides: one variable that requests give too."""


def misleading(files: Path) -> dict[str, str]:
    """An environment in which whoever looks for a program on PATH first, or trusts what is inherited, goes astray.

    The decoys are scripts that leave a mark ``decoy-ran`` beside them.
    """
    folder = files / "decoys"
    folder.mkdir()
    for name in ("trackgauge", "switchyard", "python", "python3"):
        decoy = folder / name
        decoy.write_text(f"#!/bin/sh\necho {name} >> '{folder}/decoy-ran'\nexit 99\n", encoding="utf-8")
        decoy.chmod(0o755)
    path = os.pathsep.join([str(folder), os.environ.get("PATH", os.defpath)])
    return {**PRESET, "PATH": path, "TMPDIR": str(files)}
