"""The reference proxy, which does all it should, and each step of it after a delay of its own.

``late.py SEED [arguments of the proxy]``; the same seed gives the same delays, in the order of asking.
"""

import asyncio
import random
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from conformance.reference.capture import command
from conformance.reference.capture.exchange import Exchanges
from conformance.reference.capture.upstream import Engine
from conformance.reference.store import Store

USUAL_SECONDS = 0.05
LONG_SECONDS = 0.25
AT_ONCE, LONG = 0.3, 0.05
"""How many steps of all are not delayed, and how many are delayed for longer."""


class Delays:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def next(self) -> float:
        """In seconds."""
        kind, length = self._random.random(), self._random.random()
        if kind < AT_ONCE:
            return 0.0
        return length * (LONG_SECONDS if kind > 1 - LONG else USUAL_SECONDS)


def delay_all(delays: Delays) -> None:
    """From here on: before a call is read, before and after the engine is asked, around a record, before a mark."""
    answer, opened, keep, mark = Exchanges.answer, Engine.opened, Store.keep, Store.mark_undelivered

    async def late_answer(self: Exchanges, *given: Any, **named: Any) -> None:
        await asyncio.sleep(delays.next())
        await answer(self, *given, **named)

    @asynccontextmanager
    async def late_opened(self: Engine, *given: Any, **named: Any) -> AsyncIterator[Any]:
        await asyncio.sleep(delays.next())
        async with opened(self, *given, **named) as response:
            await asyncio.sleep(delays.next())
            yield response

    def late_keep(self: Store, record: dict[str, Any]) -> str:
        time.sleep(delays.next())
        try:
            return keep(self, record)
        finally:
            time.sleep(delays.next())

    def late_mark(self: Store, session_id: str, record_uuid: str) -> None:
        time.sleep(delays.next())
        mark(self, session_id, record_uuid)

    for where, name, late in (
        (Exchanges, "answer", late_answer),
        (Engine, "opened", late_opened),
        (Store, "keep", late_keep),
        (Store, "mark_undelivered", late_mark),
    ):
        setattr(where, name, late)


if __name__ == "__main__":
    delay_all(Delays(int(sys.argv[1])))
    sys.exit(command.main(sys.argv[2:]))
