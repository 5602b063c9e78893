"""The runner's loop: requests in, a task each, answers out as they come, until the input ends and all is answered."""

import os
import select
import selectors
import signal
from collections import deque
from collections.abc import Iterable
from typing import BinaryIO

from pydantic import BaseModel

from conformance.contract.rollouts import CancelRequest, RolloutRequest
from conformance.reference.rollout.backends import Dealer
from conformance.reference.rollout.protocol import (
    LARGE_BYTES,
    QUESTION,
    READ_BYTES,
    NoRequest,
    line_of,
    not_begun,
    refused,
    request_in,
    write,
)
from conformance.reference.rollout.tasks import Child, Task, apart, fork

AT_A_TIME = 16


def told_to_end() -> int:
    """From now on TERM and Ctrl-C end nothing by themselves: they can be read on the descriptor that is returned."""
    awake, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    return awake


class Serving:
    """One thread, which never waits for a single rollout."""

    def __init__(self, given: Iterable[bytes], requests: int | None, answers: BinaryIO, at_once: int) -> None:
        """``given`` are lines that are there already, ``requests`` is a descriptor on which more come.

        At most ``at_once`` rollouts run, the rest wait. ``wrong`` says of lines that are no request what is wrong.
        """
        self.wrong: list[str] = []
        self._requests = requests
        self._answers = answers
        self._at_once = at_once
        self._unread = bytearray()
        self._given = [line for line in given if line.strip()]
        self._waiting: deque[RolloutRequest] = deque()
        self._ended = requests is None
        self._told = False
        self._dealer = Dealer()
        self._tasks: dict[int, Task] = {}
        self._questions: dict[int, Child] = {}
        self._ending: dict[int, Child] = {}
        self._ears = selectors.PollSelector()  # which takes files too, unlike epoll

    def run(self, awake: int, front: int | None = None) -> None:
        """Told to end, at ``awake``, it ends its tasks, and answers for each and for what was asked until then.

        ``front`` can be read once whoever stands before it is gone; raises BrokenPipeError then.
        """
        self._ears.register(awake, selectors.EVENT_READ)
        if front is not None:
            self._ears.register(front, selectors.EVENT_READ)
        if self._requests is not None:
            self._ears.register(self._requests, selectors.EVENT_READ)
        for line in self._given:
            self._take(line)
        while self._goes_on():
            ready = self._ears.select(0 if self._has_room() else None)
            # Whoever asks comes first: a thousand answers that come at once are taken some at a time.
            ready.sort(key=lambda one: one[0].fd not in (awake, self._requests))
            for key, _ in ready[:AT_A_TIME]:
                if key.fd == awake:
                    os.read(awake, 64)
                    self._told_to_end()
                elif key.fd == front:
                    raise BrokenPipeError
                elif key.fd == self._requests:
                    self._read()
                elif key.fd in self._ending:
                    self._bury(key.fd)
                else:
                    self._hear(key.fd)
            # One a turn: a thousand that begin at once keep nobody waiting who only asks.
            if self._has_room():
                self._begin(self._waiting.popleft())

    def _goes_on(self) -> bool:
        expects = not self._ended and (not self._told or self._was_asked())
        return bool(expects or self._waiting or self._tasks or self._questions or self._ending)

    def _was_asked(self) -> bool:
        assert self._requests is not None
        return bool(select.select([self._requests], [], [], 0)[0])

    def _has_room(self) -> bool:
        return bool(self._waiting) and len(self._tasks) < self._at_once

    def _told_to_end(self) -> None:
        for request in self._waiting:
            write(self._answers, not_begun(request))
        self._waiting.clear()
        self._told = True
        for task in self._tasks.values():
            task.end()

    def _read(self) -> None:
        assert self._requests is not None
        more = os.read(self._requests, READ_BYTES)
        self._unread += more
        if more and b"\n" not in more:
            return
        *whole, rest = self._unread.split(b"\n") if more else [bytes(self._unread), b""]
        self._unread = bytearray(rest)
        for line in whole:
            if line.strip():
                self._take(bytes(line))
        if not more:
            self._stop_reading()

    def _stop_reading(self) -> None:
        if not self._ended and self._requests is not None:
            self._ended = True
            self._ears.unregister(self._requests)

    def _take(self, line: bytes) -> None:
        """A rollout waits for its turn; a question and a cancellation wait for nobody."""
        if len(line) > LARGE_BYTES and QUESTION.match(line):
            pid, ear = apart(lambda: line_of(_answer_to(line)))
            self._questions[ear] = Child(pid, ear)
            self._ears.register(ear, selectors.EVENT_READ)
            return
        try:
            request = request_in(line)
        except NoRequest as error:
            write(self._answers, error.answer)
            if error.is_wrong:
                self.wrong.append(str(error))
            return
        if isinstance(request, RolloutRequest) and self._told:
            write(self._answers, not_begun(request))
        elif isinstance(request, RolloutRequest):
            self._waiting.append(request)
        else:
            self._cancel(request)

    def _cancel(self, request: CancelRequest) -> None:
        for task in self._tasks.values():
            if task.request.id == request.id:
                task.end()
        for waiting in [each for each in self._waiting if each.id == request.id]:
            self._waiting.remove(waiting)
            write(self._answers, not_begun(waiting))

    def _begin(self, request: RolloutRequest) -> None:
        task = fork(request, self._dealer.deal(request.backends))
        self._tasks[task.ear] = task
        self._ears.register(task.ear, selectors.EVENT_READ)
        write(self._answers, task.started())

    def _hear(self, ear: int) -> None:
        task = self._tasks.get(ear) or self._questions[ear]
        if task.hear():
            return
        self._tasks.pop(ear, None)
        self._questions.pop(ear, None)
        self._ears.unregister(ear)
        os.close(ear)
        if task.has_answered:
            self._answer(bytes(task.answer))
        # It has said all and may still take a while to end, for which nobody waits.
        end = os.pidfd_open(task.pid)
        self._ending[end] = task
        self._ears.register(end, selectors.EVENT_READ)

    def _bury(self, end: int) -> None:
        task = self._ending.pop(end)
        self._ears.unregister(end)
        os.close(end)
        line = task.last_line()
        if not task.has_answered:
            self._answer(line)

    def _answer(self, line: bytes) -> None:
        self._answers.write(line)
        self._answers.flush()


def _answer_to(question: bytes) -> BaseModel:
    try:
        request = request_in(question)
    except NoRequest as error:
        return error.answer
    return refused(request.id, "op: expected once, seen twice")
