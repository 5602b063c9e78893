"""The OpenHands SDK 1.58.2 (LocalConversation over litellm's openai provider): its requests and its loop.

Not played: the hosted_vllm and litellm_proxy providers, and the Responses API mode. Not recorded, so a guess: that
a broken or failed *stream* is retried like a dropped connection.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fakes.harnesses import openhands_nonnative as nonnative
from fakes.harnesses.chat_answers import Message
from fakes.harnesses.conversation import (
    Account,
    Conversation,
    HowItEnded,
    new_id,
    text_of,
    text_parts,
)
from fakes.harnesses.openhands_condenser import History, Unit
from fakes.harnesses.openhands_sdk_client import (
    READ_TIMEOUT,
    CallFailed,
    ContextWindowExceeded,
    RetryPolicy,
    SdkClient,
)
from fakes.harnesses.tools import BadCallError, Tool, ToolBox, ToolResult
from fakes.harnesses.wire import Wire

VERSION = "1.58.2"
MALFORMED = "_openhands_malformed_tool_call"
NUDGE = "Your answer held neither text nor a call. Call a tool, or finish."

TERMINAL = Tool("terminal", "Run a command.", ("command",), ("is_input", "timeout", "reset"), enforced=("command",))
FILE_EDITOR = Tool(
    "file_editor",
    "View and edit files.",
    ("command", "path"),
    ("file_text", "old_str", "new_str", "insert_line", "view_range"),
    enforced=("command", "path"),
)
TASK = Tool("task", "Give a task to a sub-agent.", ("prompt",), ("description", "subagent_type"), enforced=("prompt",))
TASK_TRACKER = Tool("task_tracker", "Keep the list of tasks.", ("command",), ("task_list",), enforced=("command",))
FINISH = Tool("finish", "End the task.", ("message",))
THINK = Tool("think", "Note a thought.", ("thought",))

SYSTEM = "You are a coding agent that works with the tools it is given."
SUBAGENT_SYSTEM = "You are a sub-agent; another agent reads your last message."


@dataclass
class OpenHandsSDK:
    """One conversation of the SDK against ``base_url`` (``http://host:port``, with or without a path in front).

    ``conversation`` is the id in ``x-litellm-session-id`` and ``prompt_cache_key`` (random when not given), ``session``
    goes as ``proxy_x_session_id`` into ``litellm_extra_body``, beside ``extra_body``; ``extra_headers`` are the user's.
    ``sampling`` gives temperature, top_p, top_k; with it the SDK sends those, and no ``reasoning_effort`` or cache key.
    ``condense_at`` is the condenser's ``max_size``; None runs without one. ``time_scale`` multiplies waits,
    ``timeout_scale`` the 300 s read time-out (30 s by default: no scenario shall fail because a machine is slow).
    """

    base_url: str
    session: str | None = None
    model: str = "policy_model"
    conversation: str = field(default_factory=new_id)
    extra_headers: Mapping[str, str] = field(default_factory=dict)
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    sampling: Mapping[str, float] | None = None
    max_output_tokens: int | None = None
    seed: int | None = None
    stream: bool = False
    native: bool = True
    subagents: bool = False
    condense_at: int | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    tool_results: Mapping[str, str | ToolResult] = field(default_factory=dict)
    api_key: str = "EMPTY"
    time_scale: float = 0.01
    timeout_scale: float = 0.1

    async def run(self, task: str, *, follow_ups: Sequence[str] = (), max_turns: int = 50) -> Conversation:
        """Work on the task; each time the model answers in plain text, say the next of ``follow_ups``, else end."""
        tools = (
            (TERMINAL, FILE_EDITOR, TASK, FINISH, THINK) if self.subagents else (TERMINAL, FILE_EDITOR, FINISH, THINK)
        )
        async with Wire(self.base_url, read_timeout=READ_TIMEOUT * self.timeout_scale) as wire:
            client = SdkClient(
                wire, Account(), self.conversation, self.api_key, self.extra_headers, self.retry, self.time_scale
            )
            system: Message = {"content": text_parts(SYSTEM), "role": "system"}
            return await _Run(self, client, tools, History(system, task)).go(list(follow_ups), max_turns)


@dataclass
class _Run:
    """One agent, the main one or a sub-agent, at work."""

    agent: OpenHandsSDK
    client: SdkClient
    tools: tuple[Tool, ...]
    history: History
    children: list[Conversation] = field(default_factory=list)

    async def go(self, follow_ups: list[str], max_turns: int) -> Conversation:
        ended, error = await self._loop(follow_ups, max_turns)
        return Conversation(
            harness="openhands-sdk",
            version=VERSION,
            session=self.agent.session,
            conversation=self.client.conversation,
            ended=ended,
            error=error,
            messages=self.history.messages(),
            exchanges=self.client.exchanges,
            children=self.children,
        )

    async def _loop(self, follow_ups: list[str], max_turns: int) -> tuple[HowItEnded, str | None]:
        for _ in range(max_turns):
            try:
                message = await self._next_message()
            except CallFailed as failure:
                return "error", f"ConversationRunError: {failure}"
            if calls := message.get("tool_calls"):
                if await self._act(message, calls):
                    return "finished", None
                continue
            self._add({"content": _plain_content(message.get("content")), "role": "assistant"})
            if not text_of(message.get("content")):
                self._add(_user(NUDGE))
            elif follow_ups:
                self._add(_user(follow_ups.pop(0)))
            else:
                return "answered", None
        return "max_turns", None

    async def _next_message(self) -> Message:
        """One answer, condensing first where the history has grown too long, and again where the server says so."""
        if self.agent.condense_at is not None and self.history.size > self.agent.condense_at:
            await self._condense(self.agent.condense_at // 2)
        try:
            message = await self.client.call(self._body())
        except ContextWindowExceeded:
            if self.agent.condense_at is None or not self.history.units:
                raise
            await self._condense(self.history.size // 2)
            message = await self.client.call(self._body())
        if not self.agent.native and (found := nonnative.call_in(text_of(message.get("content")))):
            return {"role": "assistant", "content": found[0], "tool_calls": [found[1]]}
        return message

    async def _condense(self, target: int) -> None:
        count = self.history.to_forget(target)
        body = self._settings() | {"messages": self.history.summary_request(count)}
        self.history.forget(count, text_of((await self.client.call(body)).get("content")))

    async def _act(self, message: Message, calls: list[dict[str, Any]]) -> bool:
        """Run every call in order; True when one was ``finish``."""
        box = ToolBox(self.tools, self.agent.tool_results)
        kept: list[dict[str, Any]] = []
        results: list[Message] = []
        finished = False
        for call in calls:
            name, raw = call["function"]["name"], call["function"]["arguments"]
            try:
                arguments = box.arguments(name, raw)
            except BadCallError as bad:
                # What does not parse is replaced in the history; an unknown tool stays as it was generated.
                raw = json.dumps({MALFORMED: True, "error": str(bad)}) if bad.malformed else raw
                texts = [f"Error: {bad}"]
            else:
                # What does parse is dumped anew: plain ASCII, with blanks after commas and colons.
                raw = json.dumps(arguments)
                finished = finished or name == "finish"
                texts = await self._delegate(arguments) if name == "task" else [box.run(name, arguments)]
            kept.append({"id": call["id"], "type": "function", "function": {"name": name, "arguments": raw}})
            results.append({"content": text_parts(*texts), "role": "tool", "tool_call_id": call["id"], "name": name})
        text = text_of(message.get("content"))
        content = {"content": text_parts(text)} if text else {}
        turn: Message = {**content, "role": "assistant", "tool_calls": kept}
        if not finished:
            self.history.units.append(Unit((turn, *results), 2 * len(kept)))
        return finished

    async def _delegate(self, arguments: Mapping[str, Any]) -> list[str]:
        """A sub-agent from start to end: its own conversation id, its parent's cache key, and no link on the wire."""
        system: Message = {"content": text_parts(SYSTEM, SUBAGENT_SYSTEM), "role": "system"}
        client = replace(self.client, conversation=new_id(), exchanges=[])
        tools = (TERMINAL, FILE_EDITOR, TASK_TRACKER, FINISH, THINK)
        child = _Run(self.agent, client, tools, History(system, str(arguments["prompt"])))
        told = await child.go([], max_turns=50)
        self.children.append(told)
        return [f"The sub-agent has {told.ended}.", _last_words(told)]

    def _add(self, message: Message) -> None:
        self.history.units.append(Unit((message,), 1))

    def _body(self) -> dict[str, Any]:
        streaming = {"stream": True, "stream_options": {"include_usage": True}} if self.agent.stream else {}
        if not self.agent.native:
            messages = nonnative.as_text(self.history.messages(), self.tools)
            return self._settings(stop=nonnative.STOP, **streaming) | {"messages": messages}
        offered = [tool.offered() for tool in self.tools]
        return self._settings(tools=offered, **streaming) | {"messages": self.history.messages()}

    def _settings(self, **of_the_call: Any) -> dict[str, Any]:
        """Everything but the messages: litellm sorts what it knows by name and puts the rest, the extra body, last."""
        agent = self.agent
        known: dict[str, Any] = dict(of_the_call)
        if agent.sampling is None:
            known |= {"prompt_cache_key": agent.conversation, "reasoning_effort": "high"}
        else:
            known |= agent.sampling
        if agent.max_output_tokens is not None:
            known["max_completion_tokens"] = agent.max_output_tokens
        if agent.seed is not None:
            known["seed"] = agent.seed
        session = {} if agent.session is None else {"proxy_x_session_id": agent.session}
        head = {"messages": [], "model": agent.model}
        return head | {name: known[name] for name in sorted(known)} | session | dict(agent.extra_body)


def _user(text: str) -> Message:
    return {"content": text_parts(text), "role": "user"}


def _plain_content(content: Any) -> Any:
    """A plain answer as sent again: null becomes an empty string, a string one text part."""
    return "" if content is None else text_parts(text_of(content))


def _last_words(told: Conversation) -> str:
    if told.error is not None:
        return told.error
    last = told.answers[-1] if told.answers else {}
    for call in last.get("tool_calls", []):
        if call["function"]["name"] == "finish":
            return str(json.loads(call["function"]["arguments"] or "{}").get("message", ""))
    return text_of(last.get("content"))
