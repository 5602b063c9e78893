"""The engine's administration, first against scripted answers, then against the fake vLLM itself."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.systems import engine, profiles, routing, servers
from conformance.systems.calls import call
from conformance.systems.engine import FakeEngine
from conformance.systems.profile import Attach
from fakes.vllm.tags import format_tag
from fakes.vllm.tenants import TenantConfig

pytestmark = pytest.mark.anyio

Listening = Callable[[bytes], AbstractAsyncContextManager[tuple[str, list[bytes]]]]


def answer(status: str, body: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


async def test_administration_goes_out_as_the_engine_reads_it(listening: Listening) -> None:
    async with listening(answer("200 OK", '{"rows": [{"seq": 1}]}')) as (url, heard):
        fake = FakeEngine(url)
        await fake.tenant("a b", {"models": ["m"]})
        await fake.play("main", 17, {"scopes": {}})
        await fake.open_gate("main", "late")
        await fake.forget(run=17)
        assert await fake.ledger(tenant="main", run=17) == [{"seq": 1}]
        assert await fake.wait("held", run=17, count=2, seconds=1.5) == [{"seq": 1}]
    assert [sent.partition(b" HTTP")[0].decode() for sent in heard] == [
        "PUT /_fake/tenants/a%20b",
        "PUT /_fake/tenants/main/runs/17",
        "POST /_fake/gates/main/late/open",
        "DELETE /_fake/ledger?run=17",
        "GET /_fake/ledger?tenant=main&run=17",
        "GET /_fake/wait?run=17&state=held&count=2&timeout=1.5",
    ]
    assert json.loads(heard[0].partition(b"\r\n\r\n")[2]) == {"models": ["m"]}


async def test_a_refusal_keeps_the_engines_one_line(listening: Listening) -> None:
    async with listening(answer("400 Bad Request", '{"error": "scopes.main.turns[0]: no tag"}')) as (url, _):
        with pytest.raises(engine.EngineRefused, match=r"^PUT /_fake/tenants/main/runs/1: 400 .*turns\[0\]: no tag"):
            await FakeEngine(url).play("main", 1, {})


async def test_rows_that_do_not_come_are_a_time_out(listening: Listening) -> None:
    async with listening(answer("408 Request Timeout", "{}")) as (url, _):
        with pytest.raises(
            engine.EngineLate, match=r"^2 rows held \(tenant main, run 3\) were not there after 0\.5 s$"
        ):
            await FakeEngine(url).wait("held", tenant="main", run=3, count=2, seconds=0.5)


def test_the_shared_tenants_are_ones_that_the_engine_takes() -> None:
    for body in routing.tenants().values():
        TenantConfig.model_validate(body)


def test_an_attached_system_decides_where_the_engine_listens() -> None:
    reference = profiles.find("reference")
    assert engine.port_for(reference) == 0
    attach = Attach(url="http://127.0.0.1:1", engine="http://127.0.0.1:8123", log_dir=None)
    assert engine.port_for(replace(reference, start=None, attach=attach)) == 8123


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeEngine]:
    started = engine.start_engine(tmp_path)
    yield started
    started.close()


PLAYBOOK = {
    "about": "One answer, behind a gate.",
    "sampling": "faithful",
    "scopes": {"main": {"turns": [{"text": "{tag} I look first.", "gate": "late"}]}},
}


async def test_the_fake_vllm_is_driven_through_its_administration(fake: FakeEngine) -> None:
    await fake.tenant("main", routing.tenants()["main"])
    await fake.play("main", 7, PLAYBOOK)
    request = {
        "model": routing.SERVED,
        "messages": [{"role": "user", "content": f"{format_tag(7, 0, 0)} Begin."}],
        "max_tokens": 64,
    }
    with pytest.raises(engine.EngineLate):
        await fake.wait("held", tenant="main", run=7, seconds=0.05)

    asking = asyncio.create_task(
        call("POST", fake.address("main"), path="/chat/completions", json_body=request, seconds=20)
    )
    assert len(await fake.wait("held", tenant="main", run=7)) == 1
    await fake.open_gate("main", "late")
    assert (await asking).status == 200
    row = (await fake.wait("finished", tenant="main", run=7))[0]
    assert "I look first." in row["text"]
    await fake.forget(run=7)
    assert await fake.ledger(run=7) == []


async def test_a_killed_engine_is_named_and_comes_back_empty_at_its_address(fake: FakeEngine) -> None:
    url = fake.url
    await fake.kill()
    assert not servers.accepts(url)
    with pytest.raises(engine.EngineFailed, match="the engine has died"):
        await fake.ledger(tenant="main")
    await fake.restart()
    assert fake.url == url
    assert await fake.ledger(run=7) == []


async def test_a_bad_playbook_is_refused_in_one_line(fake: FakeEngine) -> None:
    with pytest.raises(engine.EngineRefused, match=r"^PUT /_fake/tenants/default/runs/1: 400 ") as raised:
        await fake.play("default", 1, {"scopes": {"main": {"turns": [{"txt": "x"}]}}})
    assert "\n" not in str(raised.value).strip()
