"""A scripted model for opencode: it tells the calls apart by their form, not by the order in which they arrive."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.harnesses.conftest import Reply, Seen, error

Answer = Reply | Callable[[Seen], Reply]


def streamed(
    content: str | None = None,
    calls: Sequence[tuple[str, str, str]] = (),
    *,
    finish: str | None = "",
    usage: int | None = None,
    events: Sequence[str] = (),
    how: Any = "whole",
    **more: str,
) -> Reply:
    """A streamed answer with this content and these (id, name, raw arguments) calls, arguments in two pieces.

    ``finish`` None ends it without a finish reason; ``usage`` are tokens in all; ``events`` come before the end.
    """
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "content": ""},
        *({name: text} for name, text in more.items()),
    ]
    if content is not None:
        deltas.append({"content": content})
    for index, (id_, name, raw) in enumerate(calls):
        head = {"index": index, "id": id_, "type": "function", "function": {"name": name, "arguments": raw[:3]}}
        deltas.append({"tool_calls": [head]})
        deltas.append({"tool_calls": [{"index": index, "function": {"arguments": raw[3:]}}]})
    chunks = [_chunk({"index": 0, "delta": delta, "finish_reason": None}) for delta in deltas]
    chunks += [_event(text) for text in events]
    if finish is not None:
        reason = finish or ("tool_calls" if calls else "stop")
        chunks.append(_chunk({"index": 0, "delta": {}, "finish_reason": reason}))
        if usage is not None:
            chunks.append(_event(json.dumps({"id": "c", "choices": [], "usage": {"total_tokens": usage}})))
        chunks.append(_event("[DONE]"))
    return Reply(chunks=tuple(chunks), content_type="text/event-stream", how=how)


def _chunk(choice: dict[str, Any]) -> bytes:
    return _event(json.dumps({"id": "c", "model": "m", "choices": [choice]}))


def _event(data: str) -> bytes:
    return f"data: {data}\n\n".encode()


TITLE = streamed("A title")
SUMMARY = streamed("What was done.")
DONE = streamed("Done.")
OVERFLOW = error(400, "This model's maximum context length is 100 tokens. Please reduce the length of the messages.")
NO_MORE = error(400, "the script is at its end")


def kind_of(body: Any) -> str:
    """Title and summary calls offer no tools; they differ in their roles."""
    if "tools" in body:
        return "main"
    return "title" if len(body["messages"]) == 3 else "summary"


def header(seen: Seen, name: str) -> str | None:
    return dict(seen.headers).get(name)


@dataclass
class Script:
    """What the model answers: by session in order of appearance, and for titles and summaries."""

    sessions: list[list[Answer]]
    titles: list[Answer] = field(default_factory=lambda: [TITLE])
    summaries: list[Answer] = field(default_factory=lambda: [SUMMARY])
    numbers: dict[str | None, int] = field(default_factory=dict)

    def __call__(self, seen: Seen) -> Reply:
        # The standard library's parser, since opencode may send lone surrogates.
        kind = kind_of(json.loads(seen.body))
        number = self.numbers.setdefault(header(seen, "x-session-id"), len(self.numbers))
        queue = {"title": self.titles, "summary": self.summaries}.get(kind)
        if queue is None:
            queue = self.sessions[number] if number < len(self.sessions) else []
        answer = queue.pop(0) if queue else NO_MORE
        return answer if isinstance(answer, Reply) else answer(seen)


def first_child(seen: Seen) -> str:
    """The id of the first subagent that the request tells of."""
    found = re.search(r'<task id=\\"(ses_\w+)\\"', seen.body.decode())
    assert found is not None
    return found[1]
