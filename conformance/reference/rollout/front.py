"""Whoever asks a runner is heard by a process of its own, which hands rollouts on to the one that forks them.

The locks on the memory of a process that has forked a thousand are shared with all of them: it waits, now and then for
most of a second, whenever its memory grows while some of them end. So it is not the one that answers questions.
"""

import ctypes
import os
import re
import select
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, Never

from conformance.reference.rollout.promptness import go_soon
from conformance.reference.rollout.protocol import NoRequest, line_of, request_in

READ_BYTES = 1 << 16
LARGE_BYTES = 1 << 17
"""A question of this size takes milliseconds, and one of a long rollout a second: it is worked at elsewhere."""
MOST_UNSENT = 1 << 24
"""Of what waits for the process behind; then nothing more is read."""

QUESTION = re.compile(rb'^\s*\{[^{}\[\]]{0,200}"op"\s*:\s*"(verify|group)"')
"""Told by its beginning, since to read all of it is the work."""

SET_PDEATHSIG = 1


@contextmanager
def stand_before(requests: int, answers: int) -> Iterator[tuple[int, BinaryIO]]:
    """Forks. The caller goes on behind it: with requests to read that are none it can answer, and answers to write.

    All that was written has gone to ``answers`` when this is left.
    """
    requests_read, requests_write = os.pipe()
    answers_read, answers_write = os.pipe()
    behind = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(requests_read)
        os.close(answers_write)
        _stand(behind, Front(requests, answers, requests_write, answers_read))
    os.close(requests_write)
    os.close(answers_read)
    with os.fdopen(answers_write, "wb") as told:
        try:
            yield requests_read, told
        finally:
            os.close(requests_read)
            with suppress(BrokenPipeError):
                told.close()
            os.waitpid(pid, 0)


def _stand(behind: int, front: "Front") -> Never:
    """In the forked process, which ends with the one behind, however that ends."""
    status = 1
    try:
        ctypes.CDLL(None).prctl(SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        # Ctrl-C is for the one behind; and a kernel that shares out by session gives this one a share of its own.
        os.setsid()
        go_soon()
        if os.getppid() == behind:
            front.run()
        status = 0
    except BrokenPipeError:  # nobody reads the answers any more, which the one behind finds out with its next one
        status = 0
    except Exception:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


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
            if self._to_behind in ready:
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
        for line in whole:
            answer = answered(bytes(line))
            if answer is not None:
                _write_all(self._answers, answer)
            elif line.strip():
                self._unsent += line + b"\n"
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
        whole = len(self._untold) if not more else self._untold.rfind(b"\n") + 1
        _write_all(self._answers, bytes(self._untold[:whole]))
        del self._untold[:whole]
        return bool(more)


def _write_all(descriptor: int, told: bytes) -> None:
    while told:
        told = told[os.write(descriptor, told) :]


def answered(line: bytes) -> bytes | None:
    """The answer to a small question that is asked as the protocol has it; None for all else."""
    if len(line) > LARGE_BYTES or not QUESTION.match(line):
        return None
    try:
        request_in(line)
    except NoRequest as error:
        return None if error.is_wrong else line_of(error.answer)
    return None
