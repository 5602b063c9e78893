"""A client that echoes everything it was served, and playbooks written in tests."""

import json
import re
from typing import Any

import yaml

from fakes.vllm.engine import PlaybookEngine
from fakes.vllm.playbook import Playbook
from fakes.vllm.reading import read_playbook
from fakes.vllm.sample import Drawn, SampleRequest
from fakes.vllm.tags import format_tag

RUN = 7
BASH = {"type": "function", "function": {"name": "execute_bash", "description": "d", "parameters": {"type": "object"}}}

Message = dict[str, Any]


def playbook_from(text: str) -> Playbook:
    return read_playbook(yaml.safe_load(text), "test.yaml")


def parsed(text: str) -> Message:
    """The assistant message that a client gets for a generated text, with all parsers on."""
    message: Message = {"role": "assistant"}
    if "</think>" in text:
        thought, text = text.split("</think>", 1)
        message["reasoning"] = thought.removeprefix("<think>")
    calls = re.findall(r"<tool_call>\n(.*?)\n</tool_call>", text, re.DOTALL)
    content = text.split("<tool_call>")[0]
    message["content"] = content if content.strip() else None
    if calls:
        message["tool_calls"] = [_as_call(number, json.loads(call)) for number, call in enumerate(calls)]
    return message


def _as_call(number: int, call: dict[str, Any]) -> dict[str, Any]:
    arguments = json.dumps(call["arguments"], ensure_ascii=False)
    return {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": call["name"], "arguments": arguments},
    }


class Conversation:
    """One conversation that sends everything back."""

    def __init__(self, engine: PlaybookEngine, tenant: str, run: int, scope: int = 0, **options: Any) -> None:
        self.engine = engine
        self.tenant = tenant
        self.options: dict[str, Any] = {"tools": [BASH], **options}
        self.messages: list[Message] = [{"role": "user", "content": f"{format_tag(run, scope, 0)} Fix it."}]

    def request(self, **more: Any) -> SampleRequest:
        options = {**self.options, **more}
        return SampleRequest(tenant=self.tenant, endpoint="chat", messages=list(self.messages), **options)

    def ask(self, **more: Any) -> Drawn:
        return self.engine.draw(self.request(**more))

    def text(self, drawn: Drawn) -> str:
        return self.engine.encoding.decode(drawn.samples[0].token_ids).removesuffix("<|im_end|>")

    def take(self, drawn: Drawn) -> None:
        """Put the answer into the history, and a tool result after each call."""
        answer = parsed(self.text(drawn))
        self.messages.append(answer)
        for call in answer.get("tool_calls", []):
            self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": "ok\nfine"})

    def say(self, text: str) -> None:
        self.messages.append({"role": "user", "content": text})
