"""Work that would keep the other calls waiting, done off the event loop's thread."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

LARGE = 64 * 1024
"""Bodies above this many bytes are read in a thread."""


class Workers:
    """The proxy's threads."""

    def __init__(self, count: int) -> None:
        self._threads = ThreadPoolExecutor(max_workers=count, thread_name_prefix="store")

    async def run(self, work: Callable[[], T]) -> T:
        """Do work that waits or takes long, such as file access, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def sized(self, size: int, work: Callable[[], T]) -> T:
        """Small work here and now, large work in a thread."""
        return work() if size <= LARGE else await self.run(work)

    def close(self) -> None:
        """Take no more work."""
        self._threads.shutdown(wait=False)
