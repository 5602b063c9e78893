"""The official openai client, as harnesses use it: no retries of its own, and the session as the proxy takes it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from conformance.gauge.scene import MODEL, Scene

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class Official:
    """Asks through the client and gives back the assistant message as the client holds it."""

    def __init__(self, scene: Scene, client: "AsyncOpenAI") -> None:
        # The client's own types know only OpenAI's models and fields.
        self._create: Any = client.chat.completions.create
        carried = scene.proxy.carry(scene.session())
        self._extra = {"extra_headers": dict(carried.headers), "extra_body": dict(carried.body or {})}

    async def buffered(self, task: str, *, model: str = MODEL, **body: Any) -> dict[str, Any]:
        answer = await self._create(model=model, messages=[{"role": "user", "content": task}], **self._extra, **body)
        return _choice(answer.choices[0])

    async def streamed(self, task: str, *, model: str = MODEL, **body: Any) -> dict[str, Any]:
        """Put together by the client's own accumulator. Raises what the client raises."""
        from openai.lib.streaming.chat import ChatCompletionStreamState

        state: Any = ChatCompletionStreamState()
        stream = await self._create(
            model=model, messages=[{"role": "user", "content": task}], stream=True, **self._extra, **body
        )
        async with stream:
            async for chunk in stream:
                state.handle_chunk(chunk)
        return _choice(state.current_completion_snapshot.choices[0])


@asynccontextmanager
async def official(scene: Scene) -> AsyncIterator[Official]:
    """The client is imported here, since that takes a second."""
    from openai import AsyncOpenAI

    carried = scene.proxy.carry(scene.session())
    base_url = f"{scene.proxy.url}{carried.base_path}"
    async with AsyncOpenAI(base_url=base_url, api_key=carried.api_key or "any", max_retries=0) as client:
        yield Official(scene, client)


def _choice(choice: Any) -> dict[str, Any]:
    """What an agent reads of a choice; nulls and what only one transport has are left out, ids are each call's own."""
    message = choice.message.model_dump()
    calls = [
        {"type": call["type"], "name": call["function"]["name"], "arguments": call["function"]["arguments"]}
        for call in message.get("tool_calls") or []
    ]
    return {
        "role": message["role"],
        "content": message.get("content") or "",
        "reasoning": message.get("reasoning") or message.get("reasoning_content") or "",
        "tool_calls": calls,
        "finish_reason": choice.finish_reason,
    }
