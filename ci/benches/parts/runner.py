"""The reference's rollout runner as benchmarks ask it, and what is seen of it meanwhile."""

import fcntl
import json
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from conformance.reference.rollout.promptness import go_soon

ROOT = Path(__file__).parents[3]

JSON = Any
SHORT_BYTES = 1000
"""Of a line: what is longer is a rollout's answer."""


@dataclass
class Watch:
    """What is seen of a run while it goes on. Times in seconds, memory in MB."""

    started: dict[str, float] = field(default_factory=dict)
    lines: list[bytes] = field(default_factory=list)
    no_ops: list[float] = field(default_factory=list)
    no_ops_at_begin: list[float] = field(default_factory=list)
    proxies: list[float] = field(default_factory=list)
    most_files: int = 0
    memory: float = 0.0
    held: int = 0
    wall: float = 0.0

    @cached_property
    def answers(self) -> dict[str, dict[str, JSON]]:
        """Of the rollouts, read once all is over: that would keep this process from hearing what the runner says."""
        return {found["id"]: found for found in map(json.loads, self.lines)}


class Runner:
    """The reference's rollout runner, its lines read by a thread."""

    def __init__(self, folder: Path, at_once: int) -> None:
        log = (folder / "runner.log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "conformance.reference.rollout", "--jsonl", "--at-once", str(at_once)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=ROOT,
            start_new_session=True,  # where a kernel shares out by session, this one's work is not the runner's
        )
        assert self.process.stdout
        with suppress(OSError):  # a user has so much of this memory
            # Four answers fill a pipe as it comes, and the runner would wait for this process to be let on.
            fcntl.fcntl(self.process.stdout, fcntl.F_SETPIPE_SZ, 1 << 20)
        self.watch = Watch()
        self.waiting: dict[str, tuple[float, bool]] = {}
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def send(self, line: dict[str, JSON]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(line).encode() + b"\n")
        self.process.stdin.flush()

    def no_op(self, name: str, at_begin: bool) -> None:
        """A question that costs nothing."""
        self.waiting[name] = time.perf_counter(), at_begin
        self.send({"id": name, "op": "group", "task": "none", "size": 1, "members": []})

    def _read(self) -> None:
        go_soon()  # so that what is taken for lateness of the runner is not this thread's
        assert self.process.stdout
        for line in self.process.stdout:
            now = time.perf_counter()
            with self.changed:
                if len(line) > SHORT_BYTES:
                    self.watch.lines.append(line)
                else:
                    self._take(now, line)
                self.changed.notify()

    def _take(self, now: float, line: bytes) -> None:
        found = json.loads(line)
        name = found["id"]
        if name in self.waiting:
            asked, at_begin = self.waiting.pop(name)
            (self.watch.no_ops_at_begin if at_begin else self.watch.no_ops).append(now - asked)
        elif found.get("event") == "task":
            self.watch.started[name] = time.time()
        else:
            self.watch.lines.append(line)

    def close(self) -> None:
        assert self.process.stdin
        if sys.exc_info()[0] is not None:  # Ctrl-C does not reach its session
            self.process.terminate()
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
