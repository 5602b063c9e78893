"""A client of the Messages dialect that believes nothing: what it gets is judged by the grammar of the dialect."""

import json
from collections.abc import Mapping
from typing import Any

from conformance.oracle.messages_answers import MessagesAnswer, buffered, reassemble
from conformance.oracle.messages_stream import grammar
from tests.reference.capture.running import Proxy, Reply

JSON = Any
HI = [{"role": "user", "content": "hi"}]


def send(
    proxy: Proxy,
    session: str | None = None,
    headers: Mapping[str, str] | None = None,
    path: str = "/v1/messages",
    **body: JSON,
) -> Reply:
    """One call to the route ``policy``; a key that is None is left out."""
    asked = {"model": "policy", "max_tokens": 100, "messages": HI, **body}
    if session is not None:
        asked["proxy_x_session_id"] = session
    kept = {key: value for key, value in asked.items() if value is not None}
    return proxy.call("POST", path, json.dumps(kept).encode(), headers)


def message_of(reply: Reply) -> JSON:
    """A buffered message."""
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json"), reply.raw
    assert (reply.json["type"], reply.json["role"]) == ("message", "assistant")
    return reply.json


def streamed(reply: Reply) -> MessagesAnswer:
    """The message that a well-formed stream tells."""
    assert reply.headers["content-type"].startswith("text/event-stream"), reply.raw
    judged = grammar(reply.raw.decode())
    assert judged, judged
    return reassemble(reply.raw.decode())


def both(proxy: Proxy, plan: Any, session: str | None, **body: JSON) -> MessagesAnswer:
    """The message of one planned answer, which has to be the same buffered and streamed; ``plan`` queues it."""
    plan()
    whole = buffered(message_of(send(proxy, session, **body)))
    plan()
    told = streamed(send(proxy, session, stream=True, **body))
    assert told == whole
    return whole


def error_of(reply: Reply) -> tuple[int, str, str]:
    """Status, kind and sentence of an error in Anthropic's shape."""
    assert reply.headers["content-type"] == "application/json"
    body = reply.json
    assert (body["type"], set(body), set(body["error"])) == ("error", {"type", "error"}, {"type", "message"})
    return reply.status, body["error"]["type"], body["error"]["message"]


def events_of(reply: Reply) -> list[JSON]:
    """The data of the events of a stream."""
    frames = reply.raw.decode().split("\n\n")
    return [json.loads(frame.partition("\ndata: ")[2]) for frame in frames if frame]
