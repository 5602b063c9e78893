"""The loop of one Codex agent: ask, take the items, run the calls, ask again; compact where the window fills up."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import orjson

from fakes.harnesses import codex_requests, codex_tools
from fakes.harnesses.codex_client import CallFailed, Client, backoff
from fakes.harnesses.codex_history import History, last_text, output, user
from fakes.harnesses.codex_ids import new_thread_id
from fakes.harnesses.codex_requests import Thread
from fakes.harnesses.codex_stream import Item, StreamEnd
from fakes.harnesses.conversation import Conversation, HowItEnded

End = tuple[HowItEnded, str | None]


class AgentTools(Protocol):
    """Runs the calls that handle sub-agents."""

    async def run(self, name: str, raw: str) -> str: ...


@dataclass(frozen=True)
class Settings:
    """What all agents of a session share."""

    configured: Mapping[str, str]
    api_key: str
    own_tools: codex_tools.OwnTools
    compact_at: int | None
    max_turns: int


@dataclass
class Agent:
    """One thread at work. ``agent_tools`` is None for a sub-agent; ``inbox`` is said before the next request."""

    settings: Settings
    client: Client
    thread: Thread
    agent_tools: AgentTools | None = None
    inbox: list[Item] = field(default_factory=list)
    children: list[Conversation] = field(default_factory=list)
    tokens: float = 0
    last_said: str | None = None

    def __post_init__(self) -> None:
        self.history = History(self.thread.thread)
        self._mixed = 0

    async def work_on(self, text: str, turn: str | None = None) -> End:
        """One user turn: until an answer calls nothing and nothing waits in the inbox, or a call fails for good."""
        thread = self.thread
        thread.turn = turn or new_thread_id()
        if thread.parent is None:
            thread.root_turn = thread.turn
        thread.started_at = int(time.time() * 1000)
        try:
            if self._full:
                await self._compact("pre_turn")
            self._add(user(text))
            for _ in range(self.settings.max_turns):
                self._add(*self.inbox)
                self.inbox.clear()
                called = await self._answer()
                if not called and not self.inbox:
                    return "answered", None
                if self._full:
                    await self._compact("mid_turn")
        except CallFailed as failure:
            return "error", str(failure)
        return "max_turns", None

    def told(self, ended: HowItEnded, error: str | None, session: str | None) -> Conversation:
        return Conversation(
            harness="codex",
            version=codex_requests.VERSION,
            session=session,
            conversation=self.thread.thread,
            ended=ended,
            error=error,
            messages=self.history.written(),
            exchanges=self.client.exchanges,
            children=self.children,
        )

    async def _answer(self) -> bool:
        """One answer, over as many streams as it takes; whether the last of them called anything.

        What a cut stream told stays, and what it called is run, but a whole answer in plain text ends the turn.
        """
        self.client.new_call()
        for reconnects in range(self.client.patience.streams + 1):
            end = await self._ask(self.history.written(), None)
            self.last_said = last_text(end.items) or (self.last_said if end.how != "completed" else None)
            self._add(*end.items)
            if end.tokens is not None:
                self.tokens = end.tokens
            called = await self._run_calls(end.items)
            if await self._is_over(end, reconnects):
                return called
        raise AssertionError("the loop above returns or raises")

    async def _run_calls(self, items: list[Item]) -> bool:
        """Add the outputs of the calls among the items, in order of the calls; whether there were any."""
        calls = [item for item in items if item["type"] == "function_call"]
        self._add(*[output(call, await self._run(call)) for call in calls])
        return bool(calls)

    async def _run(self, call: Item) -> str:
        if call.get("namespace") == codex_tools.AGENTS and self.agent_tools is not None:
            return await self.agent_tools.run(call["name"], call["arguments"])
        if "namespace" in call:
            return f"unsupported call: {call['namespace']}.{call['name']}"
        return self.settings.own_tools.run(call["name"], call["arguments"], call["call_id"])

    async def _compact(self, phase: str) -> None:
        """Have the history summarised, and go on from the summary in a new window."""
        self.client.new_call()
        reconnects = 0
        while True:
            end = await self._ask(self.history.for_compaction(), phase)
            if end.code == "context_length_exceeded" and self.history.drop_oldest():
                self.client.new_call()
                continue
            if await self._is_over(end, reconnects):
                break
            reconnects += 1
        self.history.compact(last_text(end.items) or "")
        self.tokens = 0
        self.thread.window += 1
        self.thread.context_window = new_thread_id()

    async def _ask(self, history: list[Item], compaction: str | None) -> StreamEnd:
        self._mixed += 1
        tools = [] if compaction else codex_tools.offered(with_agents=self.agent_tools is not None)
        head = codex_requests.headers(self.thread, self.settings.configured, self.settings.api_key, compaction)
        body = codex_requests.body(self.thread, history, tools, compaction, self._mixed)
        return await self.client.post(head, orjson.dumps(body))

    async def _is_over(self, end: StreamEnd, reconnects: int) -> bool:
        """Whether the answer is whole. Raises ``CallFailed`` when it never will be; else waits before a reconnect."""
        if end.how == "completed":
            return True
        if end.how == "fatal" or reconnects >= self.client.patience.streams:
            raise CallFailed(end.error or "no answer", end.code)
        await self.client.rest(end.wait or backoff(reconnects + 1))
        return False

    @property
    def _full(self) -> bool:
        return self.settings.compact_at is not None and self.tokens >= self.settings.compact_at

    def _add(self, *items: Item) -> None:
        self.history.items.extend(items)
        # Until the server counts again, four bytes are taken for a token.
        self.tokens += sum(len(orjson.dumps(item)) for item in items) / 4
