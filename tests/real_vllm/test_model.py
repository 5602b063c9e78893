"""The template that the real server is given renders what the recorded server rendered."""

import json
from pathlib import Path
from typing import Any

import jinja2.sandbox
import pytest

from fakes.vllm.template import content_text, render
from tests.fakes.vllm.wire.recording import recorded_cases

JSON = Any
TEMPLATE = Path(__file__).with_name("template.jinja")


def _conversations() -> list[JSON]:
    asked = [(case["case"], case.get("request") or {}) for case in recorded_cases() if case["status"] == 200]
    return [
        pytest.param(request, id=name)
        for name, request in asked
        if "messages" in request and not request.get("continue_final_message")
    ]


def _as_vllm_gives_it(message: JSON) -> JSON:
    """A message as the server hands it to a template."""
    calls = json.loads(json.dumps(message.get("tool_calls") or []))
    for call in calls:
        try:
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
        except ValueError:
            call["function"]["arguments"] = {}
    return {
        **message,
        "role": "system" if message["role"] == "developer" else message["role"],
        "content": content_text(message.get("content")),
        **({"reasoning_content": message["reasoning"]} if "reasoning" in message else {}),
        "tool_calls": calls,
    }


@pytest.mark.parametrize("request_", _conversations())
def test_the_template_renders_what_the_fake_does_which_is_what_was_recorded(request_: JSON) -> None:
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    kwargs = request_.get("chat_template_kwargs") or {}
    generation = request_.get("add_generation_prompt", True)
    text = environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        messages=[_as_vllm_gives_it(message) for message in request_["messages"]],
        tools=request_.get("tools"),
        add_generation_prompt=generation,
        **kwargs,
    )
    blocks = render(
        request_["messages"],
        tools=request_.get("tools"),
        enable_thinking=kwargs.get("enable_thinking", True),
        add_generation_prompt=generation,
    )
    assert text == "".join(blocks)
