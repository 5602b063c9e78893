"""opencode 1.18.33 over its OpenAI-compatible provider: its requests and its loop.

Not played: providers whose id starts with ``opencode`` (no session headers), other dialects, custom agents, MCP tools,
context pruning, the cut of tool output above 12 kB, and a process that is killed.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from fakes.harnesses.chat_answers import Message
from fakes.harnesses.claude_code_json import js_dump, js_parse
from fakes.harnesses.conversation import Account, Conversation
from fakes.harnesses.opencode_client import SILENCE, TITLES, CallFailed, Client
from fakes.harnesses.opencode_history import History, history_of
from fakes.harnesses.opencode_ids import new_session_id
from fakes.harnesses.opencode_session import Content, Session
from fakes.harnesses.opencode_texts import BUILD, TITLE_REQUEST, TITLE_SYSTEM
from fakes.harnesses.tools import ToolResult
from fakes.harnesses.wire import Watch, Wire

_MOST_OUTPUT = 32_000


@dataclass(frozen=True)
class Attachment:
    """A file given with the prompt: its ``text``, or a picture as a ``data:`` address."""

    path: str
    text: str | None = None
    image: str | None = None

    def parts(self) -> list[dict[str, Any]]:
        """As if the agent had called its read tool on it."""
        called = f"Called the Read tool with the following input: {js_dump({'filePath': self.path})}"
        if self.image is None:
            return [_text(called), _text(self.text or "")]
        picture = {"type": "image_url", "image_url": {"url": self.image}}
        return [_text(called), _text("Image read successfully"), picture]


@dataclass
class OpenCode:
    """A run of opencode against ``base_url`` (``http://host:port``, with or without a path in front).

    ``session`` is the id of a new root session (random when not given). ``headers`` come from the configuration; they
    win over the client's own, ``x-session-id`` included. ``context`` and ``output`` are the model's limits in tokens:
    without ``output`` 32,000 are asked for, without ``context`` nothing is ever compacted. ``options`` go into the top
    level of every body, ``temperature`` and ``top_p`` into the main agent's. ``title`` asks for a title beside the
    first turn; when the run is over, a title still under way is waited for ``title_grace`` real seconds and then left
    (the real process leaves it at once). ``serve`` plays the server, which offers one tool more; ``argv`` quotes a
    prompt as the command line does. ``child_sessions`` are the ids of subagents in order of starting, for playbooks
    that take one up again by its id; those it does not name are random. ``time_scale`` multiplies waits,
    ``timeout_scale`` the 300 s of silence.
    """

    base_url: str
    session: str | None = None
    model: str = "policy_model"
    headers: Mapping[str, str] = field(default_factory=dict)
    context: int | None = None
    output: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    temperature: float | None = None
    top_p: float | None = None
    interleaved: Literal["reasoning_content", "reasoning"] | None = None
    title: bool = True
    title_grace: float = 20.0
    small_model: str | None = None
    small_output: int | None = None
    serve: bool = False
    argv: bool = False
    child_sessions: Sequence[str] = ()
    tool_results: Mapping[str, str | ToolResult] = field(default_factory=dict)
    api_key: str = "EMPTY"
    time_scale: float = 0.01
    timeout_scale: float = 0.1

    async def run(
        self,
        task: str,
        *,
        files: Sequence[Attachment] = (),
        follow_ups: Sequence[str] = (),
        before: Conversation | None = None,
        fork: bool = False,
        max_turns: int = 50,
    ) -> Conversation:
        """Work on the task, then on each of ``follow_ups`` in the same session, as long as nothing fails.

        ``before`` goes on in that conversation's session, or with ``fork`` in a new one that starts with a copy of it;
        neither asks for a title. The exchanges of ``before`` are not told again. ``max_turns`` counts per message.
        """
        async with Wire(self.base_url, read_timeout=SILENCE * self.timeout_scale) as wire:
            session = self._session(wire, before, fork=fork)
            prompt: Content = self._worded(task)
            if files:
                prompt = [*(part for file in files for part in file.parts()), _text(self._worded(task))]
            title = await self._start_title(session.client, prompt) if self.title and before is None else None
            await session.go(prompt, max_turns)
            for text in follow_ups:
                if session.ended != "answered":
                    break
                await session.go(self._worded(text), max_turns)
            if title is not None:
                await title.end(self.title_grace)
        return session.told()

    @property
    def usable(self) -> int | None:
        """At how many tokens in all the history is compacted."""
        return None if self.context is None else self.context - _output(self.output)

    def body(self, messages: list[Message], tools: list[dict[str, Any]], *, main: bool = False) -> dict[str, Any]:
        """The body of a call, ``main`` for the main agent's; titles and summaries offer no ``tools``."""
        sampling = {"temperature": self.temperature, "top_p": self.top_p} if main else {}
        set_ = {name: value for name, value in sampling.items() if value is not None} | dict(self.options)
        offer = {"tools": tools, "tool_choice": "auto"} if tools else {}
        # Through JSON as JavaScript reads it: 1.0 is written 1.
        settings = js_parse(json.dumps(set_))
        return {
            "model": self.model,
            "max_tokens": _output(self.output),
            **settings,
            "messages": messages,
            **offer,
            "stream": True,
            "stream_options": {"include_usage": True},
        }

    def _session(self, wire: Wire, before: Conversation | None, *, fork: bool) -> Session:
        id_ = self.session or new_session_id()
        if before is not None and not fork:
            id_ = before.conversation
        client = Client(wire, Account(), id_, None, self.api_key, dict(self.headers), self.time_scale)
        history = History(BUILD.system) if before is None else history_of(before.messages)
        ids = iter(self.child_sessions)
        return Session(self, client, BUILD, history, question=self.serve or fork, child_ids=ids)

    def _worded(self, prompt: str) -> str:
        if not self.argv or " " not in prompt:
            return prompt
        quoted = prompt.replace('"', '\\"')
        return f'"{quoted}"'

    async def _start_title(self, client: Client, prompt: Content) -> "_Title":
        """Ask for a title, and come back once that is on its way: the main loop does not wait for it."""
        messages: list[Message] = [
            {"role": "system", "content": TITLE_SYSTEM},
            {"role": "user", "content": TITLE_REQUEST},
            {"role": "user", "content": prompt},
        ]
        body = self.body(messages, [])
        if self.small_model is not None:
            body |= {"model": self.small_model, "max_tokens": _output(self.small_output)}
        title = _Title(replace(client, watch=Watch()), body)
        await title.client.watch.until_sent()
        return title


class _Title:
    """The title call under way, on the session's own account; whatever comes of it, the main loop never learns."""

    def __init__(self, client: Client, body: dict[str, Any]) -> None:
        self.client = client
        self._task = asyncio.create_task(self._ask(body))

    async def _ask(self, body: dict[str, Any]) -> None:
        try:
            await self.client.call(body, TITLES)
        except CallFailed:
            return

    async def end(self, grace: float) -> None:
        await asyncio.wait({self._task}, timeout=grace)
        self.client.leave()
        await self._task


def _output(limit: int | None) -> int:
    return min(limit or _MOST_OUTPUT, _MOST_OUTPUT)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
