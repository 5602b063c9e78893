"""The dialects as one speaks them: the same conversation asked for in each, and what a client of each hears."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.oracle import chat_answers, messages_answers, responses_answers
from conformance.oracle.chat_answers import function_of, json_object
from fakes.harnesses.plain import Reply

JSON = Any
Body = dict[str, JSON]

LIMIT = 4096
"""What each call allows for its answer: the Messages dialect demands a number."""


@dataclass(frozen=True)
class Tool:
    name: str
    description: str
    parameters: Mapping[str, JSON]


@dataclass(frozen=True)
class Heard:
    """An answer as a client understands it. ``counts`` are prompt and generation; ``again`` is how it is sent again."""

    text: str
    reasoning: str
    calls: Sequence[tuple[str, str, JSON]]
    counts: tuple[JSON, JSON]
    again: Sequence[JSON]

    @property
    def content(self) -> list[JSON]:
        """All but the ids of its calls, which are anybody's choice."""
        return [self.text.strip(), self.reasoning.strip(), [list(call[1:]) for call in self.calls], list(self.counts)]


@dataclass(frozen=True)
class Said:
    """A conversation so far: what was set up, and each answer with the results of its calls in their order."""

    task: str
    system: str | None = None
    tools: Sequence[Tool] = ()
    past: Sequence[tuple[Heard, Sequence[str]]] = ()


@dataclass(frozen=True)
class Tongue:
    """``capability`` is the dialect's name in a profile; ``path`` stands behind ``/v1``."""

    capability: str
    path: str
    ask: Callable[[Said], Body]
    hear: Callable[[str, bool], Heard]

    def heard(self, reply: Reply) -> Heard:
        return self.hear(body_of(reply), reply.exchange.streamed)

    def body(self, said: Said, *, model: str, stream: bool = False, **more: JSON) -> Body:
        """A whole call; ``more`` goes into its top level as it is."""
        streaming: Body = {"stream": True} if stream else {}
        if stream and self.capability == "chat":
            streaming["stream_options"] = {"include_usage": True}
        return {"model": model, **self.ask(said), **streaming, **more}


def body_of(reply: Reply) -> str:
    return "" if reply.exchange.response is None else reply.exchange.response.body_text


def _ask_chat(said: Said) -> Body:
    messages: list[JSON] = [{"role": "user", "content": said.task}]
    if said.system is not None:
        messages.insert(0, {"role": "system", "content": said.system})
    for heard, results in said.past:
        messages += heard.again
        messages += [
            {"role": "tool", "tool_call_id": call[0], "content": result}
            for call, result in zip(heard.calls, results, strict=True)
        ]
    tools = [{"type": "function", "function": _declared(tool, "parameters")} for tool in said.tools]
    return {"max_tokens": LIMIT, "messages": messages, **({"tools": tools} if tools else {})}


def _ask_messages(said: Said) -> Body:
    messages: list[JSON] = [{"role": "user", "content": said.task}]
    for heard, results in said.past:
        blocks = [
            {"type": "tool_result", "tool_use_id": call[0], "content": result}
            for call, result in zip(heard.calls, results, strict=True)
        ]
        messages += [{"role": "assistant", "content": list(heard.again)}, {"role": "user", "content": blocks}]
    tools = [_declared(tool, "input_schema") for tool in said.tools]
    set_up = {**({} if said.system is None else {"system": said.system}), **({"tools": tools} if tools else {})}
    return {"max_tokens": LIMIT, **set_up, "messages": messages}


def _ask_responses(said: Said) -> Body:
    items: list[JSON] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": said.task}]},
    ]
    for heard, results in said.past:
        items += heard.again
        items += [
            {"type": "function_call_output", "call_id": call[0], "output": result}
            for call, result in zip(heard.calls, results, strict=True)
        ]
    tools = [{"type": "function", **_declared(tool, "parameters"), "strict": False} for tool in said.tools]
    set_up = {**({} if said.system is None else {"instructions": said.system}), **({"tools": tools} if tools else {})}
    return {"max_output_tokens": LIMIT, **set_up, "input": items}


def _declared(tool: Tool, schema: str) -> dict[str, JSON]:
    return {"name": tool.name, "description": tool.description, schema: dict(tool.parameters)}


def _hear_chat(body: str, streamed: bool) -> Heard:
    answer = chat_answers.reassemble(body) if streamed else chat_answers.buffered(json_object(body) or {})
    message: dict[str, JSON] = {"role": "assistant", "content": answer.content}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.tool_calls:
        message["tool_calls"] = [
            {key: call.get(key) for key in ("id", "type", "function")} for call in answer.tool_calls
        ]
    counts = answer.usage or {}
    told = (counts.get("prompt_tokens"), counts.get("completion_tokens"))
    return Heard(answer.content or "", answer.reasoning or "", _calls(answer.tool_calls), told, [message])


def _hear_messages(body: str, streamed: bool) -> Heard:
    whole = messages_answers.reassemble(body) if streamed else messages_answers.buffered(json_object(body) or {})
    counts = whole.usage or {}
    told = (counts.get("input_tokens"), counts.get("output_tokens"))
    return Heard(whole.text, whole.reasoning, _calls(whole.tool_calls), told, whole.blocks)


def _hear_responses(body: str, streamed: bool) -> Heard:
    whole = responses_answers.reassemble(body) if streamed else responses_answers.buffered(json_object(body) or {})
    counts = whole.usage or {}
    told = (counts.get("input_tokens"), counts.get("output_tokens"))
    return Heard(whole.text, whole.reasoning, _calls(whole.tool_calls), told, whole.items)


def _calls(found: Sequence[Mapping[str, JSON]]) -> list[tuple[str, str, JSON]]:
    """Arguments as the value they stand for, so that text and parsed input can be compared."""
    named = [(str(call.get("id")), function_of(dict(call))) for call in found]
    return [(id_, str(function.get("name")), _value(function.get("arguments"))) for id_, function in named]


def _value(arguments: JSON) -> JSON:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return arguments


TONGUES = (
    Tongue("chat", "/chat/completions", _ask_chat, _hear_chat),
    Tongue("messages", "/messages", _ask_messages, _hear_messages),
    Tongue("responses", "/responses", _ask_responses, _hear_responses),
)


def spoken_by(capabilities: Collection[str]) -> list[Tongue]:
    return [tongue for tongue in TONGUES if tongue.capability in capabilities]
