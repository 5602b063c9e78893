"""Tool calls as text, as OpenHands writes them for models without native calls; answers are rewritten on resend."""

import json
import re
from typing import Any

from fakes.harnesses.chat_answers import Message
from fakes.harnesses.conversation import text_of
from fakes.harnesses.tools import Tool

STOP = ["</function"]
_CALL = re.compile(r"<function=([^>\s]+)>(.*?)(?:</function>?|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\s]+)>(.*?)</parameter>", re.DOTALL)


def call_in(text: str) -> tuple[str, dict[str, Any]] | None:
    """The text before the first call, and the call in chat form; the stop string may have cut off its closing tag."""
    found = _CALL.search(text)
    if found is None:
        return None
    arguments = {name: value.strip("\n") for name, value in _PARAMETER.findall(found[2])}
    function = {"name": found[1], "arguments": json.dumps(arguments)}
    return text[: found.start()].rstrip(), {"id": "text", "type": "function", "function": function}


def as_text(messages: list[Message], tools: tuple[Tool, ...]) -> list[Message]:
    """All in plain strings: an example in front of the task, calls written out anew, results as user turns."""
    sent = [_one(message) for message in messages]
    sent[1]["content"] = f"{_example(tools)}\n\n{sent[1]['content']}"
    return sent


def _one(message: Message) -> Message:
    text = text_of(message.get("content"))
    if message["role"] == "tool":
        return {"role": "user", "content": f"EXECUTION RESULT of [{message['name']}]:\n{text}"}
    written = "".join(_written(call["function"]) for call in message.get("tool_calls", []))
    return {"role": message["role"], "content": f"{text}\n\n{written}" if written else text}


def _written(function: dict[str, str]) -> str:
    arguments = json.loads(function["arguments"])
    parameters = "".join(f"<parameter={name}>{value}</parameter>\n" for name, value in arguments.items())
    return f"<function={function['name']}>\n{parameters}</function>"


def _example(tools: tuple[Tool, ...]) -> str:
    tool = tools[0]
    parameter = f"<parameter={tool.required[0]}>value</parameter>\n" if tool.required else ""
    return f"This is how a tool is called:\n<function={tool.name}>\n{parameter}</function>"
