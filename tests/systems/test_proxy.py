"""A proxy under test, with a stub: started, given sessions, read, killed, restarted, refused."""

import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conformance.systems import guard, proxy, routing, servers
from conformance.systems.calls import CallFailed, call
from conformance.systems.profile import Profile
from conformance.systems.profile_reading import load
from conformance.systems.proxy import ProxyUnderTest
from conformance.systems.proxy_start import RefusedStart, refused_start, start_proxy
from conformance.systems.retrieval import RetrievalFailed

StubProfile = Callable[..., Profile]
ENGINE = "http://engine"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Callable[[Profile], ProxyUnderTest]]:
    started: list[ProxyUnderTest] = []

    def start(profile: Profile) -> ProxyUnderTest:
        started.append(start_proxy(profile, ENGINE, tmp_path / "log"))
        return started[-1]

    yield start
    for each in started:
        each.close()


Running = Callable[[Profile], ProxyUnderTest]


async def capture(system: ProxyUnderTest, session: str, ids: list[int]) -> None:
    body = {"ids": ids, **(system.carry(session, by="session-body").body or {})}
    answer = await call("POST", system.url, path="/v1/chat/completions", json_body=body)
    assert answer.status == 200


@pytest.mark.parametrize(
    ("address", "manner", "ready"),
    [
        ("announced", "plain", "tcp"),
        ("announced", "plain", "/health"),
        ("given", "quiet", "tcp"),
        ("given", "quiet", "/health"),
    ],
)
def test_a_proxy_is_up_when_start_returns(
    stub_proxy: StubProfile, running: Running, address: str, manner: str, ready: str
) -> None:
    system = running(stub_proxy(manner, address, ready))
    assert servers.accepts(system.url)
    assert system.is_alive()
    assert system.death() is None


def test_set_up_calls_are_made_before_anything_else(stub_proxy: StubProfile, running: Running, tmp_path: Path) -> None:
    running(stub_proxy(start='setup = [{path = "/set-up", json = \'{"engine": "{engine}"}\'}]'))
    assert (tmp_path / "log" / "posted").exists()


def test_a_refused_set_up_call_is_named_and_nothing_stays(stub_proxy: StubProfile, tmp_path: Path) -> None:
    profile = stub_proxy(start='setup = [{path = "/set-up", json = "[]"}]')
    with pytest.raises(servers.SystemNotStarted, match="its set-up call POST /set-up: expected 2xx, seen 400"):
        start_proxy(profile, ENGINE, tmp_path / "log")


def test_a_proxy_that_refuses_its_configuration_is_one_line_and_its_log(
    stub_proxy: StubProfile, tmp_path: Path
) -> None:
    with pytest.raises(servers.SystemNotStarted) as raised:
        start_proxy(stub_proxy(), ENGINE, tmp_path / "log", config_text="broken: yes")
    assert str(raised.value).splitlines() == [
        "stub did not start: it ended with exit code 2 before it was ready",
        "  | error: broken: expected something whole",
    ]


def test_a_proxy_that_never_comes_up_is_ended_at_its_deadline(stub_proxy: StubProfile, tmp_path: Path) -> None:
    with pytest.raises(servers.SystemNotStarted, match=r"after 0\.3 s it has not written 'listening on"):
        start_proxy(stub_proxy("silent", deadline=0.3), ENGINE, tmp_path / "log")


@pytest.mark.anyio
async def test_each_carrier_brings_the_session_in_its_own_way(stub_proxy: StubProfile, running: Running) -> None:
    system = running(stub_proxy())
    assert system.carry("a/b").headers == (("X-Stub-Session", "a/b"),)
    assert system.carry("s", parent="p").headers == (("X-Stub-Session", "s"), ("X-Stub-Parent", "p"))
    assert system.carry("s", by="session-body").body == {"stub_session": "s"}
    assert system.carry("s", by="session-key").api_key == "stub:s"
    assert system.carry("a/b", by="session-url").base_path == "/sessions/a%2Fb/v1"
    with pytest.raises(KeyError):
        system.carry("s", by="session-codex")


@pytest.mark.anyio
@pytest.mark.parametrize("session", ["plain", "a/../b %2F ü", "🦊" * 40])
async def test_records_are_read_over_http_and_from_disk_in_contract_form(
    stub_proxy: StubProfile, running: Running, session: str
) -> None:
    system = running(stub_proxy())
    await capture(system, session, [1, 2])
    await capture(system, session, [3])
    expected = [
        {"uuid": "u9", "captured_at": "2026-00", "generation_token_ids": [1, 2]},
        {"uuid": "u8", "captured_at": "2026-01", "generation_token_ids": [3]},
    ]
    assert await system.records(session) == expected
    assert [found.record for found in system.disk_records(session)] == expected
    assert len(await system.sessions()) == 1


@pytest.mark.anyio
async def test_a_damaged_file_is_shown_without_a_record(stub_proxy: StubProfile, running: Running) -> None:
    system = running(stub_proxy())
    await capture(system, "s", [1])
    path = system.record_files("s")[0]
    path.with_name("00.json").write_bytes(b'{"uuid": ')
    path.with_name("000.json").write_bytes(b"[" * 100_000)
    path.with_name("0000.json").write_bytes(b"\xff\xfe")
    assert [(found.path.name, found.record is None) for found in system.disk_records("s")] == [
        ("0.json", False),
        ("00.json", True),
        ("000.json", True),
        ("0000.json", True),
    ]


@pytest.mark.anyio
async def test_a_loss_mark_is_seen(stub_proxy: StubProfile, running: Running) -> None:
    system = running(stub_proxy())
    await capture(system, "s", [1])
    assert not system.has_loss_mark("s")
    (system.record_files("s")[0].parent / "incomplete").touch()
    assert system.has_loss_mark("s")


@pytest.mark.anyio
async def test_what_is_not_handed_out_is_one_line(stub_proxy: StubProfile, running: Running) -> None:
    system = running(stub_proxy())
    assert (await system.completions_answer("nobody")).status == 404
    with pytest.raises(RetrievalFailed, match=r"^session 'nobody': expected 200, seen 404 .*no such session"):
        await system.records("nobody")


@pytest.mark.anyio
@pytest.mark.parametrize("address", ["announced", "given"])
async def test_a_killed_proxy_comes_back_at_its_address_with_its_records(
    stub_proxy: StubProfile, running: Running, address: str
) -> None:
    system = running(stub_proxy(address=address))
    url, first = system.url, system.pid
    await capture(system, "s", [1, 2])
    await system.kill()
    assert not system.is_alive()
    assert not servers.accepts(url)
    await system.restart()
    assert (system.url, system.pid != first) == (url, True)
    assert len(await system.records("s")) == 1
    assert await system.stop() == -signal.SIGTERM


@pytest.mark.anyio
async def test_a_crashed_proxy_is_named_with_its_last_words(stub_proxy: StubProfile, running: Running) -> None:
    system = running(stub_proxy())
    with pytest.raises(CallFailed, match=r"^POST /crash at 127\.0\.0\.1:\d+: "):
        await call("POST", system.url, path="/crash", json_body={})
    assert system.death() == "stub has died with exit code 9; its last words: the cat is on the keyboard"


def test_a_refused_start_gives_exit_code_and_output_and_is_counted_apart(
    stub_proxy: StubProfile, tmp_path: Path
) -> None:
    before = (guard.counts.server, guard.counts.refused)
    refused = refused_start(stub_proxy(), tmp_path / "log", "broken: yes")
    assert refused == RefusedStart(2, "error: broken: expected something whole\n")
    assert (guard.counts.server, guard.counts.refused) == (before[0], before[1] + 1)


def test_a_start_that_should_have_been_refused_is_told_and_ended(stub_proxy: StubProfile, tmp_path: Path) -> None:
    refused = refused_start(stub_proxy(), tmp_path / "log", "whole: yes")
    assert refused.exit_code is None
    url = refused.output.split()[-1]
    assert not servers.accepts(url)


def test_a_refused_start_may_try_another_command_line(stub_proxy: StubProfile, tmp_path: Path) -> None:
    refused = refused_start(stub_proxy(), tmp_path / "log", "whole: yes", arguments=lambda words: words[:3])
    assert refused.exit_code == 1
    assert "IndexError" in refused.output


@pytest.mark.anyio
async def test_an_attached_proxy_is_called_but_never_ended(
    stub_proxy: StubProfile, running: Running, tmp_path: Path
) -> None:
    theirs = running(stub_proxy())
    path = tmp_path / "attached.toml"
    path.write_text(
        'name = "theirs"\nkind = "proxy"\ncapabilities = ["retrieval-http"]\n'
        f'[attach]\nurl = "{theirs.url}"\nengine = "http://127.0.0.1:1"\n'
        '[retrieval]\nsessions = "/v1/sessions"\ncompletions = "/{session}"\nsession_rows = "rows"\n'
    )
    system = start_proxy(load(path), ENGINE, tmp_path / "log")
    assert await system.sessions() == []
    assert system.is_alive()
    with pytest.raises(proxy.NotOurs, match=r"theirs at http://127\.0\.0\.1:\d+ runs outside of the suite"):
        await system.kill()
    with pytest.raises(proxy.NotOurs, match="does not say where records on disk would be"):
        system.record_files("s")
    assert system.close() is None
    assert theirs.is_alive()
    await theirs.stop()
    assert system.death() == f"theirs at {system.url} no longer answers"


def test_an_attached_proxy_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "attached.toml"
    path.write_text(
        'name = "theirs"\nkind = "proxy"\ncapabilities = []\n'
        '[attach]\nurl = "http://127.0.0.1:1"\nengine = "http://127.0.0.1:2"\n'
    )
    with pytest.raises(servers.SystemNotStarted, match=r"^theirs did not start: nothing accepts connections at"):
        start_proxy(load(path), ENGINE, tmp_path / "log")


def test_a_held_port_is_nobody_elses_but_the_servers(stub_proxy: StubProfile, tmp_path: Path) -> None:
    with servers.hold_port() as held:
        port = servers.port_of(held)
        assert not servers.accepts(f"http://127.0.0.1:{port}")
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind((servers.LOOPBACK, port))


@pytest.mark.anyio
async def test_the_port_of_a_killed_proxy_is_kept_for_it(stub_proxy: StubProfile, running: Running) -> None:
    system = running(stub_proxy())
    port = int(system.url.rpartition(":")[2])
    await system.kill()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((servers.LOOPBACK, port))


def test_two_proxies_may_share_a_log_directory(stub_proxy: StubProfile, running: Running) -> None:
    one, two = running(stub_proxy()), running(stub_proxy())
    assert one.url != two.url
    assert one.log_dir == two.log_dir


def test_the_configuration_of_a_started_proxy_leaves_out_what_it_does_not_know(
    stub_proxy: StubProfile, running: Running
) -> None:
    system = running(stub_proxy())
    left = {each.name for each in routing.SHARED_ROUTES} - {each.name for each in system.routes}
    continued = {
        "continued",
        "continued-pinned",
        "continued-short",
        "continued-unread",
        "continued-misread",
        "spliced",
        "spliced-in-vain",
    }
    assert left == {"pinned", "pinging", *continued}
