"""A message of the Messages dialect as a client reads it: put together from a stream, or buffered.

Nothing here raises, whatever a body holds.
"""

from dataclasses import dataclass, field
from typing import Any

from conformance.oracle.chat_answers import Object, json_object
from conformance.oracle.named_events import inner, kind_of, objects_in, of_kind, text_in, told

PIECES = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
"""The kinds of delta, and the key under which each holds its piece of text."""


@dataclass(slots=True)
class MessagesAnswer:
    """``blocks`` in buffered form. An ``input`` that is no JSON object stays the text that came."""

    id: str | None = None
    model: str | None = None
    blocks: list[Object] = field(default_factory=list)
    stop_reason: str | None = None
    stop_sequence: str | None = None
    usage: Object | None = None

    @property
    def text(self) -> str:
        return "".join(text_in(block, "text") for block in of_kind(self.blocks, "text"))

    @property
    def reasoning(self) -> str:
        return "".join(text_in(block, "thinking") for block in of_kind(self.blocks, "thinking"))

    @property
    def tool_calls(self) -> list[Object]:
        """The tool uses in the form of chat calls, with the parsed input for arguments."""
        return [
            {
                "id": one.get("id"),
                "type": "function",
                "function": {"name": one.get("name"), "arguments": one.get("input")},
            }
            for one in of_kind(self.blocks, "tool_use")
        ]


def reassemble(body: str) -> MessagesAnswer:
    """What the official client makes of a stream: pieces appended to the block of their index, usage overwritten."""
    answer = MessagesAnswer()
    open_blocks: dict[str, Object] = {}
    inputs: dict[str, str] = {}
    for one in told(body)[1]:
        index = str(one.get("index"))
        match kind_of(one):
            case "message_start":
                message = inner(one, "message")
                answer.id, answer.model = message.get("id"), message.get("model")
                answer.usage = inner(message, "usage") or None
            case "content_block_start":
                answer.blocks.append(dict(inner(one, "content_block")))
                open_blocks[index] = answer.blocks[-1]
            case "content_block_delta" if index in open_blocks:
                _add(open_blocks[index], inner(one, "delta"), inputs, index)
            case "message_delta":
                change = inner(one, "delta")
                answer.stop_reason = change.get("stop_reason") or answer.stop_reason
                answer.stop_sequence = change.get("stop_sequence") or answer.stop_sequence
                counted = {key: value for key, value in inner(one, "usage").items() if value is not None}
                answer.usage = {**(answer.usage or {}), **counted} or None
    for index, block in open_blocks.items():
        if kind_of(block) == "tool_use":
            # As the official clients do: what stood in the start counts only where no piece followed.
            block["input"] = _parsed(inputs[index]) if inputs.get(index) else block.get("input", {})
    return answer


def buffered(body: Object) -> MessagesAnswer:
    """The same of a buffered message; an empty answer for a body that holds none."""
    blocks = [
        {**one, "input": one.get("input", {})} if kind_of(one) == "tool_use" else one
        for one in objects_in(body, "content")
    ]
    return MessagesAnswer(
        id=body.get("id"),
        model=body.get("model"),
        blocks=blocks,
        stop_reason=body.get("stop_reason"),
        stop_sequence=body.get("stop_sequence"),
        usage=inner(body, "usage") or None,
    )


def _add(block: Object, delta: Object, inputs: dict[str, str], index: str) -> None:
    key = PIECES.get(kind_of(delta), "")
    piece = text_in(delta, key)
    if key == "partial_json":
        inputs[index] = inputs.get(index, "") + piece
    elif key == "signature":
        block[key] = piece
    elif key:
        block[key] = text_in(block, key) + piece


def _parsed(text: str) -> Any:
    found = json_object(text)
    return text if found is None else found
