"""The content of an item in chat form."""

from collections.abc import Mapping

from conformance.reference.capture.dialects.responses.errors import mistake
from conformance.reference.capture.jsontext import JSON, JSONObject

TEXTS = ("input_text", "output_text", "text", "summary_text", "reasoning_text")


def chat_content(content: JSON, where: str) -> JSON:
    """Text or a list of parts; a single text is a string, since that is how an engine's own turn is recorded."""
    if isinstance(content, str):
        return content
    parts = [chat_part(part, f"{where}[{index}]") for index, part in enumerate(_parts(content, where))]
    if not parts:
        return ""
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts


def spoken_text(content: JSON, where: str) -> tuple[str | None, str | None]:
    """Text and refusal of an assistant's message; None for what it does not hold."""
    if isinstance(content, str):
        return content, None
    parts = _parts(content, where)
    refusals = [_text(part, "refusal", where) for part in parts if part.get("type") == "refusal"]
    rest = [part for part in parts if part.get("type") != "refusal"]
    for index, part in enumerate(rest):
        if part.get("type") not in TEXTS:
            raise mistake(f"{where}[{index}]", f"an assistant's message holds text only, not {_shown(part)}")
    texts = [_text(part, "text", where) for part in rest]
    return "".join(texts) if texts or not refusals else None, "".join(refusals) if refusals else None


def joined_texts(parts: JSON, where: str) -> str:
    """The texts of a reasoning item's parts, one paragraph each."""
    return "\n\n".join(_text(part, "text", where) for part in _parts(parts, where))


def chat_part(part: Mapping[str, JSON], where: str) -> JSONObject:
    """One part of what a user or a tool says."""
    kind = part.get("type")
    if kind in TEXTS:
        return {"type": "text", "text": _text(part, "text", where)}
    if kind == "encrypted_content":
        # Codex hands a task to a subagent in such a part; to a server that is not its own it is plain text.
        return {"type": "text", "text": _text(part, "encrypted_content", where)}
    if kind == "input_image":
        if not isinstance(part.get("image_url"), str):
            raise mistake(where, "an image must come with its image_url; no files are stored here")
        detail = {"detail": part["detail"]} if isinstance(part.get("detail"), str) else {}
        return {"type": "image_url", "image_url": {"url": part["image_url"], **detail}}
    if kind == "input_audio" and isinstance(part.get("input_audio"), dict):
        return {"type": "input_audio", "input_audio": part["input_audio"]}
    raise mistake(where, f"a part of type {_shown(part)} cannot be told to a chat engine")


def _parts(content: JSON, where: str) -> list[JSONObject]:
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise mistake(where, "content must be text or a list of parts")
    return content


def _text(part: Mapping[str, JSON], key: str, where: str) -> str:
    text = part.get(key)
    if not isinstance(text, str):
        raise mistake(f"{where}.{key}", f"{key} must be a text")
    return text


def _shown(part: Mapping[str, JSON]) -> str:
    return repr(part.get("type"))[:80]
