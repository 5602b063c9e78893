"""The official openai client, as harnesses use it: no retries of its own, and the session as the proxy takes it."""

from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from conformance.gauge.scene import MODEL, Scene
from conformance.oracle.chat_answers import ChatAnswer, function_of, of_message
from conformance.systems.calls import SystemFailed

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class ClientRaised(SystemFailed):
    """Raised when the client throws something at its harness instead of giving it the answer: ``its_own``."""

    def __init__(self, its_own: Exception) -> None:
        self.its_own = its_own
        super().__init__(f"the official client raised {type(its_own).__name__}: {its_own}"[:300])


class Official:
    """Asks through the client and gives back the assistant message as the client holds it."""

    def __init__(self, scene: Scene, client: "AsyncOpenAI") -> None:
        # The client's own types know only OpenAI's models and fields.
        self._create: Any = client.chat.completions.create
        carried = scene.proxy.carry(scene.session())
        self._extra = {"extra_headers": dict(carried.headers), "extra_body": dict(carried.body or {})}

    async def buffered(self, task: str, *, model: str = MODEL, **body: Any) -> dict[str, Any]:
        """Raises :class:`ClientRaised`."""
        messages = [{"role": "user", "content": task}]
        with _raised_by_client():
            answer = await self._create(model=model, messages=messages, **self._extra, **body)
            return _choice(answer.choices[0])

    async def streamed(self, task: str, *, model: str = MODEL, **body: Any) -> dict[str, Any]:
        """Put together by the client's own accumulator. Raises :class:`ClientRaised`."""
        from openai.lib.streaming.chat import ChatCompletionStreamState

        state: Any = ChatCompletionStreamState()
        messages = [{"role": "user", "content": task}]
        with _raised_by_client():
            stream = await self._create(model=model, messages=messages, stream=True, **self._extra, **body)
            async with stream:
                async for chunk in stream:
                    state.handle_chunk(chunk)
            return _choice(state.current_completion_snapshot.choices[0])

    async def raised_by(self, asked: Awaitable[Any]) -> Exception | None:
        """What the client throws at its harness instead of an answer; None if it gives one."""
        try:
            await asked
        except ClientRaised as error:
            return error.its_own
        return None


@asynccontextmanager
async def official(scene: Scene) -> AsyncIterator[Official]:
    """The client is imported here, since that takes a second."""
    from openai import AsyncOpenAI

    carried = scene.proxy.carry(scene.session())
    base_url = f"{scene.proxy.url}{carried.base_path}"
    async with AsyncOpenAI(base_url=base_url, api_key=carried.api_key or "any", max_retries=0) as client:
        yield Official(scene, client)


@contextmanager
def _raised_by_client() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # its own errors, and whatever it stumbles over in an answer
        raise ClientRaised(error) from error


def as_read(answer: ChatAnswer) -> dict[str, Any]:
    """What an agent reads of an answer. Null and empty text are one; ids of calls are each generation's own."""
    functions = [function_of(call) for call in answer.tool_calls]
    return {
        "role": "assistant",
        "content": answer.content or "",
        "reasoning": answer.reasoning or "",
        "tool_calls": [{"name": one.get("name"), "arguments": one.get("arguments")} for one in functions],
        "finish_reason": answer.finish_reason,
    }


def _choice(choice: Any) -> dict[str, Any]:
    message = choice.message.model_dump()
    answer = of_message(message)
    answer.finish_reason = choice.finish_reason
    return {**as_read(answer), "role": message["role"]}
