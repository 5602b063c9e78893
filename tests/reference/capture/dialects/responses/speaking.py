"""A client of the Responses dialect that believes nothing: every event is judged by model and by order."""

import json
from collections.abc import Mapping
from typing import Any

from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from tests.reference.capture.running import Proxy, Reply

JSON = Any
ENDS = ("response.completed", "response.incomplete", "response.failed")
_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def respond(proxy: Proxy, session: str | None = None, headers: Mapping[str, str] | None = None, **body: JSON) -> Reply:
    """One call to the route ``policy``."""
    asked = {"model": "policy", "input": "hi", **body}
    if session is not None:
        asked["proxy_x_session_id"] = session
    return proxy.call("POST", "/v1/responses", json.dumps(asked).encode(), headers)


def response_of(reply: Reply) -> JSON:
    """A buffered response that the official model takes."""
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    Response.model_validate(reply.json)
    return reply.json


def events_of(reply: Reply) -> list[JSON]:
    """The events of a stream, each judged alone."""
    assert reply.status == 200
    assert reply.headers["content-type"].startswith("text/event-stream")
    return events_in(reply.raw)


def events_in(raw: bytes) -> list[JSON]:
    frames = raw.decode("utf-8").split("\n\n")
    assert frames.pop() == "", "the stream ends in the middle of an event"
    events = []
    for frame in frames:
        if frame.startswith(":"):
            continue
        name, _, data = frame.partition("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        _EVENT.validate_python(_as_modelled(event))
        events.append(event)
    return events


def _as_modelled(event: JSON) -> JSON:
    """The event with the one error code by which Codex knows an overflow, and which the official models lack."""
    error = event.get("response", {}).get("error") or {}
    if error.get("code") != "context_length_exceeded":
        return event
    return event | {"response": event["response"] | {"error": error | {"code": "invalid_prompt"}}}


def streamed(reply: Reply) -> JSON:
    """The response that a well-formed stream tells."""
    return told(events_of(reply))


def told(events: list[JSON]) -> JSON:
    """The response that the events add up to; every rule of their order is judged on the way."""
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"]
    assert [event["type"] in ENDS for event in events] == [False] * (len(events) - 1) + [True]
    assert len({event["response"]["id"] for event in events if "response" in event}) == 1
    final = events[-1]["response"]
    assert events[-1]["type"] == f"response.{final['status']}"
    assert _assembled(events) == final["output"]
    return final


def _assembled(events: list[JSON]) -> list[JSON]:
    items: dict[int, JSON] = {}
    done: dict[int, JSON] = {}
    texts: dict[tuple[int, str, int], str] = {}
    for event in events:
        kind, index = event["type"], event.get("output_index")
        if kind == "response.output_item.added":
            assert index == len(items)
            items[index] = event["item"]
            assert event["item"]["status"] == "in_progress"
        elif kind == "response.output_item.done":
            assert index not in done
            done[index] = event["item"]
            _same_but_filled(items[index], event["item"])
        elif index is not None:
            assert index in items
            assert index not in done
            assert event["item_id"] == items[index]["id"]
            number = event.get("content_index", event.get("summary_index", 0))
            place = (index, "call" if "arguments" in kind else "part", number)
            if kind.endswith("part.added"):
                assert place not in texts
                texts[place] = ""
            elif kind.endswith(".delta"):
                assert event["delta"] != ""
                if "arguments" in kind:
                    texts.setdefault(place, "")
                texts[place] += event["delta"]
            else:
                part = event.get("part", event)
                whole = part.get("text", part.get("refusal", part.get("arguments")))
                assert texts.get(place, "") == whole
    assert sorted(items) == sorted(done)
    return [done[index] for index in sorted(done)]


def _same_but_filled(begun: JSON, ended: JSON) -> None:
    filled = ("status", "content", "summary", "arguments")
    assert list(begun) == list(ended)
    assert [begun[key] for key in begun if key not in filled] == [ended[key] for key in ended if key not in filled]


def said(response: JSON) -> JSON:
    """What a response says, without the names that differ between two calls."""
    names = {"id", "created_at"}
    kept = {key: value for key, value in response.items() if key not in names}
    return kept | {"output": [{k: v for k, v in item.items() if k != "id"} for item in response["output"]]}
