"""How opencode 1.18.33 calls a model: the request of its AI SDK under Bun, and the retries around it.

The jitter of up to a quarter is left out of the waits. Not recorded, so a guess: an event that is not JSON is taken as
an error event, and an answer that is no stream as a failure.
"""

import asyncio
import re
from dataclasses import dataclass, field
from typing import Any

from fakes.harnesses.chat_answers import ChatAnswer, Message, read_answer
from fakes.harnesses.claude_code_json import js_dump
from fakes.harnesses.conversation import Account, with_answer
from fakes.harnesses.exchanges import Exchange
from fakes.harnesses.opencode_calls import left_behind
from fakes.harnesses.opencode_texts import VERSION
from fakes.harnesses.wire import HOST, LENGTH, Watch, Wire

SILENCE = 300.0
"""Seconds without a head, or without a chunk, after which the real client drops the connection and sends again."""

_RETRIED = frozenset({408, 409, 429})
_OVERFLOW = re.compile(
    r"maximum context length is \d+ tokens|reduce the length of the messages|exceeds the context window"
    r"|prompt is too long|context[_ ]length[_ ]exceeded|greater than the context length|input length.*context length",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Retries:
    """``count`` further sends, waiting 2, 4, 8, … seconds. ``of_streams``: also when a stream broke once it ran."""

    count: int
    of_streams: bool

    def wait(self, attempt: int, last: Exchange) -> float:
        """Seconds before the send number ``attempt``: as the server asks, else growing; capped only without a head."""
        for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
            if (wish := _seconds(last, name, unit)) is not None:
                return wish
        wait = 2.0 * 2.0 ** (attempt - 1)
        return wait if last.ended == "complete" and not last.ok else min(wait, 30.0)


TURNS = Retries(5, of_streams=True)
TITLES = Retries(2, of_streams=False)


class CallFailed(Exception):
    """Raised when a call brought no answer and opencode does not, or no longer, retry it."""


class ContextOverflow(CallFailed):
    """Raised when the server says that the prompt is too long."""


@dataclass(frozen=True)
class Reply:
    """An answer, and what earlier attempts at it left in the history."""

    answer: ChatAnswer
    message: Message
    leftovers: tuple[Message, ...] = ()


@dataclass
class Client:
    """The model client of one session. ``headers`` are the user's, from the configuration."""

    wire: Wire
    account: Account
    session: str
    parent: str | None = None
    api_key: str = "EMPTY"
    headers: dict[str, str] = field(default_factory=dict)
    time_scale: float = 0.01
    exchanges: list[Exchange] = field(default_factory=list)
    watch: Watch = field(default_factory=Watch)
    left: bool = False

    async def call(self, body: dict[str, Any], retries: Retries = TURNS) -> Reply:
        """The answer to this body, sent again byte for byte while it may. Raises ``CallFailed``, ``ContextOverflow``.

        A stream that ends without a finish reason is an answer all the same; one that holds an error is none.
        """
        raw = js_dump(body).encode()
        leftovers: list[Message] = []
        exchange, answer = await self._send(raw, 0, None)
        for attempt in range(1, retries.count + 1):
            if _is_whole(exchange, answer) or not _may_repeat(exchange, retries):
                break
            if exchange.ok and answer.message is not None:
                leftovers += left_behind(answer.message)
            wait = retries.wait(attempt, exchange)
            await asyncio.sleep(wait * self.time_scale)
            exchange, answer = await self._send(raw, attempt, wait)
        if not _is_whole(exchange, answer):
            raise _failure(exchange, answer)
        return Reply(answer, answer.message or {"role": "assistant"}, tuple(leftovers))

    def leave(self) -> None:
        """Drop whatever is under way; nothing is sent again."""
        self.left = True
        self.watch.leave()

    async def _send(self, raw: bytes, attempt: int, wait: float | None) -> tuple[Exchange, ChatAnswer]:
        if self.left:
            raise CallFailed("left before it was sent again")
        n = self.account.number()
        outcome = await self.wire.send("POST", "/v1/chat/completions", self.head(), raw, self.watch)
        self.watch = Watch()
        answer = read_answer(outcome.received) if outcome.ended == "complete" else ChatAnswer(error=outcome.error)
        exchange = outcome.exchange(n, streamed=True, planned_wait=wait, attempt=attempt)
        self.exchanges.append(with_answer(exchange, answer.message, answer.error))
        return exchange, answer

    def head(self) -> list[tuple[str, str]]:
        """Bun writes the names it knows in its own case and the rest in lower case, sorted."""
        own = {"x-session-affinity": self.session, "x-session-id": self.session}
        if self.parent is not None:
            own["x-parent-session-id"] = self.parent
        own |= {name.lower(): value for name, value in self.headers.items()}
        return [
            ("Authorization", f"Bearer {self.api_key}"),
            ("Content-Type", "application/json"),
            ("User-Agent", f"opencode/{VERSION} ai-sdk/provider-utils/4.0.23 runtime/bun/1.3.14"),
            *sorted(own.items()),
            ("Connection", "keep-alive"),
            ("Accept", "*/*"),
            ("Host", HOST),
            ("Accept-Encoding", "gzip, deflate, br, zstd"),
            ("Content-Length", LENGTH),
        ]


def _is_whole(exchange: Exchange, answer: ChatAnswer) -> bool:
    return exchange.ok and answer.error is None and exchange.response is not None and exchange.response.is_stream


def _may_repeat(exchange: Exchange, retries: Retries) -> bool:
    if exchange.ended == "abandoned":
        return False
    if exchange.status is None:
        return True
    if 200 <= exchange.status < 300:
        return retries.of_streams and (exchange.response is not None and exchange.response.is_stream)
    return exchange.status >= 500 or exchange.status in _RETRIED


def _failure(exchange: Exchange, answer: ChatAnswer) -> CallFailed:
    why = f"{exchange.status or exchange.ended}: {answer.error or 'the answer is no stream'}"
    too_long = exchange.status == 413 or (exchange.status == 400 and _OVERFLOW.search(why) is not None)
    return (ContextOverflow if too_long else CallFailed)(why)


def _seconds(last: Exchange, name: str, unit: float) -> float | None:
    """A wait the server asked for as a number; a date is not played."""
    asked = None if last.response is None else last.response.header(name)
    try:
        return None if asked is None else float(asked) * unit
    except ValueError:
        return None
