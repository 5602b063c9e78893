"""Answers that did not reach their clients."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from conformance.gauge.check import Check, Inconclusive
from conformance.gauge.covers import covers
from conformance.gauge.scene import MODEL, Scene
from conformance.scenarios.records.layout import first_file

TOO_LONG = "It was the header. " * 400_000
"""7.6 MB: more than the buffers on the way hold for a client that does not read."""

SMALL_BUFFER = 4096
LOOKS = 2_000
"""How often to look whether a thing has happened, with a call to the proxy in between."""


@covers("CNC-011")
async def test_the_mark_of_an_undelivered_answer_leaves_its_record_valid(scene: Scene, check: Check) -> None:
    long = {"name": "odd_value", "options": {"at": "/choices/0/message/content", "value": TOO_LONG}}
    await scene.script("one_answer", fault=long)
    session = scene.session()
    proxy = scene.proxy
    with _asked_and_not_read(scene, session):
        found = await _once(scene, lambda: len(proxy.record_files(session)) == 1)
    if not found:
        raise Inconclusive("the call of a client that does not read was not recorded")
    uuid = first_file(proxy, session).stem
    if not await _once(scene, lambda: proxy.has_delivery_mark(session, uuid)):
        raise Inconclusive("an answer that its client did not take was not marked")
    seen = [record.get("is_valid") for record in await scene.records(session)]
    check("CNC-011", seen == [True], expected="one valid record", seen=seen)


@contextmanager
def _asked_and_not_read(scene: Scene, session: str) -> Iterator[None]:
    """A client that sends its call, reads nothing of the answer, and goes away at the end."""
    carried = scene.proxy.carry(session)
    body = {"model": MODEL, "messages": [{"role": "user", "content": scene.task()}], **(carried.body or {})}
    data = json.dumps(body).encode()
    address = urlsplit(scene.proxy.url)
    head = [("Host", address.netloc), *carried.headers, ("Content-Type", "application/json")]
    if carried.api_key is not None:
        head.append(("Authorization", f"Bearer {carried.api_key}"))
    lines = [f"POST {carried.base_path}/chat/completions HTTP/1.1", *(f"{name}: {value}" for name, value in head)]
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
        client.connect((address.hostname, address.port))
        client.sendall("\r\n".join([*lines, f"Content-Length: {len(data)}", "", ""]).encode() + data)
        yield


async def _once(scene: Scene, happened: Callable[[], bool]) -> bool:
    """Whether it happens before all looks are spent."""
    for _ in range(LOOKS):
        if happened():
            return True
        await scene.proxy.get("/v1/models")
    return False
