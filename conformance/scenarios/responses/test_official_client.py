"""What the official openai client makes of a captured Responses call."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from conformance.gauge.check import Check
from conformance.gauge.covers import covers
from conformance.gauge.scene import MODEL, Scene
from conformance.oracle.responses_answers import ResponsesAnswer, buffered
from conformance.scenarios.responses.asking import TOOLS
from conformance.scenarios.streams.official import as_read
from conformance.scenarios.streams.shapes import Told, told

if TYPE_CHECKING:
    from openai import AsyncOpenAI

JSON = Any
IDS_AND_TIMES = ("id", "call_id", "created_at", "completed_at")
OF_ITS_HELPER = ("parsed", "parsed_arguments")
"""What the client's own stream reader adds."""


class OfficialResponses:
    """Asks through the client and gives back the response as the client holds it, or what the client raised."""

    def __init__(self, scene: Scene, client: "AsyncOpenAI") -> None:
        # The client's own types know only OpenAI's models and tools.
        self._responses: Any = client.responses
        carried = scene.proxy.carry(scene.session())
        self._keys = {
            **{"model": MODEL, "tools": TOOLS, "store": False},
            **{"extra_headers": dict(carried.headers), "extra_body": dict(carried.body or {})},
        }

    async def buffered(self, task: str) -> dict[str, JSON]:
        return _told(await self._responses.create(input=task, **self._keys))

    async def streamed(self, task: str) -> dict[str, JSON]:
        """Put together by the client's own reader: the response of the last event."""
        try:
            async with self._responses.stream(input=task, **self._keys) as stream:
                events = [event async for event in stream]
            return _told(events[-1].response)
        except Exception as error:  # whatever the client raises is what its harness would see
            return {"raised": f"{type(error).__name__}: {error}"}


@asynccontextmanager
async def official(scene: Scene) -> AsyncIterator[OfficialResponses]:
    """The client is imported here, since that takes a second."""
    from openai import AsyncOpenAI

    carried = scene.proxy.carry(scene.session())
    base_url = f"{scene.proxy.url}{carried.base_path}"
    async with AsyncOpenAI(base_url=base_url, api_key=carried.api_key or "any", max_retries=0) as client:
        yield OfficialResponses(scene, client)


@covers("RSP-028")
async def test_the_official_client_builds_the_same_from_a_stream_as_from_a_body(scene: Scene, check: Check) -> None:
    async with official(scene) as client:
        whole, streamed = await told(scene, client.buffered, client.streamed)
    for one, other in zip(whole, streamed, strict=True):
        if one.row["streamed"] == other.row["streamed"]:
            check.equal("RSP-028", expected=one.got, seen=other.got, where=one.shape)
        else:
            # An engine that was asked for a stream may itself have read its generation differently.
            check.equal("RSP-028", expected=_engines(other), seen=_read(other.got), where=one.shape)


def _engines(one: Told) -> dict[str, JSON]:
    return {key: value for key, value in as_read(one.engine).items() if key != "finish_reason"}


def _read(response: dict[str, JSON]) -> dict[str, JSON]:
    answer: ResponsesAnswer = buffered(response)
    calls = [call["function"] for call in answer.tool_calls]
    return {"role": "assistant", "content": answer.text, "reasoning": answer.reasoning, "tool_calls": calls}


def _told(response: Any) -> dict[str, JSON]:
    """As JSON, without what no two calls have in common."""
    found: dict[str, JSON] = response.model_dump(mode="json", exclude_none=True)
    return {key: _plain(value) for key, value in found.items() if key not in IDS_AND_TIMES}


def _plain(value: JSON) -> JSON:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {key: _plain(one) for key, one in value.items() if key not in (*IDS_AND_TIMES, *OF_ITS_HELPER)}
