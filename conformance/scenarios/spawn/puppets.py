"""The scenario's side of the puppets: who has come, what they are told, and that they are gone."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from conformance.gauge.check import Inconclusive

JSON = Any

SCRIPT = Path(__file__).with_name("puppet.py")
PATIENCE_SECONDS = 20.0
GONE_SECONDS = 10.0
LIMIT_BYTES = 1 << 24


class Puppet:
    """One process that has come. ``told`` is what it said of itself: role, pid, arguments, env, cwd."""

    def __init__(self, told: dict[str, JSON], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.told = told
        self._reader = reader
        self._writer = writer
        self._ended = asyncio.Event()
        self._done: asyncio.Queue[None] = asyncio.Queue()
        self._listening = asyncio.create_task(self._listen())

    @property
    def env(self) -> dict[str, str]:
        found: dict[str, str] = self.told["env"]
        return found

    @property
    def pid(self) -> int:
        found: int = self.told["pid"]
        return found

    def argument(self, name: str) -> str | None:
        """The word after ``name`` on its command line."""
        words: list[str] = self.told["arguments"]
        return words[words.index(name) + 1] if name in words[:-1] else None

    @property
    def log_dir(self) -> str:
        return self.argument("--rl-log-dir") or ""

    @property
    def gone(self) -> bool:
        """Whether its process has ended, as far as the kernel has told."""
        return self._ended.is_set()

    async def do(self, order: str, **details: JSON) -> None:
        """Returns when it is done, or the puppet gone."""
        self._writer.write(json.dumps({"do": order, **details}).encode() + b"\n")
        waits = [asyncio.create_task(self._done.get()), asyncio.create_task(self._ended.wait())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def is_gone(self, seconds: float = GONE_SECONDS) -> bool:
        """Whether it ends within that time."""
        try:
            await asyncio.wait_for(self._ended.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def _listen(self) -> None:
        try:
            while await self._reader.readline():
                self._done.put_nowait(None)
        except OSError:  # a reset: it was killed with something unread
            pass
        self._ended.set()

    def let_go(self) -> None:
        self._listening.cancel()
        self._writer.close()


class Puppets:
    """``address`` is what a puppet's command line begins with."""

    def __init__(self) -> None:
        self.address = ""
        self.all: list[Puppet] = []
        self._waiting: dict[str, asyncio.Queue[Puppet]] = {}

    def command(self, role: str, python: str) -> list[str]:
        """The words that start one; what follows them it only repeats."""
        return [python, "-I", "-S", str(SCRIPT), self.address, role]

    async def next(self, role: str, seconds: float = PATIENCE_SECONDS) -> Puppet:
        """The next one of that role that comes. Raises Inconclusive where none does."""
        try:
            return await asyncio.wait_for(self._of(role).get(), seconds)
        except TimeoutError:
            came = [puppet.told["role"] for puppet in self.all]
            raise Inconclusive(f"no {role} was started within {seconds:g} s; there came: {came}") from None

    def waiting(self, role: str) -> int:
        """How many have come that nobody has taken."""
        return self._of(role).qsize()

    def here(self, role: str) -> int:
        """How many of that role are alive, as far as the kernel has told."""
        return sum(puppet.told["role"] == role and not puppet.gone for puppet in self.all)

    async def _come(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = await reader.readline()
        if line:
            puppet = Puppet(json.loads(line), reader, writer)
            self.all.append(puppet)
            self._of(puppet.told["role"]).put_nowait(puppet)

    def _of(self, role: str) -> asyncio.Queue[Puppet]:
        return self._waiting.setdefault(role, asyncio.Queue())


@asynccontextmanager
async def stage() -> AsyncIterator[Puppets]:
    """Puppets for one scenario; those that are left when it ends lose their strings, and end."""
    puppets = Puppets()
    server = await asyncio.start_server(puppets._come, "127.0.0.1", 0, limit=LIMIT_BYTES)
    puppets.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield puppets
    finally:
        server.close()
        for puppet in puppets.all:
            puppet.let_go()
