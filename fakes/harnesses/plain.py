"""A bare client for scenarios about the protocol itself: any request, told exactly, and the answer read strictly."""

import asyncio
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from fakes.harnesses.chat_answers import ChatAnswer, Message, read_answer
from fakes.harnesses.conversation import Account, new_id, text_of, with_answer
from fakes.harnesses.exchanges import Ended, Exchange, Exchanges, header_pairs
from fakes.harnesses.sse import Event
from fakes.harnesses.wire import HOST, LENGTH, Watch, Wire

AnyHeaders = Mapping[str, str] | Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Reply:
    """An exchange with its answer read as a chat completion, buffered or streamed."""

    exchange: Exchange
    answer: ChatAnswer

    @property
    def status(self) -> int | None:
        return self.exchange.status

    @property
    def ended(self) -> Ended:
        return self.exchange.ended

    @property
    def ok(self) -> bool:
        """A whole 2xx answer; of a stream also its proper end, without an error in it."""
        return self.exchange.ok and (self.answer.done or not self.exchange.streamed)

    @property
    def answered(self) -> bool:
        """A whole answer that holds an assistant message."""
        return self.ok and self.answer.message is not None

    @property
    def message(self) -> Message:
        """The assistant message; empty when there is none."""
        return self.answer.message or {}

    @property
    def text(self) -> str:
        """The text of the message, or of the whole body when it holds no message."""
        if self.answer.message is not None:
            return text_of(self.answer.message.get("content"))
        return "" if self.exchange.response is None else self.exchange.response.body_text

    @property
    def events(self) -> list[Event]:
        return self.answer.events

    def json(self) -> Any:
        """The whole body as JSON. Raises ``ValueError`` when there is none or it is not JSON."""
        if self.exchange.response is None:
            raise ValueError(f"no response: {self.exchange.ended}: {self.exchange.error}")
        return self.exchange.response.json_body()

    def header(self, name: str) -> str | None:
        return None if self.exchange.response is None else self.exchange.response.header(name)


class Call:
    """A request under way. Await it for the ``Reply``; ``watch`` tells how far it has come; ``leave`` goes away."""

    def __init__(self, reply: Coroutine[Any, Any, Reply], watch: Watch) -> None:
        self._task = asyncio.create_task(reply)
        self.watch = watch

    def leave(self) -> None:
        self.watch.leave()

    def when_over(self, then: Callable[["Call"], None]) -> None:
        self._task.add_done_callback(lambda _: then(self))

    def __await__(self) -> Generator[Any, None, Reply]:
        return self._task.__await__()


class PlainClient:
    """Sends what it is told to. Every method gives a ``Call``, already under way: await it, watch it or leave it.

    Parallel use is fine, each call on a socket of its own unless ``keep_alive``. ``headers`` go with every request;
    ``read_timeout`` and ``deadline`` are real seconds. All that ended is in ``exchanges``.
    """

    def __init__(
        self,
        base_url: str,
        *,
        headers: AnyHeaders = (),
        keep_alive: bool = False,
        read_timeout: float = 30.0,
        deadline: float = 60.0,
    ) -> None:
        self._wire = Wire(base_url, keep_alive=keep_alive, read_timeout=read_timeout, deadline=deadline)
        self._headers = header_pairs(headers)
        self._account = Account()
        self._conversation = new_id()
        self._under_way: set[Call] = set()
        self.exchanges: list[Exchange] = []

    def get(self, path: str, *, headers: AnyHeaders = ()) -> Call:
        return self.send("GET", path, headers=headers)

    def post(self, path: str, body: Any, *, headers: AnyHeaders = (), watch: Watch | None = None) -> Call:
        """Post ``body``: bytes as they are, anything else as compact JSON."""
        return self.send("POST", path, body, headers=headers, watch=watch)

    def chat(
        self,
        task: str | list[Message],
        *,
        model: str = "policy_model",
        session: str | None = None,
        parent: str | None = None,
        stream: bool = False,
        headers: AnyHeaders = (),
        watch: Watch | None = None,
        **body: Any,
    ) -> Call:
        """One chat completion; further keywords go into the body.

        ``session`` and ``parent`` go as the headers ``proxy_x_session_id`` and ``X-Parent-Session-Id``.
        """
        messages = [{"role": "user", "content": task}] if isinstance(task, str) else task
        streaming = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
        known = (("proxy_x_session_id", session), ("X-Parent-Session-Id", parent))
        carried = [(name, value) for name, value in known if value is not None]
        whole = {"model": model, "messages": messages, **streaming, **body}
        return self.post("/v1/chat/completions", whole, headers=[*header_pairs(headers), *carried], watch=watch)

    def send(
        self, method: str, path: str, body: Any = None, *, headers: AnyHeaders = (), watch: Watch | None = None
    ) -> Call:
        """Any request. Host, Content-Type and Content-Length are added where ``headers`` do not name them."""
        watch = watch or Watch()
        raw = body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)
        head = _head([*self._headers, *header_pairs(headers)], with_body=body is not None)
        call = Call(self._send(method, path, head, raw, watch), watch)
        self._under_way.add(call)
        call.when_over(self._under_way.discard)
        return call

    async def _send(self, method: str, path: str, head: list[tuple[str, str]], body: bytes, watch: Watch) -> Reply:
        n = self._account.number()
        outcome = await self._wire.send(method, path, head, body, watch)
        answer = read_answer(outcome.received)
        streamed = outcome.received is not None and outcome.received.is_stream
        exchange = with_answer(outcome.exchange(n, streamed=streamed), answer.message, answer.error)
        self.exchanges.append(exchange)
        return Reply(exchange, answer)

    def told(self, session: str | None = None) -> Exchanges:
        """All exchanges so far in their versioned form, in order of sending."""
        ordered = tuple(sorted(self.exchanges, key=lambda exchange: exchange.n))
        return Exchanges(
            harness="plain", version="1", session=session, conversation=self._conversation, exchanges=ordered
        )

    async def close(self) -> None:
        """Leave every call that is still under way, and see it end."""
        for call in self._under_way:
            call.leave()
        await asyncio.gather(*self._under_way)
        await self._wire.close()

    async def __aenter__(self) -> "PlainClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _head(given: list[tuple[str, str]], *, with_body: bool) -> list[tuple[str, str]]:
    names = {name.lower() for name, _ in given}
    head = given if "host" in names else [("Host", HOST), *given]
    if with_body and "content-type" not in names:
        head = [*head, ("Content-Type", "application/json")]
    if with_body and not names & {"content-length", "transfer-encoding"}:
        head = [*head, ("Content-Length", LENGTH)]
    return head
