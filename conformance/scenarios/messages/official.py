"""The official anthropic client: no retries of its own, and the session as the proxy takes it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from conformance.gauge.scene import MODEL, Scene
from conformance.scenarios.messages.asking import LIMIT, user

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

JSON = Any


class Official:
    """Asks through the client and gives back the message as the client holds it."""

    def __init__(self, scene: Scene, client: "AsyncAnthropic") -> None:
        # The client's own types know only Anthropic's models and tools.
        self._messages: Any = client.messages
        carried = scene.proxy.carry(scene.session())
        self._extra = {"extra_headers": dict(carried.headers), "extra_body": dict(carried.body or {})}

    async def buffered(self, task: str, **body: JSON) -> dict[str, JSON]:
        return _as_read(await self._messages.create(**self._asked(task), **body))

    async def streamed(self, task: str, **body: JSON) -> dict[str, JSON]:
        """Put together by the client's own accumulator. Raises what the client raises."""
        async with self._messages.stream(**self._asked(task), **body) as stream:
            return _as_read(await stream.get_final_message())

    def _asked(self, task: str) -> dict[str, JSON]:
        return {"model": MODEL, "max_tokens": LIMIT, "messages": [user(task)], **self._extra}


@asynccontextmanager
async def official(scene: Scene) -> AsyncIterator[Official]:
    """The client is imported here, since that takes a second."""
    from anthropic import AsyncAnthropic

    carried = scene.proxy.carry(scene.session())
    base_url = f"{scene.proxy.url}{carried.base_path.removesuffix('/v1')}"
    async with AsyncAnthropic(base_url=base_url, api_key=carried.api_key or "any", max_retries=0) as client:
        yield Official(scene, client)


def _as_read(message: Any) -> dict[str, JSON]:
    """All of the message but the ids, which are each generation's own."""
    told: dict[str, JSON] = message.model_dump(exclude={"id": True, "content": {"__all__": {"id"}}}, exclude_none=True)
    return told
