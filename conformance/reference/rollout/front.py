"""Whoever asks a runner is heard by a process of its own, which hands rollouts on to the one that forks them.

The locks on the memory of a process that has forked a thousand are shared with all of them: it waits, now and then for
most of a second, whenever its memory grows while some of them end. So it is not the one that answers questions.
"""

import os
import select
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, Never

from conformance.reference.rollout.processes import end_with
from conformance.reference.rollout.promptness import go_soon
from conformance.reference.rollout.protocol import (
    LARGE_BYTES,
    QUESTION,
    READ_BYTES,
    NoRequest,
    line_of,
    request_in,
)
from conformance.reference.rollout.tasks import leave

MOST_UNSENT = 1 << 24
"""Of what waits for the process behind; then nothing more is read."""


@contextmanager
def stand_before(requests: int, answers: int) -> Iterator[tuple[int, BinaryIO, int]]:
    """Forks a front; the caller goes on behind it.

    Gives a descriptor with the requests that the front does not answer itself, where to write answers, and a
    descriptor that can be read if the front ends before. When this is left, all answers have gone to ``answers``.
    Raises BrokenPipeError where they have not: nobody reads them, or the front was killed.
    """
    requests_read, requests_write = os.pipe()
    answers_read, answers_write = os.pipe()
    behind = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(requests_read)
        os.close(answers_write)
        _stand(behind, Front(requests, answers, requests_write, answers_read))
    # The front alone holds what leads to whoever asks, who so hears it when it is gone.
    for given, mine in ((requests, requests_write), (answers, answers_read)):
        os.dup2(os.open(os.devnull, os.O_RDWR), given)
        os.close(mine)
    with os.fdopen(answers_write, "wb") as told:
        front = os.pidfd_open(pid)
        try:
            yield requests_read, told, front
        finally:
            os.close(front)
            os.close(requests_read)
            with suppress(BrokenPipeError):
                told.close()
            _, status = os.waitpid(pid, 0)
    if status:
        raise BrokenPipeError


def _stand(behind: int, front: "Front") -> Never:
    """In the forked process, which ends with the one behind, and not before, whoever is told to end."""
    status = 1
    try:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(-1)
        end_with(behind)
        os.setsid()  # a kernel that shares out by session gives it a share of its own
        go_soon()
        front.run()
        status = 0
    except BrokenPipeError:
        pass
    except OSError as error:
        sys.stderr.write(f"trackgauge rollout: answers cannot be passed on: {error.strerror}\n")
    except Exception:
        traceback.print_exc()  # a fault of ours: the one behind ends with 1
    finally:
        leave(status)


class Front:
    """Passes lines both ways, whole ones only, and answers small questions itself."""

    def __init__(self, requests: int, answers: int, to_behind: int, from_behind: int) -> None:
        self._requests = requests
        self._answers = answers
        self._to_behind = to_behind
        self._from_behind = from_behind
        self._unread = bytearray()
        self._unsent = bytearray()
        self._untold = bytearray()
        self._ended = False

    def run(self) -> None:
        """Until the one behind says nothing more. Raises BrokenPipeError where nobody reads the answers."""
        os.set_blocking(self._to_behind, False)
        while True:
            ready = self._ready()
            if self._requests in ready:
                self._read()
            if self._to_behind in ready and self._unsent:  # what was read just now may have sent all, and closed it
                self._send()
            if self._from_behind in ready and not self._pass_on():
                return

    def _ready(self) -> set[int]:
        ears = select.poll()
        ears.register(self._from_behind, select.POLLIN)
        if not self._ended and len(self._unsent) < MOST_UNSENT:
            ears.register(self._requests, select.POLLIN)
        if self._unsent:
            ears.register(self._to_behind, select.POLLOUT)
        return {fd for fd, _ in ears.poll()}

    def _read(self) -> None:
        more = os.read(self._requests, READ_BYTES)
        self._unread += more
        if more and b"\n" not in more:
            return
        *whole, rest = self._unread.split(b"\n") if more else [self._unread, bytearray()]
        self._unread = bytearray(rest)
        answers = []
        for line in whole:
            answer = answered(bytes(line))
            if answer is not None:
                answers.append(answer)
            elif line.strip():
                self._unsent += line + b"\n"
        # Before the answers: who has one knows that what was asked before it is on its way.
        if self._unsent:
            self._send()
        _write_all(self._answers, b"".join(answers))
        if not more:
            self._ended = True
            self._close_when_sent()

    def _send(self) -> None:
        try:
            del self._unsent[: os.write(self._to_behind, self._unsent[:READ_BYTES])]
        except BlockingIOError:
            return
        except BrokenPipeError:  # told to end, it reads no more
            self._unsent.clear()
        self._close_when_sent()

    def _close_when_sent(self) -> None:
        if self._ended and not self._unsent:
            os.close(self._to_behind)

    def _pass_on(self) -> bool:
        """Whole lines of the one behind; False once it says nothing more."""
        more = os.read(self._from_behind, READ_BYTES)
        self._untold += more
        if more and b"\n" not in more:
            return True
        whole = len(self._untold) if not more else self._untold.rfind(b"\n") + 1
        _write_all(self._answers, bytes(self._untold[:whole]))
        del self._untold[:whole]
        return bool(more)


def _write_all(descriptor: int, told: bytes) -> None:
    while told:
        try:
            told = told[os.write(descriptor, told) :]
        except BlockingIOError:  # whoever started this has made it so
            room = select.poll()
            room.register(descriptor, select.POLLOUT)
            room.poll()


def answered(line: bytes) -> bytes | None:
    """The answer to a small question that is asked as the protocol has it; None for all else."""
    if len(line) > LARGE_BYTES or not QUESTION.match(line):
        return None
    try:
        request_in(line)
    except NoRequest as error:
        return None if error.is_wrong else line_of(error.answer)
    return None
