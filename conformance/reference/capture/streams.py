"""A finished chat answer told as a stream of server-sent events."""

from collections.abc import Iterator

from conformance.reference.capture import jsontext
from conformance.reference.capture.jsontext import JSON, JSONObject

DONE = b"data: [DONE]\n\n"
PING = b": ping\n\n"
COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")
TOLD_APART = ("role", "content", "reasoning", "reasoning_content", "tool_calls")


def chat_stream(view: JSONObject, *, usage_chunk: bool) -> Iterator[bytes]:
    """The frames of one answer: for each choice role, reasoning, text, tool calls, finish; usage if asked; the end."""
    head = _head(view)
    for position, choice in enumerate(view["choices"]):
        yield from _choice_frames(head, view, choice, position)
    if usage_chunk and _is_usage(view.get("usage")):
        yield _frame({**head, "choices": [], "usage": view["usage"]})
    yield DONE


def error_frame(body: JSONObject) -> bytes:
    """An error on a stream that has begun. Nothing follows it, so the stream cannot be taken for complete."""
    return _frame(body)


def _head(view: JSONObject) -> JSONObject:
    created = view.get("created")
    head: JSONObject = {
        "id": view.get("id"),
        "object": "chat.completion.chunk",
        "created": created if type(created) is int else 0,
        "model": view.get("model"),
    }
    kept = ("service_tier", "system_fingerprint")
    return head | {key: view[key] for key in kept if view.get(key) is not None}


def _choice_frames(head: JSONObject, view: JSONObject, choice: JSONObject, position: int) -> Iterator[bytes]:
    index = choice.get("index", position)
    message: JSONObject = choice["message"]
    prompt: JSONObject = {key: view[key] for key in ("prompt_token_ids", "prompt_text") if key in view}
    for number, delta in enumerate(_deltas(message)):
        told = {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}
        extra = prompt if number == 0 else {}
        yield _frame({**head, "choices": [told], **extra})
    rest = {key: value for key, value in choice.items() if key not in ("index", "message")}
    last = {"index": index, "delta": {}, "logprobs": None, "finish_reason": None, **rest}
    yield _frame({**head, "choices": [last]})


def _deltas(message: JSONObject) -> Iterator[JSONObject]:
    content = text_of(message.get("content"))
    yield {"role": "assistant", "content": None if content is None else ""}
    reasoning = {key: message[key] for key in ("reasoning", "reasoning_content") if message.get(key)}
    if reasoning:
        yield reasoning
    if content:
        yield {"content": content}
    for index, call in enumerate(message.get("tool_calls") or []):
        yield from _call_deltas(index, call)
    others = {key: value for key, value in message.items() if key not in TOLD_APART and value}
    if others:
        yield others


def _call_deltas(index: int, call: JSONObject) -> Iterator[JSONObject]:
    function: JSONObject = call["function"]
    arguments = function.get("arguments")
    begun = {**call, "index": index, "function": {**function, "arguments": ""}}
    yield {"tool_calls": [begun]}
    if arguments is not None and arguments != "":
        text = arguments if isinstance(arguments, str) else jsontext.write(arguments).decode()
        yield {"tool_calls": [{"index": index, "function": {"arguments": text}}]}


def text_of(content: JSON) -> JSON:
    """The text of a content, None if there is none; the text parts of a list are joined as clients join them."""
    if not isinstance(content, list):
        return content
    return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))


def _is_usage(usage: JSON) -> bool:
    return isinstance(usage, dict) and all(type(usage.get(name)) is int for name in COUNTS)


def _frame(value: JSONObject) -> bytes:
    return b"data: " + jsontext.write(value) + b"\n\n"
