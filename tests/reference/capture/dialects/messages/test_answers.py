"""What a Messages client gets for an answer of the engine: the same buffered and streamed."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from conformance.oracle.messages_answers import MessagesAnswer
from tests.reference.capture.dialects.messages.speaking import both, events_of, message_of, send, streamed
from tests.reference.capture.running import Proxy
from tests.reference.capture.scripted_engine import Answer, ScriptedEngine, completion, with_choice, with_message

pytestmark = pytest.mark.unit

JSON = Any
Tell = Callable[..., MessagesAnswer]


def call(arguments: JSON, name: str = "bash", call_id: JSON = "call weird/id:1") -> JSON:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.fixture(params=["policy", "plain"], ids=["captured", "uncaptured"])
def tell(request: pytest.FixtureRequest, proxy: Proxy, engine: ScriptedEngine, session: str) -> Tell:
    """What a client is told of one answer, in both modes. The uncaptured stream is the engine's own."""

    def telling(answer: JSON) -> MessagesAnswer:
        if request.param == "policy":
            return both(proxy, lambda: engine.plan(answer), session)
        engine.plan(answer)
        whole = message_of(send(proxy, model="plain"))
        engine.plan(Answer(body=chunks_of(answer), headers={"content-type": "text/event-stream"}))
        told = streamed(send(proxy, model="plain", stream=True))
        assert (told.blocks, told.stop_reason, told.usage) == (whole["content"], whole["stop_reason"], whole["usage"])
        assert (told.stop_sequence, told.model, told.id) == (whole["stop_sequence"], whole["model"], whole["id"])
        return told

    return telling


def chunks_of(answer: JSON, pieces: int = 3) -> bytes:
    """An answer as an engine streams it, each text in a few pieces."""
    (choice,) = answer["choices"]
    message = choice["message"]
    deltas: list[JSON] = [{"role": "assistant", "content": ""}]
    for key in ("reasoning", "content"):
        deltas += [{key: piece} for piece in _cut(message.get(key) or "", pieces)]
    for index, one in enumerate(message.get("tool_calls") or []):
        arguments = one["function"]["arguments"] or ""
        deltas.append({"tool_calls": [{**one, "index": index, "function": {**one["function"], "arguments": ""}}]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in _cut(arguments, pieces)
        ]
    told = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    told.append({"index": 0, "delta": {}, **{key: choice[key] for key in ("finish_reason", "stop_reason")}})
    head = {"id": answer["id"], "model": answer["model"], "object": "chat.completion.chunk"}
    chunks = [{**head, "choices": [one]} for one in told] + [{**head, "choices": [], "usage": answer["usage"]}]
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def _cut(text: str, pieces: int) -> list[str]:
    step = max(1, -(-len(text) // pieces))
    return [text[at : at + step] for at in range(0, len(text), step)]


def test_thinking_text_and_calls_are_blocks_in_that_order(tell: Tell) -> None:
    calls = [call('{"zeta": 1, "alpha": 2.0}'), call("{}", call_id="c2")]
    message = {"reasoning": "\nHm.\n", "content": "  I look.\n", "tool_calls": calls}
    told = tell(with_message(**message))
    assert [block["type"] for block in told.blocks] == ["thinking", "text", "tool_use", "tool_use"]
    assert (told.reasoning, told.text) == ("\nHm.\n", "  I look.\n")
    assert told.blocks[0]["signature"]
    assert told.blocks[2] == {
        "type": "tool_use",
        "id": "call weird/id:1",
        "name": "bash",
        "input": {"zeta": 1, "alpha": 2.0},
    }
    assert list(told.blocks[2]["input"]) == ["zeta", "alpha"]
    assert told.blocks[3]["input"] == {}
    assert told.stop_reason == "tool_use"


@pytest.mark.parametrize(
    ("content", "shown"),
    [(None, []), ("", []), ("\n\n", ["\n\n"]), ("é 🙂 <think>", ["é 🙂 <think>"])],
    ids=["null", "empty", "blank", "odd-letters"],
)
def test_text_is_told_as_it_is_and_nothing_is_made_up(tell: Tell, content: JSON, shown: list[str]) -> None:
    assert [block["text"] for block in tell(with_message(content=content)).blocks] == shown


@pytest.mark.parametrize(
    ("finish", "matched", "calls", "reason", "sequence"),
    [
        ("stop", None, None, "end_turn", None),
        ("stop", 2000, None, "end_turn", None),
        ("stop", "END", None, "stop_sequence", "END"),
        ("stop", None, [call("{}")], "tool_use", None),
        ("tool_calls", None, [call("{}")], "tool_use", None),
        ("tool_calls", None, [], "end_turn", None),
        ("length", None, None, "max_tokens", None),
        ("content_filter", None, None, "refusal", None),
        ("abort", None, None, "max_tokens", None),
        ("something_new", None, None, "end_turn", None),
    ],
)
def test_the_finish_is_told_as_a_stop_reason(
    tell: Tell, finish: str, matched: JSON, calls: JSON, reason: str, sequence: JSON
) -> None:
    answer = with_message(tool_calls=calls)
    answer["choices"][0] |= {"finish_reason": finish, "stop_reason": matched}
    told = tell(answer)
    assert (told.stop_reason, told.stop_sequence) == (reason, sequence)


@pytest.mark.parametrize("model", ["policy", "plain"], ids=["captured", "uncaptured"])
def test_the_model_is_called_by_the_clients_name_for_it(
    proxy: Proxy, engine: ScriptedEngine, session: str, model: str
) -> None:
    """Claude Code drops the thinking of an answer that bears another model's name from all later histories."""
    engine.plan(completion())
    assert message_of(send(proxy, session, model=model))["model"] == model
    engine.plan(Answer(body=chunks_of(completion())) if model == "plain" else completion())
    assert streamed(send(proxy, session, model=model, stream=True)).model == model


def test_a_call_that_was_cut_is_told_as_cut(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    answer = with_message(tool_calls=[call('{"command": "l')])
    answer["choices"][0]["finish_reason"] = "length"
    engine.plan(answer, answer)
    told = [message_of(send(proxy, session)), streamed(send(proxy, session, stream=True))]
    assert [told[0]["stop_reason"], told[1].stop_reason] == ["max_tokens", "max_tokens"]


def test_an_answer_without_a_finish_is_told_as_cut_short(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    told = both(proxy, lambda: engine.plan(with_choice(finish_reason=None)), session)
    assert told.stop_reason == "max_tokens"
    assert [record["is_valid"] for record in proxy.records(session)] == [False, False]


@pytest.mark.parametrize(
    "arguments", ['{"command": "ls', "ls", "[1]", '"x"', "NaN", "1e999", '{"a": 1}}'], ids=lambda text: repr(text)
)
def test_arguments_that_are_no_object_come_as_the_engine_gave_them(
    proxy: Proxy, engine: ScriptedEngine, session: str, arguments: str
) -> None:
    engine.plan(with_message(tool_calls=[call(arguments)]))
    (_, block) = message_of(send(proxy, session))["content"]
    assert block["input"] == {"__unparsedToolInput": {"raw": arguments, "len": len(arguments)}}
    engine.plan(with_message(tool_calls=[call(arguments)]))
    deltas = [event["delta"] for event in events_of(send(proxy, session, stream=True)) if "delta" in event]
    assert "".join(delta.get("partial_json", "") for delta in deltas) == arguments
    again = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [block]}]
    send(proxy, session, messages=again)
    sent = engine.chats()[-1].body["messages"][-1]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(sent) == block["input"]


@pytest.mark.parametrize("arguments", [None, "", " "], ids=["null", "empty", "blank"])
def test_a_call_without_arguments_has_an_empty_input(
    proxy: Proxy, engine: ScriptedEngine, session: str, arguments: JSON
) -> None:
    engine.plan(with_message(content=None, tool_calls=[call(arguments)]))
    assert message_of(send(proxy, session))["content"][0]["input"] == {}


def test_arguments_nested_as_deep_as_they_parse_reach_the_client(
    proxy: Proxy, engine: ScriptedEngine, session: str
) -> None:
    for depth in (100, 900, *range(970, 1000), 5000):
        engine.plan(with_message(tool_calls=[call('{"a":' * depth + "1" + "}" * depth)]))
        assert send(proxy, session).status == 200, depth
    assert len(proxy.records(session)) == 33


def test_arguments_that_came_as_an_object_are_told_as_text(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    told = both(proxy, lambda: engine.plan(with_message(tool_calls=[call({"b": 1, "a": 2})])), session)
    assert list(told.blocks[-1]["input"]) == ["b", "a"]


def test_an_empty_object_is_streamed_as_the_engine_gave_it(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    engine.plan(with_message(tool_calls=[call("{}")]))
    deltas = [event["delta"] for event in events_of(send(proxy, session, stream=True)) if "delta" in event]
    assert {"type": "input_json_delta", "partial_json": "{}"} in deltas


def test_a_long_argument_arrives_whole(tell: Tell) -> None:
    command = 'echo "a|b;c" \\ é 🙂 ' * 60_000
    (_, block) = tell(with_message(tool_calls=[call(json.dumps({"command": command}))])).blocks
    assert block["input"] == {"command": command}


def test_a_call_without_an_id_gets_one_of_its_own(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    told = both(proxy, lambda: engine.plan(with_message(tool_calls=[call("{}", call_id=None)] * 2)), session)
    assert len({block["id"] for block in told.blocks[1:]}) == 2


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}, {"input_tokens": 5, "output_tokens": 3}),
        (
            {"prompt_tokens": 5, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}},
            {"input_tokens": 1, "cache_read_input_tokens": 4, "output_tokens": 3},
        ),
        (None, {"input_tokens": 0, "output_tokens": 0}),
        ({"prompt_tokens": "5", "completion_tokens": -1}, {"input_tokens": 0, "output_tokens": 0}),
    ],
    ids=["plain", "cached", "missing", "odd"],
)
def test_usage_is_told_under_the_names_of_the_dialect(tell: Tell, usage: JSON, expected: JSON) -> None:
    assert tell(completion(usage=usage)).usage == expected


def test_nothing_of_the_engine_leaks(proxy: Proxy, engine: ScriptedEngine, session: str) -> None:
    for stream in (False, True):
        engine.plan(with_message(reasoning="Hm.", tool_calls=[call("{}")]))
        raw = send(proxy, session, stream=stream).raw
        for name in (b"token_ids", b"logprob", b"routed_experts", b"metrics", b"kv_transfer", b"finish_reason"):
            assert name not in raw


@pytest.mark.parametrize("changes", [{"id": None}, {"model": None}, {"choices": []}], ids=lambda one: next(iter(one)))
def test_an_answer_that_lacks_something_is_still_a_message(
    proxy: Proxy, engine: ScriptedEngine, session: str, changes: JSON
) -> None:
    engine.plan(completion(**changes))
    assert message_of(send(proxy, session))["id"]
    engine.plan(completion(**changes))
    assert streamed(send(proxy, session, stream=True)).id
    assert [record["is_valid"] for record in proxy.records(session)] == [False, False]
