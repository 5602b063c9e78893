"""The Gym fork of OpenHands at commit 832f581f1: its model client on aiohttp, and the loop around it.

It posts plain JSON with literal nulls, carries the session in the body only, never retries an HTTP error, resends for
ever when the connection drops, and forgets a turn whose call it cannot run. Not played: its condensers (Gym runs it
without) and its litellm path.
"""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from fakes.harnesses.aiohttp_wire import AiohttpWire
from fakes.harnesses.chat_answers import ChatAnswer, Message, read_answer
from fakes.harnesses.conversation import Account, Conversation, HowItEnded, new_id, text_of, with_answer
from fakes.harnesses.exchanges import Exchange
from fakes.harnesses.tools import BadCallError, Tool, ToolBox, ToolResult

VERSION = "832f581f1"
RESEND_WAIT = 0.5
TRIPLE = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")

_RISK = "security_risk"
TOOLS = (
    Tool("execute_bash", "Run a command.", ("command", _RISK), ("is_input", "timeout"), enforced=("command",)),
    Tool("think", "Note a thought.", ("thought",)),
    Tool("finish", "End the task.", ("message",)),
    Tool("task_tracker", "Keep the list of tasks.", ("command", _RISK), ("task_list",), enforced=("command",)),
    Tool(
        "str_replace_editor",
        "View and edit files.",
        ("command", "path", _RISK),
        ("file_text", "old_str", "new_str", "insert_line", "view_range"),
        enforced=("command", "path"),
    ),
)
SYSTEM = "You are a coding agent that works with the tools it is given."
GO_ON = "Go on with the task. When it is solved, call finish. Nobody is here to answer questions."

# In the order recorded, with the versions recorded: the fork gives Content-Type, its own aiohttp adds the rest.
_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "*/*",
    "Accept-Encoding": "gzip, deflate",
    "User-Agent": "Python/3.12 aiohttp/3.12.15",
}


@dataclass
class OpenHandsNV:
    """One agent run of the fork against ``base_url`` (``http://host:port``, a path prefix is allowed for tests).

    ``session`` travels as ``proxy_x_session_id`` inside ``completion_kwargs``; None sends none. ``time_scale``
    multiplies waits; ``max_resends`` ends what the real client would repeat for ever; ``patience`` (real seconds)
    bounds a silent server, on which the real client has no time-out at all. ``sampling_seed`` is Gym's
    ``NEMO_GYM_SAMPLING_SEED``.
    """

    base_url: str
    session: str | None = None
    model: str = "policy_model"
    temperature: float = 1.0
    top_p: float | None = 0.95
    top_k: float | None = None
    max_output_tokens: int | None = None
    completion_kwargs: Mapping[str, Any] = field(default_factory=dict)
    sampling_seed: int | None = None
    tools: Sequence[Tool] = TOOLS
    tool_results: Mapping[str, str | ToolResult] = field(default_factory=dict)
    system: str = SYSTEM
    max_resends: int = 20
    patience: float = 60.0
    time_scale: float = 0.01

    async def run(self, task: str, *, max_turns: int = 50) -> Conversation:
        """Work on the task until the model finishes, the run errors out, or ``max_turns`` answers came."""
        async with AiohttpWire(self.base_url, self.patience) as wire:
            return await _Run(self, wire).go(task, max_turns)


@dataclass
class _Run:
    agent: OpenHandsNV
    wire: AiohttpWire
    account: Account = field(default_factory=Account)
    exchanges: list[Exchange] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    answered: int = 0

    async def go(self, task: str, max_turns: int) -> Conversation:
        self.messages = [{"content": self.agent.system, "role": "system"}, {"content": task, "role": "user"}]
        ended, error = await self._loop(ToolBox(self.agent.tools, self.agent.tool_results), max_turns)
        return Conversation(
            harness="openhands-nv",
            version=VERSION,
            session=self.agent.session,
            conversation=new_id(),
            ended=ended,
            error=error,
            messages=self.messages,
            exchanges=self.exchanges,
        )

    async def _loop(self, box: ToolBox, max_turns: int) -> tuple[HowItEnded, str | None]:
        for _ in range(max_turns):
            message = await self._call()
            if isinstance(message, Failure):
                return message.ended, message.why
            self.answered += 1
            if message.get("content") is None and not message.get("tool_calls"):
                return "error", "LLMContextWindowExceedError: the answer has neither content nor a call"
            try:
                turn = _as_sent_again(message)
            except KeyError as error:
                return "error", f"KeyError: {error}"
            if "tool_calls" not in turn:
                self.messages += [turn, {"content": GO_ON, "role": "user"}]
            elif self._act(box, turn):
                return "finished", None
        return "max_turns", None

    def _act(self, box: ToolBox, turn: Message) -> bool:
        """Run the calls one by one; True when one was ``finish``. With one bad call the whole turn is forgotten."""
        calls = turn["tool_calls"]
        try:
            parsed = [box.arguments(call["function"]["name"], call["function"]["arguments"]) for call in calls]
        except BadCallError:
            return False
        self.messages.append(turn)
        for call, arguments in zip(calls, parsed, strict=True):
            name = call["function"]["name"]
            if name == "finish":
                return True
            content = box.run(name, arguments)
            self.messages.append({"content": content, "role": "tool", "tool_call_id": call["id"], "name": name})
        return False

    async def _call(self) -> "Message | Failure":
        """One model call with the fork's habits: no retry of an HTTP error, a resend for every dropped connection."""
        body = orjson.dumps(self._body())
        for attempt in range(self.agent.max_resends + 1):
            wait = RESEND_WAIT if attempt else None
            if wait is not None:
                await asyncio.sleep(wait * self.agent.time_scale)
            n = self.account.number()
            outcome = await self.wire.post("/v1/chat/completions", _HEADERS, body)
            exchange = outcome.exchange(n, streamed=False, planned_wait=wait, attempt=attempt)
            answer = read_answer(exchange.response) if exchange.ended == "complete" else ChatAnswer()
            self.exchanges.append(with_answer(exchange, answer.message, answer.error))
            if exchange.ok and answer.message is not None:
                return answer.message
            if exchange.response is not None or exchange.ended == "timeout":
                return Failure("error", self.exchanges[-1].error or "the answer holds no message")
        return Failure("gave_up", f"no answer after {self.agent.max_resends} resends; the real client would go on")

    def _body(self) -> dict[str, Any]:
        agent = self.agent
        session = {} if agent.session is None else {"proxy_x_session_id": agent.session}
        return {
            "messages": _only_newest_triple(self.messages),
            "temperature": agent.temperature,
            "max_completion_tokens": agent.max_output_tokens,
            **({} if agent.top_k is None else {"top_k": float(agent.top_k)}),
            "top_p": agent.top_p,
            "aws_region_name": None,
            **session,
            **agent.completion_kwargs,
            "model": agent.model,
            "seed": self._seed(),
            **({"tools": [tool.offered() for tool in agent.tools]} if agent.tools else {}),
        }

    def _seed(self) -> int | None:
        """Gym's per-call seed; its ordinal moves on only when a call succeeded."""
        if self.agent.sampling_seed is None:
            return None
        key = f"nemo-gym/model-call/v1:{self.agent.sampling_seed}:{self.answered}"
        return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") & (2**63 - 1)


@dataclass(frozen=True)
class Failure:
    """A call that brought no answer: how that ends the run, and why."""

    ended: HowItEnded
    why: str


def _as_sent_again(message: Message) -> Message:
    """The assistant turn as the fork keeps it: blank content becomes ``""``, reasoning is lost, the triple stays.

    Raises ``KeyError`` where the real client does: prompt ids without the other two.
    """
    content = text_of(message.get("content"))
    turn: Message = {"content": content if content.strip() else "", "role": "assistant"}
    if calls := message.get("tool_calls"):
        turn["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["function"]["name"], "arguments": call["function"]["arguments"]},
            }
            for call in calls
        ]
    if message.get("prompt_token_ids"):
        turn.update({key: message[key] for key in TRIPLE})
    return turn


def _only_newest_triple(messages: list[Message]) -> list[Message]:
    newest = max((at for at, message in enumerate(messages) if all(key in message for key in TRIPLE)), default=None)
    return [
        message if at == newest or newest is None else {key: message[key] for key in message if key not in TRIPLE}
        for at, message in enumerate(messages)
    ]
