"""The runner's loop: requests in, a task each, answers out as they come, until the input ends and all is answered."""

import os
import selectors
import signal
from collections.abc import Iterable
from typing import BinaryIO

from conformance.contract.rollouts import CancelRequest
from conformance.reference.rollout.backends import Dealer
from conformance.reference.rollout.protocol import NoRequest, not_begun, request_in, write
from conformance.reference.rollout.tasks import Task, fork

READ_BYTES = 1 << 18


class Serving:
    """One thread, which never waits for a single rollout."""

    def __init__(self, given: Iterable[bytes], requests: int | None, answers: BinaryIO, at_once: int) -> None:
        """``given`` are lines that are there already, ``requests`` is a descriptor on which more come.

        At most ``at_once`` rollouts run, the rest wait.
        """
        self._requests = requests
        self._answers = answers
        self._at_once = at_once
        self._unread = bytearray()
        self._lines = [line for line in given if line.strip()]
        self._ended = requests is None
        self._dealer = Dealer()
        self._tasks: dict[int, Task] = {}
        self._ears = selectors.DefaultSelector()

    def run(self) -> None:
        """Told to end (TERM, Ctrl-C), it ends its tasks, and answers for each."""
        awake, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        self._ears.register(awake, selectors.EVENT_READ)
        if self._requests is not None:
            self._ears.register(self._requests, selectors.EVENT_READ)
        self._begin()
        while not self._ended or self._lines or self._tasks:
            for key, _ in self._ears.select():
                if key.fd == awake:
                    os.read(awake, 64)
                    self._told_to_end()
                elif key.fd == self._requests:
                    self._read()
                else:
                    self._hear(key.fd)
            self._begin()

    def _told_to_end(self) -> None:
        for line in self._lines:
            write(self._answers, not_begun(line))
        self._lines.clear()
        self._stop_reading()
        for task in self._tasks.values():
            task.end()

    def _read(self) -> None:
        assert self._requests is not None
        more = os.read(self._requests, READ_BYTES)
        self._unread += more
        *whole, rest = self._unread.split(b"\n") if more else [bytes(self._unread), b""]
        self._unread = bytearray(rest)
        self._lines += [bytes(line) for line in whole if line.strip()]
        if not more:
            self._stop_reading()

    def _stop_reading(self) -> None:
        if not self._ended and self._requests is not None:
            self._ended = True
            self._ears.unregister(self._requests)

    def _begin(self) -> None:
        """Takes lines in their order; a cancellation waits for nobody."""
        waiting = []
        for line in self._lines:
            try:
                request = request_in(line)
            except NoRequest as error:
                write(self._answers, error.answer)
                continue
            if isinstance(request, CancelRequest):
                for task in self._tasks.values():
                    if task.request.id == request.id:
                        task.end()
            elif len(self._tasks) >= self._at_once:
                waiting.append(line)
            else:
                task = fork(request, self._dealer.deal(request.backends))
                self._tasks[task.ear] = task
                self._ears.register(task.ear, selectors.EVENT_READ)
                write(self._answers, task.started())
        self._lines = waiting

    def _hear(self, ear: int) -> None:
        task = self._tasks[ear]
        if not task.hear():
            del self._tasks[ear]
            self._ears.unregister(ear)
            self._answers.write(task.last_line())
            self._answers.flush()
