"""A conversation as a client of each dialect holds it: steps in order, told in that dialect's own form."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.oracle import chat_answers, messages_answers, responses_answers
from conformance.oracle.chat_answers import function_of, json_object

JSON = Any
Body = dict[str, JSON]

LIMIT = 4096
"""What each call allows for its answer: the Messages dialect demands a number."""
END_CHARACTERS = 20_000
"""The last event of a Responses stream holds the whole answer."""


@dataclass(frozen=True)
class Said:
    """A step that nobody sampled. ``role`` is ``user`` or, in the middle of a history, ``system``."""

    text: str
    role: str = "user"


@dataclass(frozen=True)
class Answer:
    """An answer as its client took it: how it is sent again in its dialect, and the ids and names of its calls."""

    again: Sequence[JSON]
    text: str = ""
    reasoning: str = ""
    calls: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Results:
    """What the tools of an answer gave, by call id."""

    of: Sequence[tuple[str, str]]


Step = Said | Answer | Results
Steps = tuple[Step, ...]


@dataclass(frozen=True)
class Tongue:
    """``path`` is the whole path; ``tell`` makes a request of a system prompt, steps and tool names.

    ``ends`` are what the last event of a whole stream says, one of them.
    """

    name: str
    path: str
    tell: Callable[[str | None, Steps, Sequence[str]], Body]
    hear: Callable[[str, bool], Answer]
    ends: Sequence[str]

    def is_whole(self, status: int | None, body: str, streamed: bool) -> bool:
        return status == 200 and (not streamed or any(end in body[-END_CHARACTERS:] for end in self.ends))


def _parameters() -> Body:
    return {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def _tell_chat(system: str | None, steps: Steps, tools: Sequence[str]) -> Body:
    messages: list[JSON] = [] if system is None else [{"role": "system", "content": system}]
    for step in steps:
        match step:
            case Said():
                messages.append({"role": step.role, "content": step.text})
            case Answer():
                messages += step.again
            case Results():
                messages += [{"role": "tool", "tool_call_id": id_, "content": text} for id_, text in step.of]
    offered = [
        {"type": "function", "function": {"name": name, "description": "A tool.", "parameters": _parameters()}}
        for name in tools
    ]
    return {"max_tokens": LIMIT, "messages": messages, **({"tools": offered} if offered else {})}


def _tell_messages(system: str | None, steps: Steps, tools: Sequence[str]) -> Body:
    messages: list[JSON] = []
    for step in steps:
        match step:
            case Said():
                messages.append({"role": step.role, "content": [{"type": "text", "text": step.text}]})
            case Answer():
                messages.append({"role": "assistant", "content": list(step.again)})
            case Results():
                blocks = [{"type": "tool_result", "tool_use_id": id_, "content": text} for id_, text in step.of]
                messages.append({"role": "user", "content": blocks})
    offered = [{"name": name, "description": "A tool.", "input_schema": _parameters()} for name in tools]
    set_up = {**({} if system is None else {"system": system}), **({"tools": offered} if offered else {})}
    return {"max_tokens": LIMIT, **set_up, "messages": messages}


def _tell_responses(system: str | None, steps: Steps, tools: Sequence[str]) -> Body:
    items: list[JSON] = []
    for step in steps:
        match step:
            case Said():
                content = [{"type": "input_text", "text": step.text}]
                items.append({"type": "message", "role": step.role, "content": content})
            case Answer():
                items += step.again
            case Results():
                items += [{"type": "function_call_output", "call_id": id_, "output": text} for id_, text in step.of]
    offered = [
        {"type": "function", "name": name, "description": "A tool.", "parameters": _parameters(), "strict": False}
        for name in tools
    ]
    set_up = {**({} if system is None else {"instructions": system}), **({"tools": offered} if offered else {})}
    return {"max_output_tokens": LIMIT, **set_up, "input": items}


def _hear_chat(body: str, streamed: bool) -> Answer:
    answer = chat_answers.reassemble(body) if streamed else chat_answers.buffered(json_object(body) or {})
    message: Body = {"role": "assistant", "content": answer.content}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.tool_calls:
        message["tool_calls"] = [
            {key: call.get(key) for key in ("id", "type", "function")} for call in answer.tool_calls
        ]
    return Answer([message], answer.content or "", answer.reasoning or "", _calls(answer.tool_calls))


def _hear_messages(body: str, streamed: bool) -> Answer:
    whole = messages_answers.reassemble(body) if streamed else messages_answers.buffered(json_object(body) or {})
    return Answer(whole.blocks, whole.text, whole.reasoning, _calls(whole.tool_calls))


def _hear_responses(body: str, streamed: bool) -> Answer:
    whole = responses_answers.reassemble(body) if streamed else responses_answers.buffered(json_object(body) or {})
    return Answer(whole.items, whole.text, whole.reasoning, _calls(whole.tool_calls))


def _calls(found: Sequence[Body]) -> list[tuple[str, str]]:
    return [(str(call.get("id")), str(function_of(dict(call)).get("name"))) for call in found]


CHAT = Tongue("chat", "/v1/chat/completions", _tell_chat, _hear_chat, ("data: [DONE]",))
MESSAGES = Tongue("messages", "/v1/messages", _tell_messages, _hear_messages, ("event: message_stop",))
RESPONSES = Tongue(
    "responses",
    "/v1/responses",
    _tell_responses,
    _hear_responses,
    ("event: response.completed", "event: response.incomplete"),
)
TONGUES = {tongue.name: tongue for tongue in (CHAT, MESSAGES, RESPONSES)}
