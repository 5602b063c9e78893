"""What two bodies have in common that do not stand for the same call."""

import json
import re
from typing import Any


def anonymous(text: str) -> str:
    """Bodies without what is made anew each time: random ids, times, the path of the model's files, and the
    hash of a server's configuration."""
    text = re.sub(r'"(chatcmpl|cmpl|generate-tokens|chatcmpl-tool|modelperm)-[0-9a-f]{16}"', r'"\1-…"', text)
    text = re.sub(r'"created":\d+', '"created":0', text)
    text = re.sub(r'"system_fingerprint":"(vllm-[\d.]+)-[0-9a-f]{8}"', r'"system_fingerprint":"\1-…"', text)
    return re.sub(r'"root":"[^"]*"', '"root":""', text)


def _form(value: Any) -> Any:
    """Keys in order, nulls, and types; runs of alike items folded into one."""
    if isinstance(value, dict):
        if value and (all(key.isdigit() for key in value) or all(type(item) is float for item in value.values())):
            return {"<token>": _form(next(iter(value.values())))}
        return {key: _form(item) for key, item in value.items()}
    if isinstance(value, list):
        folded: list[Any] = []
        for item in map(_form, value):
            if not folded or json.dumps(folded[-1]) != json.dumps(item):
                folded.append(item)
        return folded
    return None if value is None else type(value).__name__


def forms(body: str) -> str:
    """The form of a body or of a stream, as one line."""
    if body.startswith("data: "):
        parts = [part.removeprefix("data: ") for part in body.split("\n\n") if part]
        return json.dumps(_form([part if part == "[DONE]" else json.loads(part) for part in parts]))
    return json.dumps(_form(json.loads(body)))
