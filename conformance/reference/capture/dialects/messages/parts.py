"""Blocks of a user's content or of a tool's result as the content of a chat message."""

from conformance.reference.capture import jsontext
from conformance.reference.capture.dialects.messages.mistakes import as_list, as_object, as_text, mistake
from conformance.reference.capture.jsontext import JSON, JSONObject


def parts_of(content: JSON, where: str) -> list[JSONObject]:
    """Chat parts, in order. Raises Refusal for what no engine of the chat dialect can be shown."""
    if content is None:
        return []
    if isinstance(content, str):
        return [_text_part(content)]
    parts: list[JSONObject] = []
    for number, block in enumerate(as_list(content, where)):
        parts += block_parts(as_object(block, f"{where}.{number}"), f"{where}.{number}")
    return parts


def content_of(parts: list[JSONObject]) -> JSON:
    """Text alone is a string, block by block on lines of its own; with images it is a list of parts.

    A string and a list of one text thus become the same: harnesses flip between them from call to call.
    """
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts if part["text"])
    return [part for part in parts if part["type"] != "text" or part["text"]]


def block_parts(block: JSONObject, where: str) -> list[JSONObject]:
    """One block. A kind that chat does not know is shown as its JSON, so that nothing is lost unseen."""
    kind = block.get("type")
    if kind == "text":
        return [_text_part(as_text(block.get("text"), f"{where}.text"))]
    if kind == "image":
        return [_image_part(as_object(block.get("source"), f"{where}.source"), f"{where}.source")]
    if kind == "document":
        return _document_parts(as_object(block.get("source"), f"{where}.source"), f"{where}.source")
    if not isinstance(kind, str):
        raise mistake(f"{where}.type", "must be a string")
    shown = {key: value for key, value in block.items() if key != "cache_control"}
    return [_text_part(jsontext.spaced(shown))]


def joined_text(content: JSON, where: str, between: str) -> str:
    """The text of a string or of a list of text blocks; empty ones leave no trace."""
    if isinstance(content, str):
        return content
    texts = []
    for number, block in enumerate(as_list(content, where)):
        place = f"{where}.{number}"
        if as_object(block, place).get("type") != "text":
            raise mistake(f"{place}.type", "only text is allowed here")
        texts.append(as_text(block.get("text"), f"{place}.text"))
    return between.join(text for text in texts if text)


def _text_part(text: str) -> JSONObject:
    return {"type": "text", "text": text}


def _image_part(source: JSONObject, where: str) -> JSONObject:
    kind = source.get("type")
    if kind == "base64":
        media_type = as_text(source.get("media_type"), f"{where}.media_type")
        url = f"data:{media_type};base64,{as_text(source.get('data'), f'{where}.data')}"
    elif kind == "url":
        url = as_text(source.get("url"), f"{where}.url")
    else:
        raise mistake(f"{where}.type", "an image must come as base64 or url; the engine knows no files")
    return {"type": "image_url", "image_url": {"url": url}}


def _document_parts(source: JSONObject, where: str) -> list[JSONObject]:
    kind = source.get("type")
    if kind == "text":
        return [_text_part(as_text(source.get("data"), f"{where}.data"))]
    if kind == "content":
        return parts_of(source.get("content"), f"{where}.content")
    raise mistake(f"{where}.type", "a document must come as text or content; the engine reads no files")
