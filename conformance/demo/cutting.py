"""A wire between an agent and its proxy that breaks once, in the middle of an answer to the agent's main loop."""

import asyncio
from types import TracebackType
from urllib.parse import urlsplit

MARK = b'"tools"'
"""Stands in the requests of the main loop of every agent, and in no side call."""


class CuttingWire:
    """Forwards TCP both ways. The first answer to a request with tools is cut after ``after`` bytes; others pass."""

    def __init__(self, target: str, after: int) -> None:
        address = urlsplit(target)
        self._host, self._port = address.hostname, address.port
        self._after = after
        self._cut = False
        self._carrying: set[asyncio.Task[None]] = set()
        self.url = ""

    async def __aenter__(self) -> "CuttingWire":
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._carrying:
            task.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)

    def _take(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._carry(client, to_client))
        self._carrying.add(task)
        task.add_done_callback(self._carrying.discard)

    async def _carry(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        proxy, to_proxy = await asyncio.open_connection(self._host, self._port)
        marked = asyncio.Event()
        asking = asyncio.create_task(_ask(client, to_proxy, marked))
        try:
            await self._answer(proxy, to_client, marked)
        finally:
            asking.cancel()
            to_proxy.close()
            to_client.close()

    async def _answer(
        self, proxy: asyncio.StreamReader, to_client: asyncio.StreamWriter, marked: asyncio.Event
    ) -> None:
        left = self._after
        while data := await proxy.read(65536):
            if marked.is_set() and not self._cut:
                to_client.write(data[:left])
                left -= len(data)
                if left <= 0:
                    self._cut = True
                    # Only a drained buffer is sent before the reset.
                    await to_client.drain()
                    to_client.transport.abort()
                    return
            else:
                to_client.write(data)


async def _ask(client: asyncio.StreamReader, to_proxy: asyncio.StreamWriter, marked: asyncio.Event) -> None:
    while data := await client.read(1 << 20):
        if MARK in data:
            marked.set()
        to_proxy.write(data)
        await to_proxy.drain()
