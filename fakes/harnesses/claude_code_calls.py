"""The tool calls of one answer: started while its stream goes on, told in the order in which they end."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from fakes.harnesses import claude_code_texts as texts
from fakes.harnesses.claude_code_history import Block, error_block, result_block, text_block
from fakes.harnesses.claude_code_inputs import Input, InvalidInput, settled
from fakes.harnesses.claude_code_stream import Answer
from fakes.harnesses.claude_code_workspace import ToolFailed, Workspace, duration, sleeps

Slow = Callable[[str, Input, str], Coroutine[Any, Any, Block] | None]
"""Given name, input and id: a call that takes other requests, as a coroutine for its result; None for all others."""


@dataclass
class Calls:
    """The calls of one answer. ``known`` are all ids that this agent has seen: a call with one of them is not run."""

    workspace: Workspace
    cwd: str
    offered: tuple[str, ...]
    known: set[str]
    slow: Slow
    _taken: list[tuple[Block, Input]] = field(default_factory=list)
    _ended: list[tuple[float, Block]] = field(default_factory=list)
    _running: list[asyncio.Task[None]] = field(default_factory=list)

    def start(self, block: Block) -> None:
        """Take one call as soon as it is whole."""
        name, call_id = block["name"], block["id"]
        if call_id in self.known:
            return
        self.known.add(call_id)
        try:
            given = settled(name, block["input"], self.offered, self.cwd)
        except InvalidInput as invalid:
            self._taken.append((block, block["input"]))
            self._ended.append((0.0, error_block(call_id, str(invalid))))
            return
        self._taken.append((block, given))
        slow = self.slow(name, given, call_id)
        if slow is None:
            self._ended.append((duration(name, given), self.run(name, given, call_id)))
        else:
            self._running.append(asyncio.create_task(self._wait_for(slow)))

    def run(self, name: str, given: Input, call_id: str) -> Block:
        """The result of a call that touches nothing outside."""
        try:
            content = self.workspace.run(name, given)
        except ToolFailed as failed:
            return error_block(call_id, str(failed))
        return result_block(call_id, content, said=name == "Bash")

    async def _wait_for(self, slow: Coroutine[Any, Any, Block]) -> None:
        result = await slow
        self._ended.append((float("inf"), result))

    @property
    def slept(self) -> bool:
        """Whether one of the calls took its time on purpose."""
        return any(sleeps(block["name"], given) for block, given in self._taken)

    async def results(self) -> list[Block]:
        """All results, the quickest first: those of sub-agents and searches as they really came, after all others."""
        await asyncio.gather(*self._running)
        return [result for _, result in sorted(self._ended, key=lambda ended: ended[0])]

    async def stop(self) -> None:
        """Give up whatever is still running."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def as_sent(self, answer: Answer) -> list[Block]:
        """The blocks of the answer as the history will hold them; empty where the whole message is dropped.

        Calls come last and with the input as it was run; white space before a call goes, but an empty text stays; of a
        call with a known id nothing stays, and a text takes its place if nothing else is left.
        """
        calls = [block | {"input": given} for block, given in self._taken]
        others = [block for block in answer.blocks if block["type"] != "tool_use"]
        if answer.calls:
            others = [block for block in others if not _is_blank(block)]
            return [*others, *calls] or [text_block(texts.INTERRUPTED_CALL) | {"citations": []}]
        return others if any(block.get("text", "").strip() for block in others) else []


def _is_blank(block: Block) -> bool:
    text = block.get("text", "")
    return block["type"] == "text" and bool(text) and not text.strip()
