"""Rollouts on this machine: each in a process of its own, forked from one that has everything loaded.

That one does nothing else but read requests and pass answers on, and it has one thread, so that forking is safe.
"""

import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Never

from conformance.contract.rollouts import Collected, RolloutRequest, TaskStarted
from conformance.reference.rollout import lifecycle
from conformance.reference.rollout.processes import adopt_orphans, end_with
from conformance.reference.rollout.protocol import ended_by_others, line_of, refused


class ToldToEnd(BaseException):
    """Raised inside of a task on TERM, so that it tears down on its way out."""


@dataclass
class Child:
    """A forked process that says one line; ``answer`` is what it has told so far."""

    pid: int
    ear: int
    answer: bytearray = field(default_factory=bytearray)

    def hear(self) -> bool:
        """Reads on; False once it has told all it ever will."""
        more = os.read(self.ear, 1 << 20)
        self.answer += more
        return bool(more)

    @property
    def has_answered(self) -> bool:
        return self.answer.endswith(b"\n")

    def last_line(self) -> bytes:
        """The line for one that ended without an answer, which says how. Blocks for its end."""
        _, status = os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return line_of(self.ended(f"{how} before it answered"))

    def ended(self, how: str) -> Collected:
        """What is said for it."""
        return refused("", f"the process that worked at a question {how}")


@dataclass
class Task(Child):
    """A forked rollout."""

    request: RolloutRequest = field(kw_only=True)

    def started(self) -> TaskStarted:
        return TaskStarted(id=self.request.id, pid=self.pid, node=socket.gethostname())

    def end(self) -> None:
        """It tears down and answers that it was told to."""
        os.kill(self.pid, signal.SIGTERM)

    def ended(self, how: str) -> Collected:
        captured = lifecycle.is_captured(self.request)
        return ended_by_others(self.request.id, f"the process of the rollout {how}", captured=captured)


def fork(request: RolloutRequest, backend: str | None, run: Callable[..., Collected] = lifecycle.run) -> Task:
    """Starts a task."""
    pid, ear = apart(lambda: line_of(_answer(request, backend, run)))
    return Task(pid, ear, request=request)


def apart(work: Callable[[], bytes]) -> tuple[int, int]:
    """Does it in a forked process, whose line comes at the descriptor that is returned with its pid.

    What the starter holds open is closed in it, but the standard streams.
    """
    ear, mouth = os.pipe()
    starter = os.getpid()
    # Whoever tells it to end while it is still being made is heard once it can tear down.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        os.close(mouth)
        return pid, ear
    status = 1
    try:
        _become_a_task(starter, mouth)
        answer = work()
        with os.fdopen(mouth, "wb") as lines:
            lines.write(answer)
        status = 0
    except Exception:
        traceback.print_exc()  # into the runner's log; the answer is made by the runner
    finally:
        leave(status)


def leave(status: int) -> Never:
    """Ends a forked process, which is none of the runner's way out."""
    try:
        if sys.stderr is not None:  # closed by a shell
            sys.stderr.flush()
    finally:
        os._exit(status)


def _answer(request: RolloutRequest, backend: str | None, run: Callable[..., Collected]) -> Collected:
    def told(number: int, _: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise ToldToEnd(number)

    try:
        signal.signal(signal.SIGTERM, told)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        answer = run(request, backend)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        return answer
    except ToldToEnd:
        return ended_by_others(request.id, "the rollout was told to end", captured=lifecycle.is_captured(request))


def _become_a_task(starter: int, mouth: int) -> None:
    end_with(starter)
    adopt_orphans()
    os.setsid()  # Ctrl-C is for the starter, which tells its tasks
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.set_inheritable(mouth, False)
    os.closerange(3, mouth)
    os.closerange(mouth + 1, 1 << 16)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # stdout belongs to the protocol
