"""The two references through their profiles, as any other system is met."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.systems import guard, profiles, rebuild, routing
from conformance.systems.proxy import ProxyUnderTest
from conformance.systems.proxy_start import refused_start, start_proxy


@pytest.fixture
def reference(tmp_path: Path) -> Iterator[ProxyUnderTest]:
    started = start_proxy(profiles.find("reference"), routing.CLOSED_ADDRESS, tmp_path / "log")
    yield started
    started.close()


@pytest.mark.anyio
async def test_the_reference_proxy_comes_up_with_every_shared_route(reference: ProxyUnderTest) -> None:
    listed = (await reference.get("/v1/models")).json()["data"]
    assert {entry["id"] for entry in listed} == {route.name for route in routing.SHARED_ROUTES}
    assert await reference.sessions() == []


@pytest.mark.anyio
async def test_the_reference_proxy_comes_back_at_its_address(reference: ProxyUnderTest) -> None:
    url = reference.url
    await reference.kill()
    await reference.restart()
    assert reference.url == url
    assert await reference.sessions() == []


def test_the_reference_proxy_refuses_a_configuration_in_one_line(tmp_path: Path) -> None:
    before = guard.counts.refused
    refused = refused_start(profiles.find("reference"), tmp_path / "log", "routes: {}\n")
    assert refused.exit_code not in (None, 0)
    assert len(refused.output.splitlines()) == 1
    assert guard.counts.refused == before + 1


def test_the_reference_rebuild_answers(tmp_path: Path) -> None:
    system = rebuild.RebuildUnderTest(profiles.find("reference-rebuild"), tmp_path)
    try:
        envelope = {"schema_version": 1, "session_id": "empty", "completions": []}
        answer = system.ask_now({"envelope": envelope})
    finally:
        system.close()
    assert (answer["outcome"], answer["withheld"]) == ("failed", True)
    assert system.junk == []


def test_the_reference_keeps_a_session_where_its_profile_says(reference: ProxyUnderTest) -> None:
    assert reference.log_dir is not None
    folder = reference.log_dir / "sessions" / hashlib.sha256(b"a/b").hexdigest()
    folder.mkdir(parents=True)
    (folder / "u.json").write_text('{"uuid": "u"}')
    assert [found.record for found in reference.disk_records("a/b")] == [{"uuid": "u"}]
    assert not reference.has_delivery_mark("a/b", "u")
    assert not reference.has_loss_mark("a/b")
    (folder / "u.undelivered").touch()
    (folder / "incomplete").touch()
    assert reference.has_delivery_mark("a/b", "u")
    assert reference.has_loss_mark("a/b")
