"""What the official client makes of a captured call."""

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import Scene
from conformance.scenarios.streams.official import ClientRaised, as_read, official
from conformance.scenarios.streams.shapes import TOOLS, told


@covers("STR-018")
async def test_the_official_client_reads_the_same_from_a_stream_as_from_a_body(scene: Scene, check: Check) -> None:
    async with official(scene) as client:
        try:
            whole, streamed = await told(
                scene,
                lambda task: client.buffered(task, tools=TOOLS),
                lambda task: client.streamed(task, tools=TOOLS, stream_options={"include_usage": True}),
            )
        except ClientRaised as raised:
            check("STR-018", False, expected="answers", seen=str(raised))
            return
    for one, other in zip(whole, streamed, strict=True):
        # An engine that was asked for a stream may itself have read its generation differently.
        expected = as_read(other.engine) if other.row["streamed"] else one.got
        check.equal("STR-018", expected=expected, seen=other.got, where=one.shape)
