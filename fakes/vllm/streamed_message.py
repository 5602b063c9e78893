"""The assistant message of a streamed chat completion, for the ledger: what the engine said in that very call.

Streaming parsers and buffered ones read the same generation differently (white space, broken and cut calls).
"""

from collections.abc import Sequence

from fakes.vllm.answers import Json
from fakes.vllm.forms import Chunk


def streamed_message(chunks: Sequence[Chunk], buffered: Json) -> Json:
    """Choice 0 as its deltas tell it, in the form of the message a buffered answer would have had."""
    deltas = [
        choice["delta"] for chunk in chunks for choice in chunk.body.get("choices", ()) if choice.get("index") == 0
    ]
    message = {key: value for key, value in buffered.items() if key != "tool_calls"}
    message["content"] = _text(deltas, "content")
    for key in ("reasoning", "reasoning_content"):
        if key in message:
            message[key] = _text(deltas, key)
    calls: dict[int, Json] = {}
    for delta in deltas:
        for piece in delta.get("tool_calls") or ():
            function = piece.get("function") or {}
            if piece["index"] not in calls:
                named: Json = {"name": function.get("name"), "arguments": []}
                calls[piece["index"]] = {"id": piece.get("id"), "type": "function", "function": named}
            calls[piece["index"]]["function"]["arguments"].append(function.get("arguments") or "")
    for call in calls.values():
        call["function"]["arguments"] = "".join(call["function"]["arguments"])
    if calls or "tool_calls" in buffered:
        message["tool_calls"] = list(calls.values())
    return message


def _text(deltas: Sequence[Json], key: str) -> str | None:
    return "".join(delta[key] for delta in deltas if isinstance(delta.get(key), str)) or None
