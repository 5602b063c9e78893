"""The pytest plugin: fixtures for scenarios, verdicts per requirement, one report per run.

Loaded by pytest through its entry point, in every project of the environment: it imports no server library and does
nothing until a scenario is collected.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conformance.gauge.check import Check
    from conformance.gauge.own import OwnProxies
    from conformance.gauge.scene import Scene
    from conformance.gauge.world import World
    from conformance.systems.engine import FakeEngine
    from conformance.systems.proxy import ProxyUnderTest
    from conformance.systems.rebuild import RebuildUnderTest
    from conformance.systems.runner import RunnerUnderTest


def pytest_addoption(parser: pytest.Parser) -> None:
    from conformance.gauge.options import add_options

    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "e2e: a scenario of the suite, over real sockets and processes")
    config.addinivalue_line("markers", "ray: a scenario of the suite on a real Ray cluster, a tier of its own")
    config.addinivalue_line("markers", "smoke: the plain case that works unless a system is broken altogether")
    config.addinivalue_line("markers", "scripted(reason): a scenario that no real engine can play, and why")
    config.addinivalue_line("markers", "covers(*ids): the requirements that a scenario judges")
    from conformance.gauge.session import Session

    config.pluginmanager.register(Session(config), "trackgauge-session")


# Fixtures


@pytest.fixture(scope="session")
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> "Iterator[World]":
    """What this worker's scenarios share; started at first need."""
    from conformance.gauge.session import chosen_of, worker_number
    from conformance.gauge.world import World

    world = World(chosen_of(request.config), tmp_path_factory.mktemp("world"), worker_number(request.config))
    yield world
    world.close()


@pytest.fixture
def check(request: pytest.FixtureRequest) -> "Check":
    """Notes whether requirements hold; the scenario goes on and fails at its end."""
    from conformance.gauge.case import CASE

    case = request.node.stash.get(CASE, None)
    if case is None:
        pytest.fail('a test that asks for `check` names what it judges: @covers("CAP-001")', pytrace=False)
    check: Check = case.check
    return check


@pytest.fixture
def fake_vllm(world: "World") -> "FakeEngine":
    """The worker's fake vLLM."""
    return world.engine


@pytest.fixture
def proxy(request: pytest.FixtureRequest, world: "World") -> "ProxyUnderTest":
    """The worker's proxy under test, shared by many scenarios."""
    from conformance.gauge.session import watch

    watch(request.node, world)
    return world.proxy


@pytest.fixture
async def scene(request: pytest.FixtureRequest, world: "World", proxy: "ProxyUnderTest") -> "AsyncIterator[Scene]":
    """This scenario's own run and sessions on the shared engine and proxy."""
    from conformance.gauge.case import CASE
    from conformance.gauge.scene import Scene

    scene = Scene(world.engine, proxy, world.next_run())
    case = request.node.stash.get(CASE, None)
    if case is not None:
        case.evidence_of.append(scene)
        case.left_out = scene.without
    yield scene
    await scene.close()


@pytest.fixture
def harness(scene: "Scene") -> dict[str, Callable[..., Any]]:
    """The fake agents by name, each ready to run against the proxy: ``await harness["openhands-nv"](task)``."""
    return {
        "openhands-nv": scene.openhands_nv,
        "openhands-sdk": scene.openhands_sdk,
        "opencode": scene.opencode,
        "claude-code": scene.claude_code,
        "codex": scene.codex,
    }


@pytest.fixture
def recording(scene: "Scene", world: "World") -> "Callable[..., Scene]":
    """For rebuilds: ``recording("session-opencode")`` is the scene where that can be recorded, whatever is judged."""
    return lambda *needs: scene.at(world.recorder(*needs))


@pytest.fixture
def own_proxy(world: "World") -> "Iterator[OwnProxies]":
    """Starts proxies of this scenario's own: ``proxy = await own_proxy(...)``."""
    from conformance.gauge.own import OwnProxies

    own = OwnProxies(world)
    yield own
    own.close()


@pytest.fixture
def rebuild(request: pytest.FixtureRequest, world: "World") -> "RebuildUnderTest":
    """The worker's rebuild under test."""
    from conformance.gauge.case import CASE, AskedOfRebuild
    from conformance.gauge.session import watch

    watch(request.node, world)
    rebuild = world.rebuild
    rebuild.asked.clear()
    case = request.node.stash.get(CASE, None)
    if case is not None:
        case.evidence_of.append(AskedOfRebuild(rebuild))
    return rebuild


@pytest.fixture
def runner(request: pytest.FixtureRequest, world: "World") -> "RunnerUnderTest":
    """The worker's rollout runner under test, shared by many scenarios."""
    from conformance.gauge.case import CASE, AskedOfRunner

    runner = world.runner
    runner.asked.clear()
    case = request.node.stash.get(CASE, None)
    if case is not None:
        case.evidence_of.append(AskedOfRunner(runner))
    return runner
