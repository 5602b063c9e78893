"""What one worker's scenarios share: a fake vLLM, the proxy and the rebuild under test; started at first need."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from conformance.contract.vocabulary import SystemKind
from conformance.gauge.check import NoSuchSystem
from conformance.gauge.options import Chosen
from conformance.systems import routing
from conformance.systems.calls import SystemFailed
from conformance.systems.engine import EngineCannot, FakeEngine, port_for, start_engine, start_recorder
from conformance.systems.profile import Profile
from conformance.systems.profiles import find
from conformance.systems.proxy import ProxyUnderTest
from conformance.systems.proxy_start import start_proxy
from conformance.systems.rebuild import RebuildUnderTest
from conformance.systems.routing import Route
from conformance.systems.runner import RunnerUnderTest, misleading
from conformance.systems.servers import SystemNotStarted, accepts

PATIENCE_SCENARIOS = 3
"""How often in a row a proxy may keep a scenario waiting to its end, before the run stops to wait for it."""

BUILT_IN_PROXY = "reference"
RUNS_PER_WORKER = 100_000
"""Run numbers have six digits; the first one is the worker's."""


class World:
    """Everything here blocks for as long as a process takes to start, and is for fixtures."""

    def __init__(self, chosen: Chosen, files: Path, worker: int) -> None:
        self._chosen = chosen
        self._files = files
        self._first_run = chosen.first_run + worker * RUNS_PER_WORKER
        self._runs = 0
        self._engine: FakeEngine | None = None
        self._proxy: ProxyUnderTest | None = None
        self._built_in: ProxyUnderTest | None = None
        self._unlike: dict[str, str] = {}
        self._rebuild: RebuildUnderTest | None = None
        self._runner: RunnerUnderTest | None = None
        self.own: list[ProxyUnderTest] = []
        self._came_up = False
        self._silent = False
        self._silences = 0
        self._starts = 0

    def next_run(self) -> int:
        self._runs += 1
        return self._first_run + self._runs

    @property
    def engine(self) -> FakeEngine:
        if self._engine is None and self._chosen.engine is not None:
            self._engine = FakeEngine(self._chosen.engine)
        if self._engine is None:
            files, port, real = self._folder("engine"), self._attached_engine_port(), self._chosen.real_engine
            self._engine = start_engine(files, port=port) if real is None else start_recorder(files, real, port=port)
            profile = self._chosen.profiles.get(SystemKind.PROXY)
            self._unlike = asyncio.run(register_tenants(self._engine, profile))
        return self._engine

    @property
    def proxy(self) -> ProxyUnderTest:
        """The shared one; the built-in one where none is judged, so that a live run can be recorded for a rebuild.

        One that died or fell silent is started anew, so that it spoils a single scenario. Raises SystemNotStarted for
        one that never came up in this run, else SystemFailed if it cannot be had again.
        """
        if self._silences >= PATIENCE_SCENARIOS:
            raise SystemFailed(f"the proxy fell silent in {self._silences} scenarios running, and is asked no more")
        if self._proxy is not None and (self._silent or not self._proxy.is_alive()):
            self._proxy.close()
            self._proxy = None
        if self._proxy is None:
            self._proxy = self._shared_proxy()
        return self._proxy

    def _shared_proxy(self) -> ProxyUnderTest:
        try:
            proxy = self.start_proxy(routing.SHARED_ROUTES)
        except SystemNotStarted as error:
            if not self._came_up:
                raise
            self._silences += 1
            raise SystemFailed(f"{error.why} again") from None
        self._came_up, self._silent = True, False
        return proxy

    @property
    def rebuild(self) -> RebuildUnderTest:
        if self._rebuild is None:
            self._rebuild = RebuildUnderTest(self.profile(SystemKind.REBUILD), self._folder("rebuild"))
        return self._rebuild

    @property
    def runner(self) -> RunnerUnderTest:
        """The shared one; it is started anew where it has ended, so that it spoils a single scenario."""
        if self._runner is not None and not self._runner.is_alive():
            self._runner.close()
            self._runner = None
        if self._runner is None:
            self._runner = self.start_runner()
        return self._runner

    def start_runner(self, *arguments: str, env: Mapping[str, str] | None = None) -> RunnerUnderTest:
        """A further runner; whoever asks for it closes it. Raises SystemNotStarted."""
        files = self._folder("runner")
        profile = self.profile(SystemKind.ROLLOUT)
        return RunnerUnderTest(profile, files, {**misleading(files), **(env or {})}, arguments)

    def profile(self, kind: SystemKind) -> Profile:
        if kind not in self._chosen.profiles:
            raise NoSuchSystem(f"this run judges no {kind}: name one by --system, or need a capability that says so")
        return self._chosen.profiles[kind]

    def recorder(self, *needs: str) -> ProxyUnderTest:
        """Records a live run for a rebuild: the shared proxy where it has these capabilities, else the built-in one."""
        if self.proxy.capabilities.issuperset(needs):
            return self.proxy
        if self._built_in is None:
            files = self._folder("proxy")
            profile, records = find(BUILT_IN_PROXY), files / "records"
            self._built_in = start_proxy(profile, self.engine.url, records, files=files)
        return self._built_in

    def start_proxy(
        self,
        routes: Iterable[Route],
        log_dir: Path | None = None,
        config: str | None = None,
        arguments: Callable[[list[str]], list[str]] = list,
    ) -> ProxyUnderTest:
        """A further proxy; whoever asks for it closes it. ``config`` and ``arguments`` as for a start by hand."""
        files, engine, wanted = self._folder("proxy"), self.engine.url, tuple(routes)
        proxy = start_proxy(
            self._chosen.profiles.get(SystemKind.PROXY) or find(BUILT_IN_PROXY),
            engine,
            log_dir or files / "records",
            routes=tuple(route for route in wanted if route.tenant not in self._unlike),
            config_text=config,
            arguments=arguments,
            files=files,
        )
        proxy.nowhere = {one.name: self._unlike[one.tenant] for one in wanted if one.tenant in self._unlike}
        return proxy

    def dead(self) -> str | None:
        """How a shared system ended that no scenario ended, or None while all live."""
        told = None if self._proxy is None else self._proxy.death()
        self._silent = told is not None
        return told

    def own_death(self) -> str | None:
        """How a proxy of the scenario's own ended by itself, or None."""
        return next((told for told in (one.ended_by_itself() for one in self.own) if told is not None), None)

    def note_silence(self, silent: bool) -> None:
        """Whether a scenario was lost to waiting. After a few in a row nothing is waited for any more."""
        self._silences = self._silences + 1 if silent else 0

    def engine_dead(self) -> str | None:
        if self._engine is not None and not self._engine.is_alive():
            return f"the fake vLLM died: {self._engine.tail()}"
        return None

    def whereabouts(self) -> list[tuple[str, str]]:
        """What runs now and where: a label and an address each, for people."""
        told = [("engine", self._engine.url)] if self._engine is not None else []
        proxies = [("proxy", self._proxy), ("recorder", self._built_in), *(("own", one) for one in self.own)]
        told += [(label, one.whereabouts()) for label, one in proxies if one is not None and one.is_alive()]
        if self._rebuild is not None:
            told.append(("rebuild", f"{self._rebuild.profile.name}, asked over its standard input"))
        return [*told, ("files", str(self._files))]

    def close(self) -> None:
        for one in (self._rebuild, self._runner):
            if one is not None:
                one.close()
        for proxy in (self._proxy, self._built_in):
            if proxy is not None:
                proxy.close()
        if self._engine is not None:
            self._engine.close()

    def _folder(self, name: str) -> Path:
        self._starts += 1
        folder = self._files / f"{self._starts:02}-{name}"
        folder.mkdir(parents=True)
        return folder

    def _attached_engine_port(self) -> int:
        profile = self._chosen.profiles.get(SystemKind.PROXY)
        if profile is None or profile.attach is None:
            return 0
        if accepts(profile.attach.engine):
            why = f"attach.engine: {profile.attach.engine} is taken; the suite starts its fake vLLM there, one a run"
            raise SystemNotStarted(profile.name, f"{why}: end what listens, and leave out -n")
        return port_for(profile)


async def register_tenants(engine: FakeEngine, profile: Profile | None = None) -> dict[str, str]:
    """What the shared routes point at, for the proxy that is judged. Returns which a real engine is not, and why."""
    unlike = {}
    for name, body in routing.tenants(profile).items():
        try:
            await engine.tenant(name, body)
        except EngineCannot as error:
            unlike[name] = str(error)
    return unlike
