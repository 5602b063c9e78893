"""Starts a capture proxy as its profile describes it, attaches to one that runs, or sees a start refused."""

import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from conformance.systems import guard, needs, routing
from conformance.systems.profile import Profile
from conformance.systems.proxy import NotOurs, ProxyUnderTest
from conformance.systems.routing import Route
from conformance.systems.servers import (
    LOOPBACK,
    EndedEarly,
    NotReady,
    Server,
    ServerCommand,
    SystemNotStarted,
    accepts,
)


def start_proxy(
    profile: Profile,
    engine_url: str,
    log_dir: Path,
    *,
    routes: Iterable[Route] = routing.SHARED_ROUTES,
    env: Mapping[str, str] | None = None,
    config_text: str | None = None,
    arguments: Callable[[list[str]], list[str]] = list,
    files: Path | None = None,
) -> ProxyUnderTest:
    """Blocks until it is ready, or attaches to one that runs already.

    ``config_text`` takes the place of the configuration made of ``routes``; ``arguments`` makes the command line
    of the proper one. ``files`` is a directory for the configuration and the log; a fresh one beside ``log_dir`` if
    None. ``env`` is added to the profile's own.
    Raises :class:`SystemNotStarted`.
    """
    fitting = routing.supported(routes, profile)
    if profile.attach is not None:
        if not accepts(profile.attach.url):
            raise SystemNotStarted(profile.name, f"nothing accepts connections at {profile.attach.url}")
        records = None if profile.attach.log_dir is None else Path(profile.attach.log_dir)
        return ProxyUnderTest(profile, profile.attach.url, records, fitting, None)
    text = routing.configuration_for(profile, fitting, engine_url) if config_text is None else config_text
    plan = _plan(profile, engine_url, log_dir, text.encode(), env, files)
    plan = replace(plan, command=arguments(list(plan.command)))
    return ProxyUnderTest(profile, "", log_dir, fitting, Server(plan))


@dataclass(frozen=True, slots=True)
class RefusedStart:
    """How a start that should be refused went. ``exit_code`` is None if the proxy did not end: it came up, or hung."""

    exit_code: int | None
    output: str


def refused_start(
    profile: Profile,
    log_dir: Path,
    config: str | bytes,
    *,
    arguments: Callable[[list[str]], list[str]] = list,
    engine_url: str = routing.CLOSED_ADDRESS,
    env: Mapping[str, str] | None = None,
    files: Path | None = None,
) -> RefusedStart:
    """Blocks until the proxy has refused a configuration or a command line, has come up in spite of it, or is late.

    ``arguments`` makes the command line to try of the proper one. Raises :class:`SystemNotStarted` if it cannot be run.
    """
    plan = _plan(profile, engine_url, log_dir, config.encode() if isinstance(config, str) else config, env, files)
    plan = replace(plan, command=arguments(list(plan.command)))
    server: Server | None = None
    try:
        server = Server(plan, role="refused")
    except EndedEarly as ended:
        return RefusedStart(ended.exit_code, ended.output)
    except NotReady as late:
        return RefusedStart(None, late.tail)
    output = server.started.output()
    server.close()
    return RefusedStart(None, output)


def _plan(
    profile: Profile,
    engine_url: str,
    log_dir: Path,
    config: bytes,
    env: Mapping[str, str] | None,
    files: Path | None,
) -> ServerCommand:
    if profile.start is None:
        raise NotOurs(f"{profile.name} is attached to, not started")
    lacking = None if profile.install is None else needs.lacking(profile.install)
    if lacking is not None:
        raise SystemNotStarted(profile.name, lacking)
    if files is None:
        log_dir.parent.mkdir(parents=True, exist_ok=True)
        files = Path(tempfile.mkdtemp(prefix=f"{log_dir.name}-proxy-", dir=log_dir.parent))
    files.mkdir(parents=True, exist_ok=True)
    place = files
    routing_file = place / "routing.yaml"
    routing_file.write_bytes(config)
    values = {"config": str(routing_file), "log_dir": str(log_dir), "host": LOOPBACK, "engine": engine_url}
    start = profile.start
    own = {name: profile.fill(value, values) for name, value in start.env.items()}
    return ServerCommand(
        name=profile.name,
        command=[profile.fill(word, values) for word in start.command],
        env=guard.environment(place, {**routing.environment(), **own, **(env or {})}),
        cwd=place,
        log=place / "proxy.log",
        address=start.address,
        ready=start.ready,
        deadline_seconds=start.deadline_seconds,
        grace_seconds=start.grace_seconds,
        setup=tuple(replace(each, json=profile.fill(each.json, values)) for each in start.setup),
    )
