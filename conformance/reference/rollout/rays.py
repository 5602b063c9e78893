"""Rollouts as Ray tasks: spread over the nodes, run by this interpreter, never repeated by Ray.

A task is told everything in its argument and gives everything in its result. It streams two values: which process of
which node it is, and then what was collected. A worker or node that is lost is a rollout that failed; Ray's own
retries are off, since a second attempt behind the caller's back would sample again.
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, BinaryIO

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import ray
from ray.exceptions import RayError, TaskCancelledError

from conformance.contract.rollouts import CancelRequest, RolloutRequest, TaskStarted
from conformance.reference.rollout import lifecycle
from conformance.reference.rollout.backends import Dealer
from conformance.reference.rollout.packing import packed, unpacked
from conformance.reference.rollout.processes import adopt_orphans
from conformance.reference.rollout.protocol import NoRequest, ended_by_others, line_of, not_begun, request_in

JSON = Any

LOOPBACK = "127.0.0.2"
"""Of a local cluster: Ray takes 127.0.0.1 for the machine's own address and listens there."""
OPTIONS: dict[str, JSON] = {
    "num_cpus": 0.1,
    "num_returns": "streaming",
    "scheduling_strategy": "SPREAD",
    "max_retries": 0,
    "runtime_env": {"py_executable": sys.executable},
}


def rollout(request: bytes, backend: str | None) -> Iterator[JSON]:
    """The task. Nothing of the driver's environment, folder or path is in play."""
    asked = RolloutRequest.model_validate_json(request)
    adopt_orphans()  # a worker has one task at a time
    yield {"pid": os.getpid(), "node": ray.get_runtime_context().get_node_id()}
    yield packed(lifecycle.run(asked, backend).model_dump(mode="json"))


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Connected to the one at ``address``, or to one of this process's own that is gone afterwards."""
    quiet: dict[str, JSON] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is not None:
        ray.init(address=address, **quiet)
        try:
            yield
        finally:
            ray.shutdown()
        return
    # Sockets are made below, and their paths must be short.
    place = tempfile.mkdtemp(prefix="tgr-", dir="/tmp")
    try:
        ray.init(address="local", include_dashboard=False, _temp_dir=place, _node_ip_address=LOOPBACK, **quiet)
        yield
    finally:
        ray.shutdown()
        shutil.rmtree(place, ignore_errors=True)


def serve(lines: Iterable[bytes], requests: int | None, answers: BinaryIO, address: str | None) -> list[str]:
    """As the local runner does, until the input ends and all is answered, or it is told to end.

    Returns what is wrong with lines that are no request.
    """
    own = os.fdopen(os.dup(answers.fileno()), "wb")
    os.dup2(2, 1)  # whatever Ray prints is no answer
    with own, cluster(address):
        serving = _Serving(own)
        asyncio.run(serving.run(lines, requests))
    return serving.wrong


class _Serving:
    def __init__(self, answers: BinaryIO) -> None:
        self._answers = answers
        self._dealer = Dealer()
        self._remote = ray.remote(rollout).options(**OPTIONS)
        self._streams: dict[int, tuple[str, JSON]] = {}  # by number: two rollouts may have one id
        self._numbers = count()
        self._going: set[asyncio.Task[None]] = set()
        self._ending = False
        self.wrong: list[str] = []

    async def run(self, lines: Iterable[bytes], requests: int | None) -> None:
        loop = asyncio.get_running_loop()
        waiting: asyncio.Queue[bytes | None] = asyncio.Queue()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end, waiting)
        for line in lines:
            waiting.put_nowait(line)
        if requests is None:
            waiting.put_nowait(None)
        else:
            threading.Thread(target=_read, args=(requests, loop, waiting), daemon=True).start()
        while (next_line := await waiting.get()) is not None:
            if next_line.strip():
                self._take(next_line)
        while self._going:
            await asyncio.wait(self._going)

    def _end(self, waiting: "asyncio.Queue[bytes | None]") -> None:
        self._ending = True
        waiting.put_nowait(None)
        for _, stream in self._streams.values():
            ray.cancel(stream)

    def _take(self, line: bytes) -> None:
        try:
            request = request_in(line)
        except NoRequest as error:
            self._write(line_of(error.answer))
            if error.is_wrong:
                self.wrong.append(str(error))
            return
        if self._ending:
            if isinstance(request, RolloutRequest):
                self._write(line_of(not_begun(request)))
            return
        if isinstance(request, CancelRequest):
            for identity, stream in self._streams.values():
                if identity == request.id:
                    ray.cancel(stream)
            return
        task = asyncio.get_running_loop().create_task(self._follow(request))
        self._going.add(task)
        task.add_done_callback(self._going.discard)

    async def _follow(self, request: RolloutRequest) -> None:
        """From submission to the answer, which comes whatever becomes of the worker."""
        backend = self._dealer.deal(request.backends)
        number, stream = next(self._numbers), self._remote.remote(request.model_dump_json().encode(), backend)
        self._streams[number] = (request.id, stream)
        answer: bytes | None = None
        why = "the task ended before it answered"
        try:
            async for told in _values(stream):
                if "pid" in told:
                    self._write(line_of(TaskStarted(id=request.id, **told)))
                else:
                    answer = json.dumps(unpacked(told), separators=(",", ":")).encode() + b"\n"
        except TaskCancelledError:
            why = "the rollout was cancelled"
        except RayError as error:
            why = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        except Exception as error:  # what reaches the driver as itself, such as an interrupted task
            why = f"{type(error).__name__}: {error}"
        del self._streams[number]
        if answer is None:
            answer = line_of(ended_by_others(request.id, why, captured=lifecycle.is_captured(request)))
        self._write(answer)

    def _write(self, line: bytes) -> None:
        self._answers.write(line)
        self._answers.flush()


async def _values(stream: JSON) -> AsyncIterator[JSON]:
    async for reference in stream:
        yield await reference


def _read(requests: int, loop: asyncio.AbstractEventLoop, waiting: "asyncio.Queue[bytes | None]") -> None:
    """In a thread of its own: a descriptor of any kind, a line at a time."""
    with contextlib.suppress(OSError, RuntimeError), os.fdopen(requests, "rb", closefd=False) as lines:
        for line in lines:
            loop.call_soon_threadsafe(waiting.put_nowait, line)
    with contextlib.suppress(RuntimeError):  # the loop is closed already
        loop.call_soon_threadsafe(waiting.put_nowait, None)
