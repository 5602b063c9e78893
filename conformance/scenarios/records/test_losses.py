"""A record that cannot be written is never lost without a trace."""

import asyncio
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.own import OwnProxies
from conformance.gauge.scene import Scene
from conformance.oracle import records
from conformance.oracle.chat_answers import json_object
from conformance.scenarios.records.layout import cut, session_folder, with_attachment
from conformance.systems.proxy import ProxyUnderTest

JSON = Any

LARGEST_FILE = 256 * 1024
TOO_LARGE = 1024 * 1024


@covers("CAP-023", "CAP-030", "CAP-031", "CAP-032", "CAP-033", "CAP-034")
async def test_a_disk_that_has_room_for_small_records_only(scene: Scene, own_proxy: OwnProxies, check: Check) -> None:
    await scene.script("one_answer")
    proxy = await own_proxy()
    there = scene.at(proxy)
    lossy, healthy = scene.session("lossy"), scene.session("healthy")
    with no_file_above(proxy, LARGEST_FILE):
        large = with_attachment(scene.task(), TOO_LARGE)
        lost = await asyncio.gather(*(there.ask(large, session=lossy, stream=stream) for stream in (False, True)))
        kept = await asyncio.gather(*(there.ask(session=healthy, stream=stream) for stream in (False, True)))
    files = proxy.record_files(lossy)
    torn = {path.name: size for path in files if (size := cut(path)) >= 0}
    if len(files) > len(torn):
        raise Inconclusive("the proxy wrote a record above the limit that it was given")
    check("CAP-023", not torn, expected="no part of a record", seen=torn)
    mark = session_folder(proxy, lossy) / "incomplete"
    marked = mark.is_file() or await says_incomplete(proxy, lossy)
    for reply in lost:
        check("CAP-030", marked or not reply.ok, expected="a mark or a failed call", seen=[marked, reply.status])
        check("CAP-031", reply.answered, expected="an answer", seen=[reply.status, reply.text[:80]])
    found = mark.stat().st_size if mark.is_file() else "no such file"
    check("CAP-033", found == 0, expected="an empty file named incomplete", seen=found)
    check("CAP-034", all(reply.answered for reply in kept), expected="answers", seen=[reply.status for reply in kept])
    captured, rows = await there.records(healthy), await scene.ledger()
    check("CAP-034", len(captured) == len(kept), expected=f"{len(kept)} records", seen=f"{len(captured)} records")
    check.that("CAP-034", records.law(captured, rows))

    await there.ask(session=lossy)
    row = next((row for row in await listed(proxy) if row.get("session_id") == lossy), None)
    told = await says_incomplete(proxy, lossy)
    check("CAP-032", told, expected="incomplete: true in the envelope", seen=f"incomplete: {told}")
    check("CAP-032", (row or {}).get("incomplete") is True, expected="incomplete: true in the list", seen=row)
    await there.client.close()


@covers("CAP-030", "CAP-034")
async def test_a_file_where_the_sessions_folder_should_be(scene: Scene, check: Check) -> None:
    await scene.script("one_answer")
    blocked, healthy = scene.session("blocked"), scene.session("healthy")
    in_the_way = session_folder(scene.proxy, blocked)
    in_the_way.touch()
    try:
        lost, kept = await asyncio.gather(scene.ask(session=blocked), scene.ask(session=healthy))
        marked = await says_incomplete(scene.proxy, blocked)
        check("CAP-030", marked or not lost.ok, expected="a mark or a failed call", seen=[marked, lost.status])
    finally:
        in_the_way.unlink()
    captured = await scene.records(healthy)
    check("CAP-034", kept.ok and len(captured) == 1, expected="one record", seen=[kept.status, len(captured)])


@contextmanager
def no_file_above(proxy: ProxyUnderTest, size: int) -> Iterator[None]:
    """A limit in bytes on what the proxy may write to one file, which meets it as a full disk would."""
    if sys.platform != "linux":
        raise Inconclusive("only Linux limits the files of a running process")
    _, most = before = resource.prlimit(proxy.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(proxy.pid, resource.RLIMIT_FSIZE, (size, most))
    try:
        yield
    finally:
        resource.prlimit(proxy.pid, resource.RLIMIT_FSIZE, before)


async def says_incomplete(proxy: ProxyUnderTest, session: str) -> bool:
    if "retrieval-http" not in proxy.capabilities:
        return False
    answer = await proxy.completions_answer(session)
    return answer.status == 200 and (json_object(answer.text) or {}).get("incomplete") is True


async def listed(proxy: ProxyUnderTest) -> list[dict[str, JSON]]:
    return await proxy.sessions() if "retrieval-http" in proxy.capabilities else []
