"""Proxies that one scenario starts for itself: to kill, restart, configure otherwise, or see refused."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

from conformance.contract.vocabulary import SystemKind
from conformance.gauge.world import World
from conformance.systems import routing
from conformance.systems.proxy import NotOurs, ProxyUnderTest
from conformance.systems.routing import Route


class OwnProxies:
    """Call it for a proxy. All that were started end with the scenario."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def __call__(
        self,
        routes: Iterable[Route] = routing.SHARED_ROUTES,
        *,
        log_dir: Path | None = None,
        config: str | None = None,
        arguments: Callable[[list[str]], list[str]] = list,
    ) -> ProxyUnderTest:
        """A proxy with these routes; ``log_dir`` if its records are to lie where others lie already.

        ``config`` takes the place of the configuration made of the routes, ``arguments`` changes the command line.
        Raises NotOurs for a system that the suite is only attached to; the scenario is skipped then.
        """
        profile = self._world.profile(SystemKind.PROXY)
        if profile.attach is not None:
            raise NotOurs(f"{profile.name} is attached to: the suite cannot start another one")
        proxy = await asyncio.to_thread(self._world.start_proxy, tuple(routes), log_dir, config, arguments)
        self._world.own.append(proxy)
        return proxy

    def close(self) -> None:
        for proxy in self._world.own:
            proxy.close()
        self._world.own.clear()
