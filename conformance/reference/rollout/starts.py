"""At most so many starts in flight on a node, over all processes of a user; the rest wait.

A slot is a file lock, which the kernel lets go of when its holder is killed.
"""

import fcntl
import os
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ASK_AGAIN_SECONDS = 0.02
LONGEST_SECONDS = 0.5
SHARE_OF_WAIT = 0.05
"""Whoever has waited for long asks less often: hundreds that wait would else leave those that start no time."""


@contextmanager
def in_flight(most: int) -> Iterator[None]:
    """Holds one of the node's slots; waits without end for one."""
    slot = _slot(most)
    try:
        yield
    finally:
        os.close(slot)


def _slot(most: int) -> int:
    folder = Path(tempfile.gettempdir(), f"trackgauge-starts-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    first = random.randrange(most)  # so that a thousand that wait do not all ask for the same one
    began = time.monotonic()
    while True:
        for number in range(first, first + most):
            slot = os.open(folder / f"{number % most}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(slot, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(slot)
            else:
                return slot
        time.sleep(min(LONGEST_SECONDS, ASK_AGAIN_SECONDS + SHARE_OF_WAIT * (time.monotonic() - began)))
