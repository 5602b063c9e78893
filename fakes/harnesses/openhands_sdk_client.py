"""How the OpenHands SDK 1.58.2 calls a model: litellm and the openai client's request, and its retries on top."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from fakes.harnesses.chat_answers import ChatAnswer, Message, read_answer
from fakes.harnesses.conversation import Account, with_answer
from fakes.harnesses.exchanges import Exchange
from fakes.harnesses.wire import HOST, LENGTH, Wire

READ_TIMEOUT = 300.0
_RETRIED = frozenset({408, 429, 500, 502, 503, 504})
_OVERFLOW = ("maximum context length", "context window", "reduce the length")


@dataclass(frozen=True)
class RetryPolicy:
    """Exponential waits between ``low`` and ``high`` seconds; ``Retry-After`` is not read."""

    attempts: int = 5
    multiplier: float = 8.0
    low: float = 8.0
    high: float = 64.0

    def wait(self, attempt: int) -> float | None:
        """The wait in seconds before the send number ``attempt`` (0 is the first)."""
        if attempt == 0:
            return None
        return min(self.high, max(self.low, self.multiplier * 2.0 ** (attempt - 1)))


class CallFailed(Exception):
    """Raised when a call brought no answer and the SDK does not, or no longer, retry it."""


class ContextWindowExceeded(CallFailed):
    """Raised when the server says that the prompt is too long."""


@dataclass(frozen=True)
class SdkClient:
    """The model client of one conversation and its sub-agents. ``conversation`` is the id in the session header."""

    wire: Wire
    account: Account
    conversation: str
    api_key: str = "EMPTY"
    extra_headers: Mapping[str, str] = field(default_factory=dict)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    time_scale: float = 0.01
    exchanges: list[Exchange] = field(default_factory=list)

    async def call(self, body: dict[str, Any]) -> Message:
        """The assistant message for this body. Raises ``CallFailed`` or ``ContextWindowExceeded``."""
        raw = orjson.dumps(body)
        answer = ChatAnswer()
        for attempt in range(self.retry.attempts):
            wait = self.retry.wait(attempt)
            if wait is not None:
                await asyncio.sleep(wait * self.time_scale)
            exchange, answer = await self._send(raw, attempt, wait, streamed=bool(body.get("stream")))
            if exchange.ok and answer.error is None:
                # litellm closes a stream that ends without a finish reason itself, so it passes for an answer.
                return _message(body, answer)
            broken = exchange.ended != "complete" or (exchange.ok and exchange.streamed)
            if not broken and exchange.status not in _RETRIED:
                break
        why = f"{self.exchanges[-1].status or self.exchanges[-1].ended}: {answer.error or 'no whole answer'}"
        overflow = self.exchanges[-1].status == 400 and any(sign in why.lower() for sign in _OVERFLOW)
        raise (ContextWindowExceeded if overflow else CallFailed)(why)

    async def _send(
        self, raw: bytes, attempt: int, wait: float | None, *, streamed: bool
    ) -> tuple[Exchange, ChatAnswer]:
        n = self.account.number()
        outcome = await self.wire.send("POST", "/v1/chat/completions", self._headers(), raw)
        answer = read_answer(outcome.received) if outcome.ended == "complete" else ChatAnswer(error=outcome.error)
        exchange = outcome.exchange(n, streamed=streamed, planned_wait=wait, attempt=attempt)
        self.exchanges.append(with_answer(exchange, answer.message, answer.error))
        return exchange, answer

    def _headers(self) -> list[tuple[str, str]]:
        # litellm overrides a user's own x-litellm-session-id.
        extra = {"HTTP-Referer": "https://docs.all-hands.dev/", "X-Title": "OpenHands", **self.extra_headers}
        extra["x-litellm-session-id"] = self.conversation
        return [
            ("Host", HOST),
            ("Accept-Encoding", "gzip, deflate"),
            ("Connection", "keep-alive"),
            ("Authorization", f"Bearer {self.api_key}"),
            ("Accept", "application/json"),
            ("Content-Type", "application/json"),
            ("User-Agent", "OpenAI/Python 2.54.0"),
            ("X-Stainless-Lang", "python"),
            ("X-Stainless-Package-Version", "2.54.0"),
            ("X-Stainless-OS", "Linux"),
            ("X-Stainless-Arch", "x64"),
            ("X-Stainless-Runtime", "CPython"),
            ("X-Stainless-Runtime-Version", "3.12.1"),
            ("X-Stainless-Async", "false"),
            *extra.items(),
            ("X-Stainless-Raw-Response", "true"),
            ("x-stainless-retry-count", "0"),
            ("x-stainless-read-timeout", str(READ_TIMEOUT)),
            ("Content-Length", LENGTH),
        ]


def _message(body: dict[str, Any], answer: ChatAnswer) -> Message:
    if answer.message is None:
        raise CallFailed("the answer holds no message")
    if body.get("return_token_ids") and answer.body is not None:
        # Having asked for ids, the SDK reads them without looking whether they are there.
        choice = answer.body["choices"][0]
        for name, holder in (("prompt_token_ids", answer.body), ("token_ids", choice)):
            if name not in holder:
                raise CallFailed(f"AttributeError: the response has no {name}")
    return answer.message
