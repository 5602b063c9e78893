"""Calls that belong to no session: told while the engine streams, and never completed by anyone but the engine."""

import json

import pytest

from tests.reference.capture.dialects.responses.speaking import (
    JSON,
    events_of,
    respond,
    response_of,
    said,
    streamed,
    told,
)
from tests.reference.capture.running import Proxy
from tests.reference.capture.scripted_engine import Answer, ScriptedEngine, completion, with_message

pytestmark = pytest.mark.unit

USAGE = {"prompt_tokens": 2, "total_tokens": 5, "completion_tokens": 3}


def chunk(finish: str | None = None, **delta: JSON) -> JSON:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def calling(index: int, name: str | None = None, arguments: str | None = None) -> JSON:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    begun = {"id": f"call-{index}", "type": "function"} if name else {}
    return {"index": index, **begun, "function": function}


def stream_of(*chunks: JSON, done: bool = True) -> Answer:
    frames = [b"data: " + json.dumps(each).encode() + b"\n\n" for each in chunks]
    body = b"".join([*frames, b"data: [DONE]\n\n"] if done else frames)
    return Answer(body=body, headers={"content-type": "text/event-stream; charset=utf-8"})


CALLS = [{"id": "call-0", "type": "function", "function": {"name": "run", "arguments": '{"a": 1}'}}]
SAID: dict[str, tuple[list[JSON], JSON]] = {
    "text": ([chunk(content="Y"), chunk(content="es."), chunk("stop")], with_message()),
    "everything": (
        [
            chunk(role="assistant", content=""),
            chunk(reasoning="Hm"),
            chunk(reasoning="."),
            chunk(content="Yes."),
            chunk(tool_calls=[calling(0, "run", "")]),
            chunk(tool_calls=[calling(0, arguments='{"a": ')]),
            chunk(tool_calls=[calling(0, arguments="1}")]),
            chunk("stop"),
        ],
        with_message(reasoning="Hm.", tool_calls=CALLS),
    ),
    "one chunk for all": (
        [chunk("stop", reasoning_content="Hm.", content="Yes.", tool_calls=[calling(0, "run", '{"a": 1}')])],
        with_message(reasoning="Hm.", tool_calls=CALLS),
    ),
    "nothing": ([chunk(role="assistant", content=""), chunk("stop")], with_message(content="")),
    "a refusal": ([chunk(refusal="No."), chunk("stop")], with_message(content=None, refusal="No.")),
}


@pytest.mark.parametrize("name", SAID)
def test_a_relayed_stream_says_what_a_whole_answer_says(name: str, proxy: Proxy, engine: ScriptedEngine) -> None:
    chunks, answer = SAID[name]
    counted = {**chunk(), "choices": [], "usage": USAGE}
    engine.plan(stream_of(*chunks, counted), answer)
    streaming = streamed(respond(proxy, stream=True))
    assert said(streaming) == said(response_of(respond(proxy)))
    asked = [chat.body for chat in engine.chats()]
    assert [body.get("stream") for body in asked] == [True, None]
    assert asked[0]["stream_options"] == {"include_usage": True}
    assert not {"logprobs", "return_token_ids"} & set(asked[0])


def test_calls_that_grow_side_by_side_stay_apart(proxy: Proxy, engine: ScriptedEngine) -> None:
    engine.plan(
        stream_of(
            chunk(tool_calls=[calling(0, "run", ""), calling(1, "run", "")]),
            chunk(tool_calls=[calling(1, arguments="{}")]),
            chunk(tool_calls=[calling(0, arguments="[]")]),
            chunk("tool_calls"),
        )
    )
    output = streamed(respond(proxy, stream=True))["output"]
    assert [(item["call_id"], item["arguments"]) for item in output] == [("call-0", "[]"), ("call-1", "{}")]


def test_what_was_said_ends_before_a_call_begins(proxy: Proxy, engine: ScriptedEngine) -> None:
    engine.plan(stream_of(*SAID["everything"][0]))
    steps = [event for event in events_of(respond(proxy, stream=True)) if "output_item" in event["type"]]
    assert [(event["output_index"], event["type"].rpartition(".")[2]) for event in steps] == [
        *((0, "added"), (0, "done"), (1, "added"), (1, "done"), (2, "added"), (2, "done")),
    ]


def test_thinking_again_after_text_is_an_item_of_its_own(proxy: Proxy, engine: ScriptedEngine) -> None:
    engine.plan(stream_of(chunk(reasoning="a"), chunk(content="b"), chunk(reasoning="c"), chunk("length", content="d")))
    response = streamed(respond(proxy, stream=True))
    assert [item["type"] for item in response["output"]] == ["reasoning", "message", "reasoning", "message"]
    assert len({item["id"] for item in response["output"]}) == 4
    assert [item["status"] for item in response["output"]] == ["completed"] * 3 + ["incomplete"]
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}


BROKEN: dict[str, Answer] = {
    "closed before its end": stream_of(chunk(content="Y"), done=False),
    "ended without a finish": stream_of(chunk(content="Y")),
    "an error inside": stream_of(chunk(content="Y"), {"error": {"message": "EngineCore", "code": 500}}, done=False),
    "a chunk that is no JSON": Answer(
        body=stream_of(chunk(content="Y"), done=False).body + b"data: {\n\n",
        headers={"content-type": "text/event-stream"},
    ),
    "odd calls": stream_of(chunk(content="Y"), chunk(tool_calls=[7])),
    "odd choices": stream_of(chunk(content="Y"), {**chunk(), "choices": [7]}),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_stream_that_breaks_fails_and_never_completes(name: str, proxy: Proxy, engine: ScriptedEngine) -> None:
    engine.plan(BROKEN[name])
    events = events_of(respond(proxy, stream=True))
    assert events[-1]["type"] == "response.failed"
    assert events[-1]["response"]["error"]["code"] == "server_error"
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert "response.completed" not in {event["type"] for event in events}


def test_an_engine_that_fails_at_once_is_an_error_and_no_stream(proxy: Proxy, engine: ScriptedEngine) -> None:
    engine.plan(Answer(503, b'{"error":{"message":"busy","code":503}}', {"Retry-After": "3"}))
    reply = respond(proxy, stream=True)
    assert (reply.status, reply.headers["retry-after"], reply.json["error"]["message"]) == (503, "3", "busy")


def test_nothing_is_recorded_of_a_call_without_a_session(proxy: Proxy) -> None:
    before = proxy.sessions()
    response_of(respond(proxy))
    assert proxy.sessions() == before


def test_a_route_that_does_not_capture_answers_alike(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    engine.plan(stream_of(chunk("stop", content="Yes.")), completion())
    assert told(events_of(respond(proxy, session, model="plain", stream=True)))["status"] == "completed"
    assert response_of(respond(proxy, session, model="plain"))["status"] == "completed"
    assert session not in {row["session_id"] for row in proxy.sessions()}
