"""A completion in the form of a chat answer, and a chat request in that of a completion."""

import json
from array import array

import pytest

from conformance.reference.capture.answers import read_answer
from conformance.reference.capture.config import Injection
from conformance.reference.capture.continuity.chains import Turn
from conformance.reference.capture.continuity.completions import chat_answer, completion_request, reads_otherwise
from conformance.reference.capture.errors import Refusal
from conformance.reference.capture.triples import triple_of
from conformance.reference.capture.validity import invalid_reason
from tests.reference.capture.continuity import recorded

pytestmark = pytest.mark.unit

PARSERS = Injection("completions", "hermes", "qwen3")
CASE = "completion, token prompt, logprobs 0, ids"
TOOLS = [{"type": "function", "function": {"name": "look"}}]


def test_a_recorded_completion_gives_the_triple_that_it_holds() -> None:
    told = recorded.answer(CASE)["choices"][0]
    answer = read_answer(chat_answer(recorded.body(CASE), {}, Injection("completions")))
    triple = triple_of(answer)
    assert triple.prompt_token_ids == told["prompt_token_ids"]
    assert triple.generation_token_ids == told["token_ids"]
    assert triple.generation_log_probs == told["logprobs"]["token_logprobs"]
    assert invalid_reason(answer, triple) is None
    assert answer["choices"][0]["message"]["content"] == told["text"]


def test_the_message_has_the_keys_of_a_recorded_chat_message_in_their_order() -> None:
    message = recorded.answer("chat tool nonstream")["choices"][0]["message"]
    text = recorded.generated_text("chat tool nonstream")
    body = json.dumps({"choices": [{"index": 0, "text": text, "finish_reason": "stop"}]}).encode()
    choice = read_answer(chat_answer(body, {"tools": TOOLS}, PARSERS))["choices"][0]
    assert list(choice["message"]) == list(message)
    assert list(choice["message"]["tool_calls"][0]) == list(message["tool_calls"][0])
    assert choice["finish_reason"] == "tool_calls"


def test_a_call_that_ends_by_its_limit_does_not_hide_that() -> None:
    text = '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>'
    body = json.dumps({"choices": [{"index": 0, "text": text, "finish_reason": "length"}]}).encode()
    choice = read_answer(chat_answer(body, {"tools": TOOLS}, PARSERS))["choices"][0]
    assert (choice["finish_reason"], len(choice["message"]["tool_calls"])) == ("length", 1)


@pytest.mark.parametrize(
    "log_probs",
    [None, [], {}, {"token_logprobs": None}, {"tokens": ["x"]}, {"token_logprobs": [0.0, None], "tokens": ["x"]}],
    ids=["null", "list", "empty", "null-row", "no-values", "gap"],
)
def test_log_probs_that_are_not_there_are_never_made_up(log_probs: object) -> None:
    choice = {"index": 0, "text": "x", "finish_reason": "stop", "logprobs": log_probs, "token_ids": [1, 2]}
    answer = read_answer(chat_answer(json.dumps({"choices": [choice]}).encode(), {}, PARSERS))
    found = triple_of(answer).generation_log_probs
    assert found in (None, [0.0, None])
    assert invalid_reason({"id": "x", "model": "m", **answer}, triple_of(answer)) is not None


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"choices": [{}]}', b'{"choices": [{"text": 7}]}', b'{"choices": ['])
def test_what_is_no_completion_is_refused(body: bytes) -> None:
    with pytest.raises(Refusal) as refused:
        chat_answer(body, {}, PARSERS)
    assert refused.value.status == 502


@pytest.mark.parametrize("off", [False, None, 0, ""])
def test_where_thinking_is_off_all_is_text_as_the_engine_reads_it(off: object) -> None:
    body = json.dumps({"choices": [{"index": 0, "text": "I think", "finish_reason": "stop"}]}).encode()
    choice = read_answer(chat_answer(body, {"chat_template_kwargs": {"enable_thinking": off}}, PARSERS))["choices"][0]
    assert (choice["message"]["content"], choice["message"]["reasoning"]) == ("I think", None)


def test_a_request_keeps_all_that_steers_the_sampling_and_loses_what_became_the_prompt() -> None:
    body = {
        "model": "served",
        "messages": [{"role": "user", "content": "hi"}],
        "tools": TOOLS,
        "temperature": 0.5,
        "vendor_key": {"b": 1, "a": 2},
        "stop": ["x"],
        "max_completion_tokens": 9,
        "logprobs": True,
        "top_logprobs": 2,
        "return_token_ids": True,
        "stream": False,
        "chat_template_kwargs": {"enable_thinking": True},
    }
    assert json.loads(completion_request(body, PARSERS, [1, 2], 5)) == {
        "model": "served",
        "temperature": 0.5,
        "vendor_key": {"b": 1, "a": 2},
        "stop": ["x"],
        "return_token_ids": True,
        "skip_special_tokens": False,
        "prompt": [1, 2],
        "max_tokens": 5,
        "logprobs": 2,
    }


@pytest.mark.parametrize("told", [True, None, False])
def test_special_tokens_stay_in_the_text_as_on_a_chat_call_whatever_the_client_says(told: bool | None) -> None:
    body = {"tools": TOOLS, "skip_special_tokens": told}
    assert json.loads(completion_request(body, PARSERS, [1], 5))["skip_special_tokens"] is False


@pytest.mark.parametrize("key", ["suffix", "prompt_embeds", "best_of", "prompt"])
def test_what_only_a_completion_would_mean_is_not_sent_to_one(key: str) -> None:
    assert json.loads(completion_request({key: "x"}, PARSERS, [1], 5)).get(key) in (None, [1])


def turn(content: str, reasoning: str | None, parent: Turn | None = None) -> Turn:
    messages = [{"role": "assistant", "content": content}]
    return Turn(parent, messages, (b"",), array("q", [1]), 1, True, "r", 1, 1, "u", reasoning)


@pytest.mark.parametrize(
    ("injection", "body", "before", "otherwise"),
    [
        (PARSERS, {"tools": TOOLS}, turn("a", "b"), False),
        (PARSERS, {"tools": TOOLS}, turn("a", None), True),
        (PARSERS, {}, turn("", None), True),
        (PARSERS, {"chat_template_kwargs": {"enable_thinking": None}}, turn("a", None), False),
        (PARSERS, {"tools": TOOLS}, turn("a", None, turn("a", "\n\n")), False),
        (PARSERS, {}, turn("<think>b</think>a", None), True),
        (PARSERS, {"chat_template_kwargs": {"enable_thinking": False}}, turn("</think>a", None), False),
        (Injection("completions", None, "qwen3"), {"tools": TOOLS}, turn("a", "b"), True),
        (Injection("completions", None, "qwen3"), {"tools": TOOLS, "tool_choice": "none"}, turn("a", "b"), False),
        (Injection("completions", None, "qwen3"), {"tools": []}, turn("a", "b"), False),
        (Injection("completions", "hermes"), {}, turn("a", "b"), True),
        (Injection("completions", "hermes"), {}, turn("a", None, turn("a", "b")), True),
        (Injection("completions", "hermes"), {}, turn("<think>b</think>a", None), False),
    ],
)
def test_a_chat_answer_shows_whether_the_engine_reads_with_the_parsers_of_the_route(
    injection: Injection, body: dict[str, object], before: Turn, otherwise: bool
) -> None:
    assert reads_otherwise(body, injection, before) is otherwise


def test_alternatives_that_a_client_asked_for_are_those_of_the_completion() -> None:
    rows = {"tokens": ["Y"], "token_logprobs": [-0.5], "top_logprobs": [{"Y": -0.5, "N": -1.5, "M": -2.5}]}
    choice = {"index": 0, "text": "Y", "finish_reason": "stop", "logprobs": rows}
    answer = read_answer(chat_answer(json.dumps({"choices": [choice]}).encode(), {"top_logprobs": 2}, PARSERS))
    top = answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
    assert [(one["token"], one["logprob"], one["bytes"]) for one in top] == [("Y", -0.5, [89]), ("N", -1.5, [78])]
