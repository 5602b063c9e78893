"""Calls that lead to other calls of the model: sub-agents, in the foreground or behind it, and web searches."""

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol

from fakes.harnesses import claude_code_texts as texts
from fakes.harnesses import claude_code_tools as tools
from fakes.harnesses.claude_code_client import Client
from fakes.harnesses.claude_code_history import Block, error_block, result_block, text_block
from fakes.harnesses.claude_code_inputs import Input
from fakes.harnesses.claude_code_models import Form, form_for, subagent_model
from fakes.harnesses.claude_code_requests import Speaker, web_search_body
from fakes.harnesses.claude_code_retries import CallFailed
from fakes.harnesses.conversation import Conversation, HowItEnded
from fakes.harnesses.exchanges import Exchange


@dataclass(frozen=True)
class Kind:
    """What sets agents apart on the wire: the tools offered, the form of their calls, and in whose name they speak."""

    tools: tuple[str, ...]
    form: Form
    speaker: Speaker

    @property
    def is_root(self) -> bool:
        return self.speaker.agent_id is None


class Child(Protocol):
    """A sub-agent as the one above it sees it."""

    last_words: str

    async def work_on(self, prompt: str) -> tuple[HowItEnded, str | None]: ...

    def told(self, ended: HowItEnded, error: str | None) -> Conversation: ...

    async def close(self) -> None: ...

    async def stop(self) -> None: ...


@dataclass
class Delegation:
    """What one agent has given to others."""

    client: Client
    kind: Kind
    start: Callable[[Kind], Child]
    exchanges: list[Exchange]
    children: list[Conversation] = field(default_factory=list)
    _background: list[asyncio.Task[None]] = field(default_factory=list)
    _news: list[str] = field(default_factory=list)

    def news(self) -> list[str]:
        """What has not been told yet of agents in the background."""
        news, self._news = self._news, []
        return news

    async def until_idle(self) -> None:
        await asyncio.gather(*self._background)

    async def stop(self) -> None:
        """Give up what still runs in the background."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)

    def call(self, name: str, given: Input, call_id: str) -> Coroutine[Any, Any, Block] | None:
        """The call, if it is one of those that this is about."""
        if name == "Agent":
            return self._delegate(given, call_id)
        return self._search(str(given["query"]), call_id) if name == "WebSearch" else None

    async def _delegate(self, given: Input, call_id: str) -> Block:
        behind = given.get("run_in_background") in (True, "true")
        explores = given.get("subagent_type") == "Explore"
        agent_id = f"a{secrets.token_hex(8)}"
        names = tools.BACKGROUND if behind else tools.EXPLORE if explores else tools.GENERAL_PURPOSE
        kind = Kind(names, self._form(given), self.client.speaker(agent_id, self.kind.speaker.agent_id))
        if behind:
            self._background.append(asyncio.create_task(self._watch(kind, given, call_id)))
            return result_block(call_id, [text_block(texts.BACKGROUND.format(agent_id=agent_id))], said=False)
        said, error = await self._run(kind, str(given["prompt"]))
        if error is not None:
            return error_block(call_id, error)
        more = [] if explores else [text_block(texts.AGENT_ID.format(agent_id=agent_id))]
        return result_block(call_id, [text_block(said), *more], said=False)

    def _form(self, given: Input) -> Form:
        parent = self.kind.form
        form = form_for(subagent_model(given, parent.model, self.client.env), self.client.env, subagent=True)
        if form.model == parent.model and not parent.mid_conversation:
            form.without_mid_conversation()
        return form

    async def _run(self, kind: Kind, prompt: str) -> tuple[str, str | None]:
        """A sub-agent from start to end: its last words, and why it failed if it did."""
        child = self.start(kind)
        ended: HowItEnded = "gave_up"
        error: str | None = "stopped"
        try:
            ended, error = await child.work_on(prompt)
            await child.close()
        finally:
            await child.stop()
            self.children.append(child.told(ended, error))
        return child.last_words, None if ended == "answered" else error or ended

    async def _watch(self, kind: Kind, given: Input, call_id: str) -> None:
        said, error = await self._run(kind, str(given["prompt"]))
        status = "completed" if error is None else "failed"
        told = texts.NOTIFICATION.format(
            agent_id=kind.speaker.agent_id, call_id=call_id, status=status, result=error or said
        )
        self._news.append(told)

    async def _search(self, query: str, call_id: str) -> Block:
        """One side call; it carries no agent's id, whoever asks."""
        speaker = self.client.speaker()
        try:
            answer = await self.client.call(
                speaker, self.kind.form, lambda: web_search_body(self.kind.form, speaker, query), self.exchanges
            )
        except CallFailed as failure:
            return error_block(call_id, str(failure))
        return result_block(call_id, f"Found for {query}:\n{answer.text}", said=False)
