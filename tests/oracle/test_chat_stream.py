"""The grammar of chat streams: what a real vLLM streams holds to it, and each way to break it is told apart."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.oracle import chat_answers, chat_stream
from conformance.oracle.judgement import Judgement

RECORDED = json.loads((Path(__file__).parents[1] / "data/vllm/recorded-0.32.0.json").read_text(encoding="utf-8"))
REAL = {
    # The recorder took the white space off the end of each body; on the wire the last event is closed as any other.
    case["case"]: case["body"] + "\n\n"
    for case in RECORDED["cases"]
    if case["path"] == "/v1/chat/completions" and "event-stream" in case["headers"].get("content-type", "")
}
Rule = Callable[[str], Judgement]


def frame(value: Any) -> str:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **head: Any) -> str:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
    fixed = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 7, "model": "served"}
    return frame({**fixed, "choices": choices, **head})


def piece(index: Any, arguments: str | None = None, **call: Any) -> dict[str, Any]:
    function = {key: value for key, value in (("name", call.pop("name", None)), ("arguments", arguments)) if value}
    return {"tool_calls": [{"index": index, **call, "function": function}]}


ROLE = chunk({"role": "assistant", "content": ""})
TEXT = chunk({"content": "Straße "}) + chunk({"content": "🛠️"})
FIRST = chunk(piece(0, id="call-1", name="run", type="function"))
SECOND = chunk(piece(1, id="call-2", name="run", type="function"))
CALLS = FIRST + chunk(piece(0, '{"a": ')) + chunk(piece(0, "1}")) + SECOND + chunk(piece(1, "{}"))
STOP = chunk({}, "stop")
USAGE = chunk(None, usage={"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7})
DONE = "data: [DONE]\n\n"
WHOLE = ROLE + chunk({"reasoning": "Hm."}) + TEXT + CALLS + chunk({}, "tool_calls") + USAGE + DONE


def framed(body: str) -> Judgement:
    return chat_stream.framing("text/event-stream; charset=utf-8", body)


@pytest.mark.parametrize("case", REAL)
def test_what_a_real_vllm_streams_holds_to_the_grammar(case: str) -> None:
    body = REAL[case]
    assert chat_stream.grammar(body), chat_stream.grammar(body)
    assert framed(body)
    assert chat_stream.looks_complete(body)


def test_there_are_real_streams_of_text_reasoning_calls_and_cuts() -> None:
    assert len(REAL) >= 10
    answers = [chat_answers.reassemble(body) for body in REAL.values()]
    assert any(answer.reasoning for answer in answers)
    assert any(len(answer.tool_calls) > 1 for answer in answers)
    assert {"stop", "length", "tool_calls"} <= {answer.finish_reason for answer in answers}


def test_a_synthesised_stream_holds_to_the_grammar_and_says_what_its_deltas_say() -> None:
    assert chat_stream.grammar(WHOLE), chat_stream.grammar(WHOLE)
    answer = chat_answers.reassemble(WHOLE)
    assert (answer.content, answer.reasoning, answer.finish_reason) == ("Straße 🛠️", "Hm.", "tool_calls")
    assert [call["id"] for call in answer.tool_calls] == ["call-1", "call-2"]
    assert [call["function"]["arguments"] for call in answer.tool_calls] == ['{"a": 1}', "{}"]
    assert answer.usage == {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}


@pytest.mark.parametrize("odd", [": ping\n\n", ":\n\n", ""])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_comments_and_any_line_end_are_no_fault(odd: str, ending: str) -> None:
    body = (odd + WHOLE.replace("\n\n", f"\n\n{odd}")).replace("\n", ending)
    assert chat_stream.grammar(body), chat_stream.grammar(body)


def test_two_choices_are_judged_one_by_one() -> None:
    both = WHOLE.replace(DONE, WHOLE.replace('"index": 0, "delta"', '"index": 1, "delta"'))
    assert chat_stream.grammar(both), chat_stream.grammar(both)
    bad = chat_stream.grammar(both.replace('"index": 1, "delta": {"role": "assistant", "content": ""}', '"index": 1'))
    assert (bad.ok, bad.where) == (False, "chat stream, choice 1")


BROKEN: list[tuple[str, Rule, str]] = [
    ("no events at all", framed, ""),
    ("one body instead of events", framed, '{"id": "chatcmpl-1"}'),
    ("a last event that is not closed", framed, WHOLE.removesuffix("\n\n")),
    ("an event that is no JSON", framed, WHOLE.replace(STOP, "").replace(DONE, "data: oops\n\n" + DONE)),
    ("an event of JSON that is no object", framed, ROLE + "data: 3\n\n" + DONE),
    ("NaN, which no strict client reads", framed, ROLE + 'data: {"usage": NaN}\n\n' + DONE),
    ("an empty event", framed, ROLE + "data:\n\n" + DONE),
    ("a line that is neither data nor a comment", framed, ROLE + "event: ping\ndata: {}\n\n" + DONE),
    ("events that are not parted", framed, WHOLE.replace("\n\n", "\n")),
    ("no end", chat_stream.ends_once, WHOLE.replace(DONE, "")),
    ("two ends", chat_stream.ends_once, WHOLE + DONE),
    ("an end before the usage", chat_stream.ends_once, ROLE + STOP + DONE + USAGE),
    ("another id for the end", chat_stream.one_head, ROLE + TEXT + STOP.replace("chatcmpl-1", "chatcmpl-2") + DONE),
    ("no id anywhere", chat_stream.one_head, WHOLE.replace('"id": "chatcmpl-1", ', "")),
    ("the role in every chunk", chat_stream.role_once, ROLE + chunk({"role": "assistant", "content": "x"}) + STOP),
    ("no role", chat_stream.role_once, TEXT + STOP),
    ("no finish reason", chat_stream.one_finish, ROLE + TEXT + chunk({}) + DONE),
    ("two finish reasons", chat_stream.one_finish, ROLE + TEXT + STOP + STOP + DONE),
    ("no choice that could finish", chat_stream.one_finish, USAGE + DONE),
    ("text behind the finish reason", chat_stream.nothing_behind_finish, ROLE + STOP + TEXT + DONE),
    ("a call behind the finish reason", chat_stream.nothing_behind_finish, ROLE + STOP + CALLS + DONE),
    ("a call without a number", chat_stream.calls_numbered, ROLE + chunk(piece(None, id="a", name="run")) + STOP),
    (
        "a call that skips a number",
        chat_stream.calls_numbered,
        ROLE + FIRST + SECOND.replace('"index": 1', '"index": 2'),
    ),
    ("a call that begins at 1", chat_stream.calls_numbered, ROLE + SECOND),
    ("a call without an id", chat_stream.calls_opened_once, ROLE + chunk(piece(0, "{}", name="run")) + STOP),
    ("a call without a name", chat_stream.calls_opened_once, ROLE + chunk(piece(0, "{}", id="call-1")) + STOP),
    ("an id on every piece", chat_stream.calls_opened_once, ROLE + FIRST + chunk(piece(0, "{}", id="call-1")) + STOP),
    ("a name twice", chat_stream.calls_opened_once, ROLE + FIRST + chunk(piece(0, "{}", name="run")) + STOP),
    ("two calls of one number", chat_stream.calls_opened_once, ROLE + CALLS.replace('"index": 1', '"index": 0') + STOP),
    ("usage twice", chat_stream.usage_once, ROLE + STOP + USAGE + USAGE + DONE),
    ("usage that was asked for and is not there", chat_stream.usage_once, ROLE + STOP + DONE),
    ("usage that is no object", chat_stream.usage_once, ROLE + STOP + chunk(None, usage=7) + DONE),
    ("usage that nobody asked for", chat_stream.choice_everywhere, ROLE + STOP + USAGE + DONE),
    ("an error that is followed by an end", chat_stream.no_error, ROLE + frame({"error": {"message": "no"}}) + DONE),
]


@pytest.mark.parametrize(("rule", "body"), [each[1:] for each in BROKEN], ids=[each[0] for each in BROKEN])
def test_each_way_to_break_a_stream_is_seen_by_its_rule(rule: Rule, body: str) -> None:
    judged = rule(body)
    assert not judged
    assert judged.expected
    assert judged.seen != judged.expected


USAGE_RULES = (chat_stream.usage_once, chat_stream.choice_everywhere)
OF_THE_GRAMMAR = [each for each in BROKEN if each[1] not in USAGE_RULES]


@pytest.mark.parametrize(
    "body",
    [each[2] for each in BROKEN if each[1] not in USAGE_RULES],
    ids=[e[0] for e in BROKEN if e[1] not in USAGE_RULES],
)
def test_the_grammar_as_a_whole_refuses_every_broken_stream(body: str) -> None:
    assert not chat_stream.grammar(body)


def test_a_stream_of_another_type_is_none() -> None:
    assert not chat_stream.framing("application/json", WHOLE)
    assert not chat_stream.framing(None, WHOLE)


def test_usage_on_every_chunk_is_well_formed_but_not_told_once() -> None:
    body = REAL["stream continuous usage"]
    assert chat_stream.grammar(body)
    assert not chat_stream.usage_once(body)


@pytest.mark.parametrize(
    ("body", "complete"),
    [
        pytest.param(ROLE + TEXT, False, id="cut in the text"),
        pytest.param(ROLE + TEXT + DONE, True, id="ended without a reason"),
        pytest.param(ROLE + TEXT + STOP, True, id="finished without an end"),
        pytest.param(ROLE + TEXT + frame({"error": {"message": "no"}}) + DONE, False, id="an error, then an end"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_a_cut_stream_never_looks_complete(body: str, complete: bool) -> None:
    assert chat_stream.looks_complete(body) is complete


def test_an_error_in_the_stream_is_found_and_is_no_answer() -> None:
    assert chat_stream.error_in_band(ROLE + frame({"error": {"message": "no"}}) + DONE) == {"message": "no"}
    assert chat_stream.error_in_band(WHOLE) is None


def test_fields_of_the_engine_and_log_probs_are_seen_wherever_they_stand() -> None:
    asked = [json.loads(case["body"]) for case in RECORDED["cases"] if case["case"] == "chat token ids+logprobs"]
    assert not chat_answers.unasked(asked)
    assert not chat_answers.unasked(chat_answers.chunks(REAL["stream tool"])[1])
    assert not chat_answers.unasked([{"choices": [{"logprobs": {"content": []}}]}])
    assert not chat_answers.unasked([{"choices": [{"message": {"generation_token_ids": [1]}}]}])
    assert chat_answers.unasked(chat_answers.chunks(WHOLE)[1])
    assert chat_answers.unasked([{"prompt_token_ids": None, "choices": [{"logprobs": None, "token_ids": None}]}])


@pytest.mark.parametrize(
    "value", ["null", "[]", '{"choices": 3}', '{"choices": [{"delta": 4}]}', '{"choices": [null]}']
)
def test_no_body_is_odd_enough_to_raise(value: str) -> None:
    body = f"data: {value}\n\n"
    assert not chat_stream.grammar(body)
    assert chat_answers.reassemble(body) == chat_answers.ChatAnswer()
    assert chat_answers.buffered(json.loads(value) if value.startswith("{") else {}).content is None


def test_a_stream_and_a_body_of_the_same_generation_say_the_same() -> None:
    streamed = chat_answers.reassemble(REAL["emoji and non-ASCII content, streamed"])
    case = next(one for one in RECORDED["cases"] if one["case"] == "emoji and non-ASCII content, buffered")
    whole = chat_answers.buffered(json.loads(case["body"]))
    assert (streamed.content, streamed.finish_reason) == (whole.content, whole.finish_reason)
    assert streamed.content
    assert not streamed.content.isascii()
