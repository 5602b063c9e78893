"""The commands of a rollout, each under a keeper that ends it when the task ends."""

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from conformance.reference.rollout.keeper import AGAIN_SECONDS, SET_CHILD_SUBREAPER, SET_PDEATHSIG
from conformance.reference.rollout.keeper import below as descendants

KEEPER = Path(__file__).with_name("keeper.py")
MARGIN_SECONDS = 20.0
"""Beyond the grace, before the keeper itself is given up: it needs a few milliseconds."""
SLICE_SECONDS = 0.25
TAIL_BYTES = 4000
GET_CHILD_SUBREAPER = 37

KEEPERS: set[int] = set()
"""Of this process, under way."""


class CannotRun(Exception):
    """Raised when a command does not even begin; the message is one line."""


class Kept:
    """A command under way. The object holds the lifeline: whoever drops it ends the command."""

    def __init__(self, keeper: subprocess.Popen[bytes], told: int, log: Path, grace: float) -> None:
        self.log = log
        self._keeper = keeper
        self._told = told
        self._grace = grace
        self._heard = b""
        self._code: int | None = None
        self._refused: int | None = None
        self._all_gone = False
        self._gave_up = False
        self.by_itself = False
        """Whether it ended before anybody told it to; known once it has ended."""

    def ended(self, seconds: float) -> int | None:
        """The exit code (negative for a signal), waiting that long at most; None while it runs.

        Raises CannotRun where it never began.
        """
        deadline = time.monotonic() + seconds
        while self._code is None and self._refused is None and self._listen(deadline):
            pass
        if self._refused is not None:
            raise CannotRun(os.strerror(self._refused))
        return self._code

    def end(self) -> int | None:
        """TERM, grace, KILL for it and all that descends from it; returns when all are gone. May be called again.

        None where the command never began.
        """
        if self._keeper.stdin is not None:
            self._keeper.stdin.close()
        if not self._until_all_are_gone(self._grace + MARGIN_SECONDS):
            self._kill_all()
            self._until_all_are_gone(MARGIN_SECONDS)
        self.by_itself = (self._keeper.wait() != 0 and not self._gave_up) or self.by_itself
        KEEPERS.discard(self._keeper.pid)
        if self._keeper.returncode:
            _kill_orphans()
        if self._told >= 0:
            os.close(self._told)
            self._told = -1
        return self._code

    def _until_all_are_gone(self, seconds: float) -> bool:
        """Keeper and warden, who hold the other end and are the last to go; False where they do not in time."""
        deadline = time.monotonic() + seconds
        while self._listen(deadline):
            pass
        return self._told < 0 or self._all_gone

    def _kill_all(self) -> None:
        """For guards that do nothing any more, as when somebody has stopped them."""
        self._gave_up = True
        for pid in (*descendants(self._keeper.pid), self._keeper.pid):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def tail(self) -> str:
        """The end of what it wrote."""
        return tail_of(self.log)

    def _listen(self, deadline: float) -> bool:
        """A little while; False once nothing more is said, or the time is over."""
        if self._told < 0 or self._all_gone:
            return False
        # poll, not select: with a thousand rollouts in one process descriptors have high numbers.
        waiting = select.poll()
        waiting.register(self._told, select.POLLIN)
        left = max(0.0, deadline - time.monotonic())
        # In slices, since Ray's cancellation is only seen between two calls.
        if waiting.poll(min(left, SLICE_SECONDS) * 1000):
            self._hear(os.read(self._told, 64))
            return True
        return left > SLICE_SECONDS

    def _hear(self, more: bytes) -> None:
        self._heard += more
        word, _, number = self._heard.decode().strip().partition(" ")
        if not more:
            self._all_gone = True
            if self._code is None and self._refused is None:
                self._code = -signal.SIGKILL  # the keeper was killed, and the kernel killed the command
        elif self._heard.endswith(b"\n") and word == "refused":
            self._refused = int(number)
        elif self._heard.endswith(b"\n"):
            self._code = int(number)
            self.by_itself = word == "left"


def start(command: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path, grace: float) -> Kept:
    """``env`` is the whole environment; what it writes is appended to ``log``. Raises CannotRun."""
    here, there = os.pipe()
    try:
        with log.open("ab") as sink:
            keeper = subprocess.Popen(
                [sys.executable, "-I", "-S", str(KEEPER), str(there), str(grace), *command],
                stdin=subprocess.PIPE,
                stdout=sink,
                stderr=sink,
                cwd=cwd,
                env=dict(env),
                pass_fds=(there,),
                start_new_session=True,
            )
    except (OSError, ValueError) as error:
        os.close(here)
        raise CannotRun(str(error)) from None
    finally:
        os.close(there)
    KEEPERS.add(keeper.pid)
    return Kept(keeper, here, log, grace)


def adopt_orphans() -> None:
    """For a process that is a rollout's alone: what a keeper that was killed leaves behind comes to this process."""
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_with(starter: int) -> None:
    """For a forked process: the kernel kills it when ``starter`` ends, also where that has happened already."""
    ctypes.CDLL(None).prctl(SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != starter:
        os._exit(1)


def _kill_orphans() -> None:
    """Of a keeper that was killed, in a process that adopts: all below this one but other keepers and theirs."""
    adopts = ctypes.c_int()
    ctypes.CDLL(None).prctl(GET_CHILD_SUBREAPER, ctypes.byref(adopts), 0, 0, 0)
    while adopts and (orphans := _orphans()):
        for pid in orphans:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(AGAIN_SECONDS)


def _orphans() -> set[int]:
    kept = {below for keeper in KEEPERS for below in (keeper, *descendants(keeper))}
    return set(descendants(os.getpid())) - kept


def tail_of(log: Path) -> str:
    try:
        # Not blocking: a harness may have put a pipe in its place.
        with open(os.open(log, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
