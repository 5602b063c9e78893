"""Requests that a real vLLM and the fake are both asked: those that were recorded, and more."""

from collections.abc import Iterator
from typing import Any

from tests.fakes.vllm.wire.recording import recorded_cases

JSON = Any
Case = dict[str, JSON]
CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"

WAYS: dict[str, dict[str, JSON]] = {"buffered": {}, "streamed": {"stream": True}}
WITH_USAGE: dict[str, dict[str, JSON]] = {
    "streamed with usage": {"stream": True, "stream_options": {"include_usage": True}}
}
CAPTURED: dict[str, JSON] = {"logprobs": True, "top_logprobs": 0, "return_token_ids": True, "temperature": 0}
"""What a capture proxy asks for."""
QUIET: dict[str, JSON] = {"chat_template_kwargs": {"enable_thinking": False}}
TOOL: dict[str, JSON] = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Runs a command.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
}
CALL = '<tool_call>\n{"name": "bash", "arguments": {"command": "ls -la", "n": 1.0}}\n</tool_call>'
THOUGHT = "<think>\nFirst the header.\n</think>\n\n"
ASKED = [{"role": "system", "content": "You are an agent."}, {"role": "user", "content": "Why does the build fail?"}]
ANSWERED = [
    *ASKED,
    {
        "role": "assistant",
        "content": "I look.",
        "reasoning_content": "First the header.",
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": '{"command":"ls"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "a.py\nb.py"},
]
NO_TAGS = {"2007": -100, "2008": -100}
"""Keeps a model from writing ``<think>`` and ``</think>`` as one token each."""
TEXTS: dict[str, str] = {
    "text": "It is the header.",
    "a call": CALL,
    "text and two calls": f"I look.\n{CALL}\n{CALL}",
    "thought and text": f"{THOUGHT}It is the header.",
    "thought and a call": f"{THOUGHT}{CALL}",
    "a call that is no JSON": '<tool_call>\n{"name": "bash", "arguments": {"command": ls}}\n</tool_call>',
    "letters beyond ASCII": "Zürich 😀 東京",
    "a call with letters beyond ASCII": '<tool_call>\n{"name": "bash", "arguments": {"command": "ü 😀"}}\n</tool_call>',
    "blank lines": "\n\nWell.\n\n",
}


NOISE = {"stream named": "arguments of noise, streamed without their ids: nobody can tell what was sampled"}
"""Recorded requests that are not asked again, and why."""


def cases() -> list[Case]:
    """Recorded requests as they are, and our own; each with a name."""
    whole = (case for case in recorded_cases() if "request" in case or case["method"] == "GET")
    recorded = [case for case in whole if case["case"] not in NOISE]
    ours = [
        {"case": name, "method": "POST", "path": path, "request": {"model": "tiny", **request}}
        for name, path, request in _ours()
    ]
    return [*recorded, *ours]


def _ours() -> Iterator[tuple[str, str, dict[str, JSON]]]:
    for what, text in TEXTS.items():
        forced = {**CAPTURED, "max_tokens": 200, "structured_outputs": {"choice": [text]}, "tools": [TOOL]}
        for way, more in WAYS.items():
            yield f"{what}, {way}", CHAT, {"messages": ASKED, **forced, **more}
    spelled = {"structured_outputs": {"choice": [TEXTS["thought and text"]]}, "logit_bias": NO_TAGS}
    for way, more in {**WAYS, **WITH_USAGE}.items():
        yield (
            f"tags of thought in letters, {way}",
            CHAT,
            {"messages": ASKED, **CAPTURED, "max_tokens": 200, **spelled, **more},
        )
        forced = {**CAPTURED, "max_tokens": 60, "structured_outputs": {"choice": ["It is the header."]}}
        yield f"a second turn, {way}", CHAT, {"messages": ANSWERED, "tools": [TOOL], **forced, **QUIET, **more}
        yield f"cut by length, {way}", CHAT, {"messages": ASKED, **forced, **QUIET, "max_tokens": 3, **more}
        yield f"without ids, {way}", CHAT, {"messages": ASKED, **forced, **QUIET, "return_token_ids": False, **more}
        yield f"ids as tokens, {way}", CHAT, {"messages": ASKED, **forced, "return_tokens_as_token_ids": True, **more}
        yield f"two alternatives, {way}", CHAT, {"messages": ASKED, **forced, **QUIET, "top_logprobs": 2, **more}
        yield f"a stop string, {way}", CHAT, {"messages": ASKED, **forced, **QUIET, "stop": ["head"], **more}
        prompt = {"prompt": [2001, 1998, 198, 71, 72, 2002, 198], "temperature": 0, "max_tokens": 6}
        asked = {"logprobs": 0, "return_token_ids": True}
        yield f"a completion of ids, {way}", COMPLETIONS, {**prompt, **asked, **more}
        yield f"a completion without log probs, {way}", COMPLETIONS, {**prompt, "return_token_ids": True, **more}
