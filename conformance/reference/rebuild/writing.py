"""An answer as its line, piece by piece: each turn's item repeats the whole prompt, which need not be held as often."""

import json
from collections.abc import Iterator
from secrets import token_hex
from typing import Any

from conformance.contract.rebuilds import RebuildAnswer
from conformance.reference.rebuild.tokens import Node, Tokens


def pieces(answer: RebuildAnswer) -> Iterator[bytes]:
    """The line, its end included."""
    place = f"prompt {token_hex(16)}"  # nothing in an answer can know it
    prompts: list[Tokens] = []

    def shape(value: Any) -> Any:
        if isinstance(value, Tokens):
            prompts.append(value)
            return place
        return dict(value)

    text = json.dumps(answer, default=shape, separators=(",", ":"))
    texts = PromptTexts()
    at, mark = 0, f'"{place}"'
    for prompt in prompts:
        until = text.index(mark, at)
        yield text[at:until].encode()
        at = until + len(mark)
        yield b"["
        yield texts.of(prompt)
        yield b"]"
    yield text[at:].encode()
    yield b"\n"


class PromptTexts:
    """Prompts as JSON without brackets; one that goes on from the one before costs what it adds."""

    def __init__(self) -> None:
        self._node: Node | None = None
        self._text = b""

    def of(self, prompt: Tokens) -> bytes:
        known = self._node if self._node is not None and prompt.node.starts_with(self._node) else None
        added = ",".join(map(str, prompt.node.since(known.depth if known else 0))).encode()
        self._text = b",".join(text for text in (self._text if known else b"", added) if text)
        self._node = prompt.node
        return self._text
