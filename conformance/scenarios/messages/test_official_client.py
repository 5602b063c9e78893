"""What the official anthropic client makes of a captured call."""

import asyncio

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.scenarios.messages.official import official
from conformance.scenarios.messages.shapes import TOOLS, playbook
from conformance.scenarios.streams.shapes import BROKEN_CALLS

LEFT_OUT = (*BROKEN_CALLS, "a_list", "a_word", "megabyte")
"""Calls that the client's own accumulator takes for a fault of the stream, and one that it reads for seconds."""


@covers("ANT-028")
async def test_the_official_client_reads_the_same_from_a_stream_as_from_a_body(scene: Scene, check: Check) -> None:
    script = playbook()
    script["scopes"] = {shape: scope for shape, scope in script["scopes"].items() if shape not in LEFT_OUT}
    await scene.script(script)
    tasks = [scene.task(scope=scope) for scope in range(len(script["scopes"]))]
    async with official(scene) as client:
        whole = await asyncio.gather(*(client.buffered(task, tools=TOOLS) for task in tasks))
        streamed = await asyncio.gather(*(client.streamed(task, tools=TOOLS) for task in tasks))
    for shape, one, other in zip(script["scopes"], whole, streamed, strict=True):
        check.equal("ANT-028", expected=one, seen=other, where=shape)
