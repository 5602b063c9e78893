"""The one way in which the suite starts a process.

Whatever is started here ends with the starter, also when the starter is killed by SIGKILL: a small supervisor
(:mod:`conformance.systems.supervise`) holds one end of a pipe whose other end only the starter has.
"""

import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal

Role = Literal["server", "refused", "command"]

GRACE_SECONDS = 5.0
SUPERVISOR = Path(__file__).with_name("supervise.py")
SUPERVISOR_SECONDS = 20.0
"""Time for the supervisor to come up, or to be done after the command has ended. It needs about 20 ms."""

INHERITED_VARIABLES = ("PATH", "LANG", "LC_ALL", "TMPDIR", "TZ")


class CannotRun(Exception):
    """Raised when a command does not even begin: not found, not executable. The message is one line."""


class DidNotEnd(Exception):
    """Raised when a process was told to end and its end was not reported in time: a fault of the guard itself."""


@dataclass
class Counts:
    """What this process has started so far: servers, starts made to be refused, and other commands."""

    server: int = 0
    refused: int = 0
    command: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, role: Role) -> None:
        with self._lock:
            setattr(self, role, getattr(self, role) + 1)


counts = Counts()
"""Of this process; under xdist each worker has its own, and the plugin adds them up."""


def environment(home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The whole environment of a started process: a few variables of ours, a home of its own, and ``extra``."""
    ours = {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ}
    return {"LANG": "C.UTF-8", **ours, "HOME": str(home), "PYTHONUNBUFFERED": "1", **(extra or {})}


class Started:
    """A process that runs under the guard. ``url`` is set by whoever finds out where it listens."""

    def __init__(
        self, supervisor: subprocess.Popen[bytes], lifeline: int, report: int, log: Path, log_begins: int
    ) -> None:
        self.url: str | None = None
        self.pid = 0
        self.log = log
        self._log_begins = log_begins
        self._supervisor = supervisor
        self._lifeline = lifeline
        self._report = report
        self._told = b""
        self._code: int | None = None
        self._lock = threading.RLock()

    @property
    def stdin(self) -> IO[bytes] | None:
        return self._supervisor.stdin

    @property
    def stdout(self) -> IO[bytes] | None:
        return self._supervisor.stdout

    def is_alive(self) -> bool:
        return self.exit_code() is None

    def exit_code(self) -> int | None:
        """None while it runs; negative for the signal that ended it."""
        return self.wait(0)

    def wait(self, seconds: float) -> int | None:
        """The exit code, or None if it still runs after that time."""
        with self._lock:
            deadline = time.monotonic() + seconds
            while self._code is None:
                line = self._next_line(max(0.0, deadline - time.monotonic()))
                if line is None:
                    return None
                word, _, number = line.partition(" ")
                if word == "ended":
                    self._code = int(number)
            return self._code

    def send_signal(self, number: signal.Signals) -> None:
        """To the process alone; KILL goes to all its descendants too."""
        with self._lock:
            if self.is_alive():
                os.write(self._lifeline, bytes([number]))

    def kill(self) -> int:
        """SIGKILL for the process and all its descendants, at once. Returns the exit code."""
        self.send_signal(signal.SIGKILL)
        return self.stop()

    def stop(self) -> int:
        """TERM for the process and all its descendants, grace, KILL. Returns the exit code; may be called again."""
        with self._lock:
            if self._lifeline >= 0:
                os.close(self._lifeline)
                self._lifeline = -1
            try:
                self._supervisor.wait(SUPERVISOR_SECONDS)
            except subprocess.TimeoutExpired:
                raise DidNotEnd(f"process {self.pid} was told to end and did not; its log is {self.log.name}") from None
            self._code = self.wait(0)
            self._close()
            if self._code is None:
                raise DidNotEnd(f"process {self.pid} has ended without a report; its log is {self.log.name}")
            return self._code

    def tail(self, lines: int = 20) -> str:
        """The end of what it wrote into its log."""
        with self.log.open("rb") as log:
            log.seek(max(self._log_begins, log.seek(0, os.SEEK_END) - 200 * lines))
            text = log.read().decode(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def output(self) -> str:
        """All it wrote into its log, without what an earlier process left there."""
        with self.log.open("rb") as log:
            log.seek(self._log_begins)
            return log.read().decode(errors="replace")

    def _close(self) -> None:
        if self._report >= 0:
            os.close(self._report)
            self._report = -1
        for stream in (self.stdin, self.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):  # the rest of a question nobody will read
                    stream.close()

    def _next_line(self, seconds: float) -> str | None:
        """A line of the supervisor's report, or None when the time is over."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self._told:
            if self._report < 0:
                return None
            if not select.select([self._report], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return None
            more = os.read(self._report, 256)
            if not more:  # the supervisor itself was killed; the kernel then kills the command
                return f"ended {-signal.SIGKILL}"
            self._told += more
        line, _, self._told = self._told.partition(b"\n")
        return line.decode()


def start(
    command: Sequence[str],
    *,
    log: Path,
    env: Mapping[str, str],
    cwd: Path,
    role: Role = "server",
    grace: float = GRACE_SECONDS,
    piped: bool = False,
) -> Started:
    """Starts a command in a session of its own. ``env`` is its whole environment.

    What it writes is appended to ``log``; with ``piped`` only its stderr is, and its stdin and stdout are pipes.
    Raises :class:`CannotRun`.
    """
    if not command or shutil.which(command[0], path=env.get("PATH", os.defpath)) is None:
        raise CannotRun(f"cannot run {command[0] if command else 'an empty command'}: not found or not executable")
    started = _under_supervision(command, log, env, cwd, grace, piped)
    word, _, number = (started._next_line(SUPERVISOR_SECONDS) or "").partition(" ")
    if word == "started":
        started.pid = int(number)
        counts.add(role)
        return started
    started.stop()
    reason = os.strerror(int(number)) if word == "refused" else f"the supervisor failed: {started.tail(1)}"
    raise CannotRun(f"cannot run {command[0]}: {reason}")


def _under_supervision(
    command: Sequence[str], log: Path, env: Mapping[str, str], cwd: Path, grace: float, piped: bool
) -> Started:
    lifeline_there, lifeline_here = os.pipe()
    report_here, report_there = os.pipe()
    inherited = (lifeline_there, report_there)
    try:
        with log.open("ab") as sink:
            log_begins = sink.tell()
            supervisor = subprocess.Popen(
                # Without site-packages and without the environment's say: quick, and the same everywhere.
                [sys.executable, "-I", "-S", str(SUPERVISOR), *map(str, inherited), str(grace), *command],
                stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
                stdout=subprocess.PIPE if piped else sink,
                stderr=sink,
                cwd=cwd,
                env=dict(env),
                pass_fds=inherited,
                start_new_session=True,
            )
    except OSError as error:
        os.close(lifeline_here)
        os.close(report_here)
        raise CannotRun(f"cannot run {command[0]}: {error.strerror}: {error.filename}") from None
    finally:
        for end in inherited:
            os.close(end)
    return Started(supervisor, lifeline_here, report_here, log, log_begins)
