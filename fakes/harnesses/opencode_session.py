"""One session of opencode at work: turns, tools that run side by side, subagents, and its compactions."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from fakes.harnesses.chat_answers import Message
from fakes.harnesses.conversation import Conversation, HowItEnded, text_of
from fakes.harnesses.opencode_calls import Call, understood
from fakes.harnesses.opencode_client import CallFailed, Client, ContextOverflow, Reply
from fakes.harnesses.opencode_history import History, budget_for, kept_from, last_asked
from fakes.harnesses.opencode_ids import new_session_id
from fakes.harnesses.opencode_texts import BUILD, CONTINUE, OVERFLOWED, RESULTS, SUBAGENTS, VERSION, Kind, offered
from fakes.harnesses.tools import Tool, ToolBox, ToolResult

Content = str | list[dict[str, Any]]

_LAST = frozenset({"stop", "length", "content_filter"})
"""Finish reasons after which the loop ends, if nothing was called; it goes on after any other, and after none."""


class Settings(Protocol):
    """What a session needs to know of the configuration."""

    @property
    def interleaved(self) -> str | None: ...
    @property
    def usable(self) -> int | None: ...
    @property
    def tool_results(self) -> Mapping[str, str | ToolResult]: ...

    def body(self, messages: list[Message], tools: list[dict[str, Any]], *, main: bool = False) -> dict[str, Any]: ...


@dataclass
class Session:
    """A root session or a subagent's; ``children`` by session id, so that a task can be taken up again.

    ``child_ids`` are the ids of new ones; random once they are used up.
    """

    settings: Settings
    client: Client
    kind: Kind
    history: History
    question: bool = False
    children: dict[str, "Session"] = field(default_factory=dict)
    child_ids: Iterator[str] = field(default_factory=lambda: iter(()))
    ended: HowItEnded = "max_turns"
    error: str | None = None
    said: str = ""
    busy: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def tools(self) -> tuple[Tool, ...]:
        return self.kind.tools(question=self.question)

    async def go(self, content: Content, max_turns: int) -> None:
        """Work on one user message until the model ends its answer; ``ended`` and ``error`` say how that came out.

        ``said`` is the text of the last answer. A session that is at work takes its next message afterwards.
        """
        async with self.busy:
            self.history.steps.append(({"role": "user", "content": content},))
            try:
                self.ended, self.error = await self._loop(max_turns), None
            except CallFailed as failure:
                self.ended, self.error = "error", str(failure)

    async def _loop(self, max_turns: int) -> HowItEnded:
        for _ in range(max_turns):
            try:
                reply = await self.client.call(self._body())
            except ContextOverflow:
                await self._compact(overflowed=True)
                continue
            calls = await self._act(reply)
            if self._is_full(reply):
                await self._compact(overflowed=False)
            elif not calls and reply.answer.finish_reason in _LAST:
                return "answered"
        return "max_turns"

    def _body(self) -> dict[str, Any]:
        tools = [offered(tool) for tool in self.tools]
        return self.settings.body(self.history.messages(), tools, main=self.kind is BUILD)

    async def _act(self, reply: Reply) -> list[Call]:
        """Run all calls at once; their results stand in the order of the calls. An empty answer leaves no trace."""
        calls = [understood(call, self.tools) for call in reply.message.get("tool_calls", [])]
        results = await asyncio.gather(*(self._result(call) for call in calls))
        self.said = text_of(reply.message.get("content"))
        turn = self._turn(reply.message, calls)
        tools = [
            {"role": "tool", "tool_call_id": call.id, "content": result}
            for call, result in zip(calls, results, strict=True)
        ]
        if step := (*reply.leftovers, *turn, *tools):
            self.history.steps.append(step)
        return calls

    def _turn(self, message: Message, calls: Iterable[Call]) -> list[Message]:
        text = text_of(message.get("content"))
        thought = message.get("reasoning_content") or message.get("reasoning")
        sent = [call.sent() for call in calls]
        if not (text or thought or sent):
            return []
        named = {self.settings.interleaved or "reasoning_content": thought} if thought else {}
        called = {"tool_calls": sent} if sent else {}
        rest = called | named if self.settings.interleaved else named | called
        return [{"role": "assistant", "content": text, **rest}]

    async def _result(self, call: Call) -> str:
        if call.answer is not None:
            return call.answer
        if call.name == "task":
            return await self._task(call.value)
        return ToolBox(self.tools, {**RESULTS, **self.settings.tool_results}).run(call.name, call.value)

    async def _task(self, arguments: Mapping[str, Any]) -> str:
        """A subagent from start to end, or one step further. What it throws is the tool's result."""
        kind = SUBAGENTS.get(str(arguments["subagent_type"]))
        if kind is None:
            return f"Unknown agent type: {arguments['subagent_type']} is not a valid agent type"
        task_id = str(arguments.get("task_id") or "")
        if task_id and not task_id.startswith("ses"):
            return f'A task id starts with "ses", got "{task_id}"'
        child = self.children.get(task_id) or self._new_child(kind)
        await child.go(str(arguments["prompt"]), max_turns=50)
        state, inner, text = ("completed", "task_result", child.said)
        if child.error is not None:
            state, inner, text = "error", "task_error", child.error
        return f'<task id="{child.client.session}" state="{state}">\n<{inner}>\n{text}\n</{inner}>\n</task>'

    def _new_child(self, kind: Kind) -> "Session":
        ours = self.client
        id_ = next(self.child_ids, None) or new_session_id()
        client = Client(ours.wire, ours.account, id_, ours.session, ours.api_key, ours.headers, ours.time_scale)
        child = Session(self.settings, client, kind, History(kind.system), self.question)
        self.children[client.session] = child
        return child

    def _is_full(self, reply: Reply) -> bool:
        """By the usage the server reports, and by nothing else."""
        total = (reply.answer.usage or {}).get("total_tokens")
        return self.settings.usable is not None and isinstance(total, int) and total >= self.settings.usable

    async def _compact(self, *, overflowed: bool) -> None:
        """Replace the history by a summary, the newest steps and a message to go on.

        After an overflow an earlier user message makes the newest one be asked again instead: not recorded.
        """
        steps, again = self.history.steps, None
        at = last_asked(steps) if overflowed else None
        if at is not None and last_asked(steps[:at]) is not None:
            steps, again = steps[:at], steps[at]
        kept = kept_from(steps, budget_for(self.settings.usable or 0))
        reply = await self.client.call(self.settings.body(self.history.summary_request(steps[:kept]), []))
        summary, *_ = self._turn(reply.message, []) or [{"role": "assistant", "content": ""}]
        text = OVERFLOWED + CONTINUE if overflowed else CONTINUE
        tail = [*steps[kept:], again or ({"role": "user", "content": text},)]
        self.history = History(self.kind.system, tail, summary)

    def told(self) -> Conversation:
        """Everything this session and its subagents sent and got."""
        client = self.client
        return Conversation(
            harness="opencode",
            version=VERSION,
            session=dict(client.head())["x-session-id"],
            conversation=client.session,
            ended=self.ended,
            error=self.error,
            messages=self.history.messages(),
            exchanges=sorted(client.exchanges, key=lambda exchange: exchange.n),
            children=[child.told() for child in self.children.values()],
        )
