"""The loop of one agent of Claude Code 2.1.197: the root or a sub-agent, from what it is told to its last words."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from fakes.harnesses import claude_code_texts as texts
from fakes.harnesses.claude_code_calls import Calls
from fakes.harnesses.claude_code_client import Client, Left
from fakes.harnesses.claude_code_delegation import Delegation, Kind
from fakes.harnesses.claude_code_history import Block, History, text_block
from fakes.harnesses.claude_code_models import VERSION
from fakes.harnesses.claude_code_requests import Body, title_betas, title_body, turn_body
from fakes.harnesses.claude_code_retries import CallFailed, PromptTooLong
from fakes.harnesses.claude_code_stream import Answer
from fakes.harnesses.claude_code_tools import offered
from fakes.harnesses.claude_code_workspace import Workspace
from fakes.harnesses.conversation import Conversation, HowItEnded
from fakes.harnesses.exchanges import Exchange

INTERRUPTED = "interrupted"
KILLED = "killed"

End = tuple[HowItEnded, str | None]
"""How a piece of work ended. Interrupted and killed are told as ``gave_up``, with the word in the error."""


@dataclass(frozen=True)
class Leave:
    """The user leaves an answer after so many stream events: interrupts it (and may go on), or kills the process."""

    after_events: int
    kill: bool = False


@dataclass(frozen=True)
class Habits:
    """What all agents of a session share, and what the user does to the root: see ``ClaudeCode``."""

    workspace: Workspace
    cwd: str
    leave: Mapping[int, Leave] = field(default_factory=dict)
    queued: Mapping[int, str] = field(default_factory=dict)


class Agent:
    """One agent at work. It remembers between pieces of work, as the session does between processes."""

    def __init__(self, client: Client, kind: Kind, habits: Habits) -> None:
        self.exchanges: list[Exchange] = []
        self.last_words = ""
        self._client = client
        self._kind = kind
        self._habits = habits
        self._history = History()
        self._known: set[str] = set()
        self._delegation = Delegation(client, kind, self._start_child, self.exchanges)
        self._before_prompt: list[Block] = []
        self._owed: list[str] = []
        self._answers = 0
        self._tokens = 0

    async def work_on(self, prompt: str, max_turns: int = 50, *, title: bool = False, new_process: bool = False) -> End:
        """Work on what the user, or the agent above, says, until the model answers in plain text."""
        naming = asyncio.create_task(self._name(prompt)) if title else None
        if new_process and self._before_prompt:
            self._pick_up()
        self._hear(prompt)
        ended = await self._loop(max_turns)
        if naming is not None:
            await naming
        return ended

    async def compact_by_hand(self) -> End:
        """Play ``/compact``: one call; what it leaves to say is said with the next prompt."""
        try:
            if not await self._compact():
                return "error", "there is nothing to compact"
        except CallFailed as failure:
            return "error", str(failure)
        said = (texts.CAVEAT, texts.COMPACT_COMMAND, texts.COMPACT_OUTPUT)
        self._before_prompt = [text_block(text) for text in said]
        self._owed = self._notes(texts.AGENT_TYPES) + self._notes(texts.SKILLS)
        return "answered", None

    def told(self, ended: HowItEnded, error: str | None) -> Conversation:
        return Conversation(
            harness="claude-code",
            version=VERSION,
            session=self._client.session,
            conversation=self._kind.speaker.agent_id or self._client.session,
            ended=ended,
            error=error,
            messages=self._history.messages(folded=not self._kind.form.mid_conversation, cached="none"),
            exchanges=self.exchanges,
            children=self._delegation.children,
        )

    async def close(self) -> None:
        """See the end of what still runs in the background."""
        await self._delegation.until_idle()

    async def stop(self) -> None:
        """Give up what still runs in the background, as a process does that ends."""
        await self._delegation.stop()

    def _hear(self, prompt: str) -> None:
        if not self._history.entries:
            first = texts.AGENT_TYPES if self._kind.is_root else None
            self._history = History.starting_with(prompt, *self._notes(first), *self._notes(texts.SKILLS))
            return
        self._history.say(*self._before_prompt, text_block(prompt))
        self._before_prompt = []
        self._history.note(*self._owed[:1])
        self._owed = self._owed[1:]

    def _pick_up(self) -> None:
        """What a new process makes of a session that ends with words of the user's: it has them answered."""
        self._hear(texts.CONTINUE)
        self._history.answer([text_block(texts.NO_RESPONSE)])

    def _notes(self, note: str | None) -> list[str]:
        """The note, if the tool that it is about is offered."""
        about = {texts.AGENT_TYPES: "Agent", texts.SKILLS: "Skill"}
        return [note] if note is not None and about[note] in self._kind.tools else []

    async def _loop(self, max_turns: int) -> End:
        for _ in range(max_turns):
            calls = Calls(
                self._habits.workspace, self._habits.cwd, self._kind.tools, self._known, self._delegation.call
            )
            try:
                answer = await self._next_answer(calls)
                if answer.stop_reason == "refusal":
                    return "error", "API Error: the model refused"
                if not await self._take(answer, calls):
                    return "answered", None
            except Left as left:
                return self._interrupted(left.partial)
            except CallFailed as failure:
                return "error", str(failure)
            finally:
                await calls.stop()
        return "max_turns", None

    async def _next_answer(self, calls: Calls) -> Answer:
        """The answer to the history; a compaction may come before it, or between its two attempts."""
        window = self._client.env.auto_compact_window
        if window is not None and self._tokens > window:
            await self._compact()
        self._history.note(*self._delegation.news())
        if self._kind.is_root and "TaskUpdate" in self._kind.tools and self._history.wants_task_reminder():
            self._history.note(texts.TASK_REMINDER)
        try:
            return await self._ask(calls)
        except PromptTooLong:
            if not await self._compact():
                raise
            return await self._ask(calls)

    async def _ask(self, calls: Calls) -> Answer:
        leave = self._habits.leave.get(self._answers) if self._kind.is_root else None
        answer = await self._client.call(
            self._kind.speaker,
            self._kind.form,
            lambda: self._body(self._history, compacting=False),
            self.exchanges,
            on_call=calls.start,
            leave_after=None if leave is None else leave.after_events,
        )
        self._answers += 1
        self._tokens = answer.tokens
        return answer

    def _body(self, history: History, *, compacting: bool) -> Body:
        form, speaker = self._kind.form, self._kind.speaker
        text = texts.SYSTEM if self._kind.is_root else texts.SUBAGENT_SYSTEM
        cached = self._client.env.prompt_caching
        messages = history.messages(
            folded=not form.mid_conversation,
            cached="none" if not cached else "assistant" if compacting else "user",
        )
        system = speaker.system(history.opening, text.format(cwd=self._habits.cwd, model=form.model), cached=True)
        return turn_body(form, speaker, messages, system, offered(self._kind.tools))

    async def _take(self, answer: Answer, calls: Calls) -> bool:
        """Put the answer and what it leads to into the history; False when it was the last word."""
        blocks = calls.as_sent(answer)
        if not blocks:
            # A message without anything to see is dropped as a whole.
            self._history.say(text_block(texts.NO_VISIBLE_OUTPUT))
            return True
        results = await calls.results()
        if calls.slept:
            # While a command sleeps, agents in the background come to their end.
            await self._delegation.until_idle()
        self._history.answer(blocks)
        self.last_words = answer.text
        if results:
            self._history.say(*results)
            self._after_results()
        elif answer.calls:
            self._history.say(text_block(texts.NO_CONTENT))
        elif answer.stop_reason == "max_tokens":
            self._history.say(text_block(texts.CUT_SHORT))
        elif answer.stop_reason == "tool_use":
            self._history.say(text_block(texts.MALFORMED_CALL))
        else:
            return False
        return True

    def _after_results(self) -> None:
        """What Claude Code adds behind the results of an answer, and never takes away again."""
        first_results = sum(entry.role == "assistant" for entry in self._history.entries) == 1
        if not self._kind.is_root and first_results and not self._history.tells(texts.AGENT_TYPES):
            self._history.note(*self._notes(texts.AGENT_TYPES))
        queued = self._habits.queued.get(self._answers - 1) if self._kind.is_root else None
        if queued is not None:
            self._history.note(texts.QUEUED.format(text=queued))

    def _interrupted(self, partial: Answer) -> End:
        """The stream was left. What stands of its text, cut anywhere, is kept for the next prompt."""
        leave = self._habits.leave[self._answers]
        self._answers += 1
        shown = [*partial.blocks, *([partial.half] if partial.half else [])]
        kept = [block for block in shown if block["type"] == "text" and block["text"].strip()]
        if kept:
            self._history.answer(kept)
        self._before_prompt = [text_block(texts.INTERRUPTED)]
        return "gave_up", KILLED if leave.kill else INTERRUPTED

    async def _compact(self) -> bool:
        """Have all but the newest answer summarised; False when there is no more than that. Raises ``CallFailed``."""
        old = self._history.before_last_answer()
        if old is None:
            return False
        old.say(text_block(texts.COMPACT))
        answer = await self._client.call(
            self._kind.speaker, self._kind.form, lambda: self._body(old, compacting=True), self.exchanges
        )
        self._history = self._history.compacted(answer.text)
        self._tokens = 0
        if self._history.entries[-1].role == "user":
            self._history.note(*self._notes(texts.AGENT_TYPES))
            self._owed = self._notes(texts.SKILLS)
        return True

    async def _name(self, prompt: str) -> None:
        """The title call; what becomes of it is nobody's concern."""
        form, speaker = self._kind.form, self._client.speaker()
        try:
            await self._client.call(
                speaker, form, lambda: title_body(form, speaker, prompt), self.exchanges, betas=title_betas
            )
        except CallFailed:
            return

    def _start_child(self, kind: Kind) -> "Agent":
        return Agent(self._client, kind, self._habits)
