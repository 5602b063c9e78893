"""A record is safe, and whole, before the client can take its call for done."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.own import OwnProxies
from conformance.gauge.scene import Scene
from conformance.oracle import records
from conformance.scenarios.records.layout import cut, session_folder, with_attachment
from conformance.systems.proxy import ProxyUnderTest
from fakes.harnesses.plain import Call

READ_AT_ONCE = 12
KILLED_BEHIND = 24
LARGE_CALLS = 3
LARGE_BYTES = 3_000_000
"""Long enough in the writing for a reader to come in between."""


@covers("CAP-020", "CAP-021")
async def test_what_the_client_has_whole_can_be_read(scene: Scene, check: Check) -> None:
    """Many at once: a proxy that writes a record behind its answer is in time for some of them."""
    await scene.script("one_answer", attempts="fresh")
    for requirement, stream in (("CAP-020", False), ("CAP-021", True)):
        if not scene.takes(stream=stream):
            continue
        sessions = [scene.session(f"stream-{stream}-{number}") for number in range(READ_AT_ONCE)]
        for seen in await asyncio.gather(*(_seen_at_once(scene, session, stream) for session in sessions)):
            check(requirement, set(seen) <= {1}, expected="one record, read and on disk", seen=seen)


async def _seen_at_once(scene: Scene, session: str, stream: bool) -> list[int]:
    """How many records there are of a call that its client has just got whole: on the disk, and to be read."""
    call = scene.start(session=session, stream=stream)
    if stream:
        await last_event(call)
    else:
        await call
    seen = [len(scene.proxy.record_files(session))] if "records-disk" in scene.proxy.capabilities else []
    seen.append(len(await scene.records(session, at_once=True)))
    await call
    return seen


async def last_event(call: Call) -> None:
    """Return at once when the client has the last event of a stream, or the stream is over."""
    count = 0
    while len(events := await call.watch.until_events(count + 1)) > count:
        count = len(events)
        if events[-1].data == "[DONE]":
            return


@covers("CAP-023", "CAP-024")
async def test_a_collector_that_reads_while_records_are_written(scene: Scene, check: Check) -> None:
    await scene.script("one_answer")
    session = scene.session("a name/../with unusual | letters")
    folder = session_folder(scene.proxy, session)
    with collecting(scene.proxy, session) as torn:
        for _ in range(LARGE_CALLS):
            await scene.ask(with_attachment(scene.task(), LARGE_BYTES), session=session)
    paths = list(folder.glob("*.json"))
    if torn or paths:
        check("CAP-023", not torn, expected="whole records only", seen=sorted(torn)[:3])
    else:
        check.nothing("CAP-023", "record file")
    seen = f"{len(paths)} files"
    check("CAP-024", len(paths) == LARGE_CALLS, expected=f"{LARGE_CALLS} files", seen=seen, where="folder")
    files = {path.name: json.loads(path.read_bytes()) for path in paths}
    named = [f"{record.get('uuid')}.json" for record in files.values()]
    check.equal("CAP-024", expected=named, seen=list(files))
    check.equal("CAP-024", expected=[session] * len(files), seen=[one.get("session_id") for one in files.values()])


@contextmanager
def collecting(proxy: ProxyUnderTest, session: str) -> Iterator[set[str]]:
    """Reads the session's files over and over, in a thread; gives those that once were there and not whole."""
    torn: set[str] = set()
    done = threading.Event()

    def collect() -> None:
        while not done.is_set():
            sizes = {path.name: cut(path) for path in proxy.record_files(session)}
            torn.update(f"{name} of {size} bytes" for name, size in sizes.items() if size >= 0)

    collector = threading.Thread(target=collect)
    collector.start()
    try:
        yield torn
    finally:
        done.set()
        collector.join()


@covers("CAP-022")
async def test_answered_calls_survive_a_kill(scene: Scene, own_proxy: OwnProxies, check: Check) -> None:
    await scene.script("one_answer", attempts="fresh")
    ways = [stream for stream in (False, True) if scene.takes(stream=stream)]
    proxy = await own_proxy()
    there = scene.at(proxy)
    replies = await asyncio.gather(*(there.ask(stream=stream) for stream in ways * (KILLED_BEHIND // len(ways))))
    if proxy.record_lag:
        await (
            there.records()
        )  # that it writes behind the answer is CAP-021's to tell; here, whether what it wrote lasts
    await proxy.kill()
    if "records-disk" in proxy.capabilities:
        captured = [found.record for found in proxy.disk_records(scene.session()) if found.record is not None]
    else:
        await proxy.restart()
        captured = await there.records()
    await there.client.close()
    check("CAP-022", all(reply.answered for reply in replies), expected="answers", seen=[one.status for one in replies])
    rows = await scene.ledger()
    check("CAP-022", len(captured) == len(rows), expected=f"{len(rows)} records", seen=f"{len(captured)} records")
    check.that("CAP-022", records.none_lost(captured, rows))
    check.that("CAP-022", records.law(captured, rows))
