"""A piece as Responses API items: the conversation, with the triple on the last item of each generated turn."""

from collections.abc import Sequence
from typing import Any

from conformance.reference.rebuild.rewrites import Message, plain_text
from conformance.reference.rebuild.turns import Turn

Item = dict[str, Any]

_THINK_OPEN, _THINK_CLOSE = "<think>", "</think>"


def items(turns: Sequence[Turn], told: Sequence[Message]) -> list[Item]:
    """The items of one training sequence. Emitted text and arguments are always what the model produced.

    ``told`` are the messages of the whole sequence as they were first emitted, whatever a history made of them.
    """
    found: list[Item] = []
    known = 0
    for turn in turns:
        for index in range(known, turn.request_length):
            found += context_items(told[index], f"{turn.uuid}_{index}")
        found += generated_items(turn)
        known = len(turn.messages)
    return found


def generated_items(turn: Turn) -> list[Item]:
    answer = assistant_items(turn.messages[-1], turn.reasoning, turn.uuid)
    answer[-1] |= {
        "prompt_token_ids": turn.prompt,
        "generation_token_ids": turn.generation,
        "generation_log_probs": turn.log_probs,
    }
    return answer


def context_items(message: Message, name: str) -> list[Item]:
    """Items of a message that this sequence did not sample."""
    if message["role"] == "assistant":
        return assistant_items(message, None, name)
    if message["role"] == "tool":
        output = _input_content(message.get("content"))
        return [{"type": "function_call_output", "call_id": message["tool_call_id"], "output": output}]
    return [{"type": "message", "role": message["role"], "content": _input_content(message.get("content"))}]


def _input_content(content: Any) -> Any:
    text = plain_text(content)
    if text is not None:
        return text
    return [_input_part(part) for part in content]


def _input_part(part: Item) -> Item:
    if part["type"] == "text":
        return {"type": "input_text", "text": part["text"]}
    picture = part.get("image_url")
    if isinstance(picture, dict) and isinstance(picture.get("url"), str):
        return {"type": "input_image", "image_url": picture["url"], "detail": picture.get("detail", "auto")}
    return part


def assistant_items(message: Message, reasoning: str | None, name: str) -> list[Item]:
    """Reasoning, then the message, then the calls; an empty turn is one empty message."""
    content = message.get("content")
    text = plain_text(content)
    thought, text = (None, None) if text is None else _think_block(text)
    reasoning = reasoning or thought
    calls = message.get("tool_calls") or []
    found: list[Item] = []
    if reasoning:
        summary = [{"type": "summary_text", "text": reasoning}]
        found.append({"type": "reasoning", "id": f"rs_{name}", "summary": summary})
    parts = content if text is None else [{"type": "output_text", "text": text, "annotations": []}]
    if text != "" or not (found or calls):
        found.append(
            {"type": "message", "id": f"msg_{name}", "role": "assistant", "status": "completed", "content": parts}
        )
    found += [
        {
            "type": "function_call",
            "id": f"fc_{name}_{index}",
            "call_id": call["id"],
            "name": call["function"]["name"],
            "arguments": call["function"]["arguments"],
            "status": "completed",
        }
        for index, call in enumerate(calls)
    ]
    return found


def _think_block(text: str) -> tuple[str | None, str]:
    """The thought a text opens with, and the rest; a text without a closed block is left as it is."""
    if not text.lstrip().startswith(_THINK_OPEN):
        return None, text
    thought, closed, rest = text.lstrip().removeprefix(_THINK_OPEN).partition(_THINK_CLOSE)
    if not closed:
        return None, text
    return thought, "" if rest.strip() == "" else rest


def function_tools(tools: Sequence[Item]) -> list[Item]:
    """The recorded tools as Responses API function tools."""
    return [
        {
            "type": "function",
            "name": tool["id"],
            "description": tool.get("description") or None,
            "parameters": (tool.get("inputSchema") or {}).get("jsonSchema"),
            "strict": None,
        }
        for tool in tools
    ]
