"""A rebuild under test: a long-lived command that reads one question a line and writes one answer a line."""

import asyncio
import itertools
import json
import os
import selectors
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.systems import guard, jsonlines
from conformance.systems.calls import SystemFailed
from conformance.systems.profile import Profile

JSON = Any
PROTOCOL_VERSION = 1
KEPT_QUESTIONS = 64
"""Question lines and their answers that are kept to show; None stands for an answer that did not come."""
KEPT_LINES = 256
READ_BYTES = 1 << 18
SHOWN_CHARACTERS = 200
MOST_BYTES = 1 << 28
"""Of an answer; a command that writes more writes without end."""
MOST_JUNK = 1 << 22
"""Bytes of lines before an answer that are none."""
PATIENCE_QUESTIONS = 3
"""How many questions in a row may be waited for in vain, before no more are asked."""


NULL_IF_LEFT_OUT = frozenset({"reason", "reason_code", "error", "parent", "agent", "model"})
ANSWER_KEYS = ("reason", "reason_code", "error", "excluded", "notes", "trajectories")
TRAJECTORY_KEYS = (
    *("parent", "agent", "reason_code", "model"),
    *("tools", "items", "record_uuids", "tokens", "mask", "log_probs"),
)
"""The keys that the contract lets a system leave out: null then stands for some, and an empty list for the others."""


class RebuildFailed(SystemFailed):
    """Raised when no answer came. The first line says what; the end of the command's log follows."""

    def __init__(self, why: str, tail: str = "") -> None:
        self.why = why
        super().__init__("\n  | ".join([why, *tail.splitlines()]))


class RebuildDied(RebuildFailed):
    """Raised when the command ended instead of answering; the next question starts it anew."""


class NotAnAnswer(RebuildFailed):
    """Raised when what came under the question's id is not of the contract's form."""


class RebuildLate(RebuildFailed):
    """Raised when there was no answer in time. The command is ended, and the next question starts it anew."""


class RebuildUnderTest:
    """One question at a time. ``junk`` holds the last lines on its stdout that were no answer."""

    def __init__(self, profile: Profile, files: Path, env: Mapping[str, str] | None = None) -> None:
        """``files`` is an existing directory for its log. Raises :class:`SystemNotStarted`."""
        self.profile = profile
        self.junk: list[str] = []
        self.asked: deque[tuple[bytes, dict[str, JSON] | None]] = deque(maxlen=KEPT_QUESTIONS)
        self._files = files
        self._env = dict(env or {})
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._late_in_a_row = 0
        self._junk_bytes = 0
        self._unread: list[bytes] = []
        self._lines: deque[bytes] = deque()
        self._started = self._start()

    @property
    def capabilities(self) -> frozenset[str]:
        return self.profile.capabilities

    def is_alive(self) -> bool:
        return self._started.is_alive()

    def tail(self, lines: int = 20) -> str:
        return self._started.tail(lines)

    def close(self) -> int:
        return self._started.stop()

    def restart(self) -> None:
        """Raises :class:`SystemNotStarted`."""
        self._started.stop()
        self._started = self._start()

    async def ask(
        self,
        source: Mapping[str, JSON],
        *,
        allow_partial: bool = True,
        split: Sequence[str] = (),
        seconds: float = 30.0,
    ) -> dict[str, JSON]:
        """The answer to ``source`` (exactly one of envelope, sessions, log_dir, url). Raises :class:`RebuildFailed`.

        ``split`` asks for segments or branches as trajectories of their own.
        """
        return await asyncio.to_thread(self.ask_now, source, allow_partial=allow_partial, split=split, seconds=seconds)

    def ask_now(
        self,
        source: Mapping[str, JSON],
        *,
        allow_partial: bool = True,
        split: Sequence[str] = (),
        seconds: float = 30.0,
    ) -> dict[str, JSON]:
        """As :meth:`ask`, blocking."""
        with self._lock:
            self._make_ready()
            number = f"q{next(self._numbers)}"
            question = {
                "v": PROTOCOL_VERSION,
                "id": number,
                "op": "rebuild",
                "source": source,
                "allow_partial": allow_partial,
                **({"split": list(split)} if split else {}),
            }
            line = json.dumps(question, separators=(",", ":")).encode() + b"\n"
            return self._exchange(number, line, time.monotonic() + seconds, seconds)

    def ask_raw(self, line: bytes, *, answer_id: str | None, seconds: float = 30.0) -> dict[str, JSON]:
        """Sends a line as it is, and waits for the answer with that id (null for a question without one)."""
        with self._lock:
            self._make_ready()
            return self._exchange(answer_id, line.rstrip(b"\n") + b"\n", time.monotonic() + seconds, seconds)

    def _make_ready(self) -> None:
        if self._late_in_a_row >= PATIENCE_QUESTIONS:
            raise RebuildLate(
                f"{self.profile.name} let {PATIENCE_QUESTIONS} questions in a row wait in vain and is asked no more"
            )
        if not self._started.is_alive():
            self.restart()

    def _start(self) -> guard.Started:
        started = jsonlines.start(self.profile, self._files, "rebuild.log", self._env)
        assert started.stdin is not None
        os.set_blocking(started.stdin.fileno(), False)
        self._unread.clear()
        self._lines.clear()
        return started

    def _exchange(self, number: str | None, line: bytes, deadline: float, seconds: float) -> dict[str, JSON]:
        self.asked.append((line, None))
        self._junk_bytes = 0
        del self.junk[:-KEPT_LINES]
        answer = self._answer_to(number, line, deadline, seconds)
        self.asked[-1] = (line, answer)
        self._late_in_a_row = 0
        self._refuse_other_forms(answer)
        return answer

    def _refuse_other_forms(self, answer: dict[str, JSON]) -> None:
        from conformance.contract.rebuilds import RebuildAnswer

        wrong = jsonlines.misfit({**answer, "id": ""}, RebuildAnswer)
        if wrong is not None:
            raise NotAnAnswer(f"{self.profile.name}: its answer is not of the contract's form: {wrong}")

    def _answer_to(self, number: str | None, line: bytes, deadline: float, seconds: float) -> dict[str, JSON]:
        """Writes and reads at once: a command may answer, or complain, before it has read all."""
        assert self._started.stdin is not None
        assert self._started.stdout is not None
        to_command, from_command = self._started.stdin.fileno(), self._started.stdout.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(from_command, selectors.EVENT_READ)
            selector.register(to_command, selectors.EVENT_WRITE)
            left = memoryview(line)
            read = 0
            while True:
                answer = self._answer(number)
                if answer is not None:
                    return answer
                ready = selector.select(max(0.0, deadline - time.monotonic()))
                if not ready:
                    raise self._late(seconds)
                for key, _ in ready:
                    if key.fd == to_command:
                        left = left[self._written(left) :]
                        if not left:
                            selector.unregister(to_command)
                    else:
                        read += self._read(from_command)
                        if read > MOST_BYTES:
                            raise self._endless(read)

    def _written(self, left: memoryview) -> int:
        try:
            return os.write(self._started.stdin.fileno() if self._started.stdin else -1, left)
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            raise self._dead() from None

    def _read(self, from_command: int) -> int:
        more = os.read(from_command, READ_BYTES)
        if not more:
            raise self._dead()
        head, *rest = more.split(b"\n")
        self._unread.append(head)
        for piece in rest:
            self._lines.append(b"".join(self._unread))
            self._unread = [piece]
        return len(more)

    def _answer(self, number: str | None) -> dict[str, JSON] | None:
        """The answer among the whole lines read so far; lines before it are junk."""
        while self._lines:
            line = self._lines.popleft()
            try:
                found = json.loads(line)
            except ValueError:
                found = None
            if isinstance(found, dict) and found.get("id") == number:
                return filled(found)
            self.junk.append(line.decode(errors="replace"))
            self._junk_bytes += len(line) + 1
            if self._junk_bytes > MOST_JUNK:
                raise self._endless(self._junk_bytes)
        return None

    def _dead(self) -> RebuildDied:
        code = self._started.stop()
        return RebuildDied(f"{self.profile.name} ended with exit code {code} instead of answering", self.tail())

    def _endless(self, read: int) -> RebuildFailed:
        self._started.kill()
        self._late_in_a_row += 1
        return RebuildFailed(f"{self.profile.name} wrote {read >> 20} MB, and no answer among them", self.tail())

    def _late(self, seconds: float) -> RebuildLate:
        seen = f"; it wrote {self.junk[-1][:SHOWN_CHARACTERS]!r} instead" if self.junk else ""
        self._started.kill()
        self._late_in_a_row += 1
        return RebuildLate(f"{self.profile.name} did not answer within {seconds:g} s{seen}", self.tail())


def filled(answer: Mapping[str, JSON]) -> dict[str, JSON]:
    """The answer with the keys that the contract lets a system leave out; nothing that is there is changed."""
    told = {**_left_out(ANSWER_KEYS), **answer}
    if isinstance(told["trajectories"], list):
        told["trajectories"] = [
            {**_left_out(TRAJECTORY_KEYS), **one} if isinstance(one, dict) else one for one in told["trajectories"]
        ]
    return told


def _left_out(keys: Iterable[str]) -> dict[str, JSON]:
    return {key: None if key in NULL_IF_LEFT_OUT else [] for key in keys}
