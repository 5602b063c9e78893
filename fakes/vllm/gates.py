"""Gates: a turn with a gate waits until somebody opens it; an open gate stays open."""

import asyncio


class Gates:
    """The gates of one fake, by tenant and name. Belongs to one event loop."""

    def __init__(self) -> None:
        self._open: set[tuple[str, str]] = set()
        self._waiting: dict[tuple[str, str], asyncio.Event] = {}

    def is_open(self, tenant: str, name: str) -> bool:
        return (tenant, name) in self._open

    def open(self, tenant: str, name: str) -> None:
        self._open.add((tenant, name))
        event = self._waiting.pop((tenant, name), None)
        if event is not None:
            event.set()

    async def wait(self, tenant: str, name: str) -> None:
        """Return once the gate is open; cancelling the wait leaves the gate as it is."""
        if not self.is_open(tenant, name):
            await self._waiting.setdefault((tenant, name), asyncio.Event()).wait()

    def forget(self, tenant: str) -> None:
        """Close the tenant's gates again, for a tenant that is created anew; those who wait go on waiting."""
        self._open = {key for key in self._open if key[0] != tenant}
