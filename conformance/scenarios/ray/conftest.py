"""One cluster and one runner on it for all scenarios of a worker; a node that is to be lost is a scenario's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.contract.vocabulary import SystemKind
from conformance.gauge.case import CASE, AskedOfRunner
from conformance.gauge.session import watch
from conformance.gauge.world import World
from conformance.scenarios.ray.driver import DRIVER_ONLY
from conformance.systems.cluster import Cluster
from conformance.systems.guard import Started
from conformance.systems.runner import RunnerUnderTest

NODE = "node"
SCENARIO_SECONDS = 180
"""A cluster comes up within some seconds, and on a busy machine within many."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.timeout(SCENARIO_SECONDS))


@pytest.fixture(scope="session")
def cluster(
    request: pytest.FixtureRequest, world: World, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Of this run's own, or the one it was given if no node of it is to be lost."""
    there = request.config.getoption("--ray-cluster")
    loses = any(NODE in getattr(item, "fixturenames", ()) for item in request.session.items)
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), None if loses else there)
    yield cluster
    cluster.close()


@pytest.fixture
def node(ray_runner: RunnerUnderTest, cluster: Cluster) -> Started:
    """One more, which may be lost."""
    return cluster.add_node()


@pytest.fixture(scope="session")
def shared_ray_runner(world: World, cluster: Cluster) -> Iterator[RunnerUnderTest]:
    told = world.profile(SystemKind.ROLLOUT).runner
    words = () if told is None else told.ray
    arguments = [word.replace("{address}", cluster.address) for word in words]
    runner = world.start_runner(*arguments, env=DRIVER_ONLY)
    yield runner
    runner.close()


@pytest.fixture
def ray_runner(request: pytest.FixtureRequest, world: World, shared_ray_runner: RunnerUnderTest) -> RunnerUnderTest:
    """The runner under test, its rollouts on the cluster."""
    watch(request.node, world)
    shared_ray_runner.asked.clear()
    case = request.node.stash.get(CASE, None)
    if case is not None:
        case.evidence_of.append(AskedOfRunner(shared_ray_runner))
    return shared_ray_runner
