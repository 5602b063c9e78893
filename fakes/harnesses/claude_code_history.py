"""What Claude Code keeps of a conversation, and how that is written into a request.

What it adds in its own name (kinds of agents, skills, reminders, news of background agents) stands in messages of the
role ``system`` behind the user's message; for models that do not take those it is folded into the user's messages.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from fakes.harnesses import claude_code_texts as texts
from fakes.harnesses.chat_answers import Message

Block = dict[str, Any]

CACHED = {"cache_control": {"type": "ephemeral"}}
_REMIND_AFTER = 10
_TASK_TOOLS = {"TaskCreate", "TaskUpdate"}


@dataclass
class Entry:
    """One message: ``blocks`` of the user's or the assistant's, ``notes`` of a system message."""

    role: Literal["user", "assistant", "system"]
    blocks: list[Block] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass
class History:
    """The messages of one agent since its start, or since its last compaction."""

    entries: list[Entry] = field(default_factory=list)

    @classmethod
    def starting_with(cls, text: str, *notes: str) -> "History":
        """The first message is always the day, then the prompt or the summary that replaces it."""
        history = cls([Entry("user", [text_block(texts.reminder(texts.DATE)), text_block(text)])])
        history.note(*notes)
        return history

    @property
    def opening(self) -> str:
        """The text of the first message, on which the mark in the system prompt depends."""
        return str(self.entries[0].blocks[1]["text"])

    def say(self, *blocks: Block) -> None:
        """A message of the user; two of them in a row are one."""
        last = self._last("user")
        if any(entry.role == "assistant" for entry in self.entries[last + 1 :]) or last < 0:
            self.entries.append(Entry("user", list(blocks)))
        else:
            self.entries[last].blocks += blocks

    def answer(self, blocks: list[Block]) -> None:
        self.entries.append(Entry("assistant", blocks))

    def note(self, *notes: str) -> None:
        """Something in Claude Code's own name, at the end; notes at one place are one message."""
        if notes and self.entries[-1].role == "system":
            self.entries[-1].notes += notes
        elif notes:
            self.entries.append(Entry("system", notes=list(notes)))

    def tells(self, note: str) -> bool:
        return any(note in entry.notes for entry in self.entries)

    def wants_task_reminder(self) -> bool:
        """Ten blocks of answers, thinking not counted, without a task tool and without a reminder."""
        count = 0
        for entry in reversed(self.entries):
            if texts.TASK_REMINDER in entry.notes:
                break
            if entry.role == "assistant":
                if any(block.get("name") in _TASK_TOOLS for block in entry.blocks):
                    break
                count += sum(block["type"] in ("text", "tool_use") for block in entry.blocks)
        return count >= _REMIND_AFTER

    def before_last_answer(self) -> "History | None":
        """What a compaction summarises: all but the newest answer and what follows it; None where nothing is left."""
        last = self._last("assistant")
        if last < 1:
            return None
        return History([Entry(entry.role, list(entry.blocks), entry.notes) for entry in self.entries[:last]])

    def compacted(self, summary: str) -> "History":
        """The history that goes on after a compaction: the summary, and the newest answer with its results."""
        history = History.starting_with(texts.SUMMARY.format(summary=summary))
        history.entries += [entry for entry in self.entries[self._last("assistant") :] if entry.role != "system"]
        return history

    def messages(self, *, folded: bool, cached: Literal["user", "assistant", "none"] = "user") -> list[Message]:
        """The messages of a request. ``cached``: on whose last block the mark for the cache sits."""
        entries = _folded(self.entries) if folded else self.entries
        last_user = _last_of(entries, "user")
        marked = {"user": last_user, "assistant": _last_of(entries, "assistant"), "none": -1}[cached]
        return [
            _written(entry, as_list=n == last_user, cached=n == marked and n >= 0) for n, entry in enumerate(entries)
        ]

    def _last(self, role: str) -> int:
        return _last_of(self.entries, role)


def text_block(text: str) -> Block:
    return {"type": "text", "text": text}


def result_block(call_id: str, content: str | list[Block], *, said: bool) -> Block:
    """The result of a call that worked; only some tools say (``said``) that it is no error."""
    result: Block = {"tool_use_id": call_id, "type": "tool_result", "content": content}
    return result | ({"is_error": False} if said else {})


def error_block(call_id: str, content: str) -> Block:
    """The result of a call that failed: its keys stand in another order."""
    return {"type": "tool_result", "content": content, "is_error": True, "tool_use_id": call_id}


def _last_of(entries: list[Entry], role: str) -> int:
    return max((n for n, entry in enumerate(entries) if entry.role == role), default=-1)


def _written(entry: Entry, *, as_list: bool, cached: bool) -> Message:
    if entry.role == "system":
        return {"role": "system", "content": "\n\n".join(entry.notes)}
    blocks = entry.blocks
    # A single text of the user is a list while it is the newest, and a plain string ever after.
    if entry.role == "user" and not as_list and [block["type"] for block in blocks] == ["text"]:
        return {"role": "user", "content": blocks[0]["text"]}
    if cached:
        blocks = [*blocks[:-1], blocks[-1] | CACHED]
    return {"role": entry.role, "content": blocks}


def _folded(entries: list[Entry]) -> list[Entry]:
    """The same without system messages: the first one opens the first message, later ones end the one before them."""
    folded: list[Entry] = []
    for entry in entries:
        if entry.role != "system":
            folded.append(Entry(entry.role, list(entry.blocks)))
            continue
        blocks = folded[-1].blocks
        if len(folded) == 1:
            blocks[:0] = [text_block(texts.reminder(note)) for note in entry.notes]
            continue
        for note in entry.notes:
            if isinstance(blocks[-1].get("content"), str):
                blocks[-1] = blocks[-1] | {"content": f"{blocks[-1]['content']}\n\n{texts.reminder(note)}"}
            else:
                blocks.append(text_block(texts.reminder(note)))
    return folded
