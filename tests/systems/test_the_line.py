"""Engine, proxy and rebuild, each a process of its own, in one line."""

import itertools
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from conformance.systems import engine, profiles, routing
from conformance.systems.calls import Answer, call
from conformance.systems.engine import FakeEngine
from conformance.systems.proxy import ProxyUnderTest
from conformance.systems.proxy_start import start_proxy
from conformance.systems.rebuild import RebuildUnderTest
from fakes.vllm.tags import format_tag

pytestmark = pytest.mark.anyio

Line = tuple[FakeEngine, ProxyUnderTest, RebuildUnderTest]

RUNS = itertools.count(41)
PLAYBOOK = {
    "about": "One short answer.",
    "sampling": "faithful",
    "scopes": {"main": {"turns": [{"text": "{tag} I look first."}]}},
}


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    place = tmp_path_factory.mktemp("line")
    with ExitStack() as ends:
        fake = engine.start_engine(place)
        ends.callback(fake.close)
        system = start_proxy(profiles.find("reference"), fake.url, place / "log")
        ends.callback(system.close)
        rebuilding = RebuildUnderTest(profiles.find("reference-rebuild"), place)
        ends.callback(rebuilding.close)
        yield fake, system, rebuilding


async def ask(system: ProxyUnderTest, route: str, session: str, run: int) -> Answer:
    request = {
        "model": route,
        "messages": [{"role": "user", "content": f"{format_tag(run, 0, 0)} Begin."}],
        "max_tokens": 64,
    }
    headers = system.carry(session, by="session-header").headers
    return await call("POST", system.url, path="/v1/chat/completions", headers=headers, json_body=request)


async def test_a_call_is_captured_as_the_engine_sampled_it_and_rebuilt(line: Line) -> None:
    fake, system, rebuilding = line
    run = next(RUNS)
    await fake.tenant("main", routing.tenants()["main"])
    await fake.play("main", run, PLAYBOOK)
    answer = await ask(system, "policy-model", "line/one", run)
    assert answer.status == 200, answer.text
    row = (await fake.wait("finished", run=run))[0]
    record = (await system.records("line/one"))[0]
    triple = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")
    assert [record[name] for name in triple] == [row[name] for name in triple]
    assert [found.record for found in system.disk_records("line/one")] == [record]
    envelope = (await system.completions_answer("line/one")).json()
    rollout = await rebuilding.ask({"envelope": envelope})
    assert rollout["outcome"] == "clean", rollout
    assert rollout["trajectories"][0]["tokens"] == row["prompt_token_ids"] + row["generation_token_ids"]


@pytest.mark.parametrize("route", [each.name for each in routing.SHARED_ROUTES if each.name != "dead"])
async def test_every_shared_route_reaches_its_tenant(line: Line, route: str) -> None:
    fake, system, _ = line
    run = next(RUNS)
    for name, body in routing.tenants().items():
        await fake.tenant(name, body)
    tenant = routing.route(route).tenant
    await fake.play(tenant, run, PLAYBOOK)
    answer = await ask(system, route, "s", run)
    assert answer.status == 200, answer.text
    assert [row["tenant"] for row in await fake.ledger(run=run)] == [tenant]


async def test_a_dead_route_is_a_bad_gateway(line: Line) -> None:
    _, system, _ = line
    assert (await ask(system, "dead", "s", next(RUNS))).status == 502
