"""Refusals that the recording does not hold, and what the ledger says of them."""

import json
from typing import Any

import pytest

from tests.fakes.vllm.wire.conftest import Play
from tests.fakes.vllm.wire.serving_here import Served

TOOLS = [{"type": "function", "function": {"name": "f"}}]
NO_IDS = "`kv_transfer_params['prompt_token_ids']` must be a non-empty list of non-negative integers."
USAGE = 'Correct usage: `{"type": "function", "function": {"name": "my_function"}}`'


@pytest.mark.parametrize(
    ("asked", "message", "param"),
    [
        (
            {"temperature": -1.0},
            "temperature must be non-negative, got -1.0. (parameter=temperature, value=-1.0)",
            "temperature",
        ),
        (
            {"top_logprobs": 50},
            "Requested sample logprobs of 50, which is greater than max allowed: 20 (parameter=logprobs, value=50)",
            "logprobs",
        ),
        (
            {"tool_choice": "auto"},
            "When using `tool_choice`, `tools` must be set. (parameter=tool_choice)",
            "tool_choice",
        ),
        (
            {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "g"}}},
            "The tool specified in `tool_choice` does not match any of the specified `tools` (parameter=tool_choice)",
            "tool_choice",
        ),
        (
            {"tools": TOOLS, "tool_choice": {"type": "function", "function": {}}},
            f"Expected field `name` in `function` in `tool_choice`! {USAGE} (parameter=tool_choice.function.name)",
            "tool_choice.function.name",
        ),
        (
            {"stream": True, "prompt_logprobs": 1},
            "`prompt_logprobs` are not available when `stream=True`. (parameter=prompt_logprobs)",
            "prompt_logprobs",
        ),
        (
            {"continue_final_message": True, "add_generation_prompt": True},
            "Cannot set both `continue_final_message` and `add_generation_prompt` to True.",
            None,
        ),
        (
            {"kv_transfer_params": {"prompt_token_ids": [True]}},
            f"{NO_IDS} (parameter=kv_transfer_params.prompt_token_ids)",
            "kv_transfer_params.prompt_token_ids",
        ),
    ],
)
def test_a_bad_value_is_refused_in_vllms_words(
    play: Play, asked: dict[str, Any], message: str, param: str | None
) -> None:
    script = play({"text": "{tag} x"})
    reply = script.ask(**asked)
    assert reply.status == 400
    assert reply.json()["error"] == {"message": message, "type": "BadRequestError", "param": param, "code": 400}


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff{}", b'{"a":' * 2000, b"9" * 5000],
    ids=["empty", "open", "no-utf8", "deep", "more digits than Python reads"],
)
def test_a_body_that_is_no_json_is_a_bad_request(fake: Served, body: bytes) -> None:
    reply = fake.call("POST", "/v1/chat/completions", body)
    assert (reply.status, reply.json()["error"]["type"]) == (400, "Bad Request")


@pytest.mark.parametrize("body", [[], "x", 1, None, {"messages": [{}]}, {"messages": ["x"]}, {"messages": 1}])
def test_a_body_of_the_wrong_shape_is_a_validation_error(fake: Served, body: object) -> None:
    raw = b"null" if body is None else body
    reply = fake.call("POST", "/v1/chat/completions", raw)
    assert reply.status == 400
    assert reply.json()["error"]["message"].startswith("1 validation error:\n  {'type': ")


@pytest.mark.parametrize("tools", [5, "x", [5], [{"function": "f"}], [{"function": None}]], ids=json.dumps)
def test_odd_tools_beside_a_named_choice_are_the_clients_mistake(fake: Served, tools: object) -> None:
    named = {"type": "function", "function": {"name": "f"}}
    asked = {"messages": [{"role": "user", "content": "x"}], "tools": tools, "tool_choice": named}
    reply = fake.call("POST", "/v1/chat/completions", asked)
    assert (reply.status, reply.json()["error"]["code"]) == (400, 400)


@pytest.mark.parametrize("calls", [5, [5], [{"function": "f"}], [{"function": {"arguments": 5}}]], ids=json.dumps)
def test_odd_calls_in_the_history_break_no_old_version(play: Play, calls: object) -> None:
    script = play({"text": "{tag} x"}, tenant={"profile": "0.28"})
    history = [*script.request()["messages"], {"role": "assistant", "content": "", "tool_calls": calls}]
    assert script.ask(messages=history).status == 200


def test_no_tool_parser_refuses_tools_chosen_by_the_model(play: Play) -> None:
    reply = play({"text": "{tag} x"}, tenant={"tool_parser": None}).ask(tools=TOOLS)
    assert reply.json()["error"]["message"] == (
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
    )


def test_unknown_routes_and_methods_answer_outside_of_the_envelope_and_are_entered(play: Play) -> None:
    script = play({"text": "{tag} x"})
    prefix = f"/t/{script.tenant}"
    assert script.served.call("POST", f"{prefix}/v1/nothing", {"a": 1}).text == '{"detail":"Not Found"}'
    reply = script.served.call("GET", f"{prefix}/v1/chat/completions")
    assert (reply.status, reply.text) == (405, '{"detail":"Method Not Allowed"}')
    rows = script.served.rows(f"tenant={script.tenant}")
    assert [(row["endpoint"], row["state"], row["status"]) for row in rows] == [
        ("unknown", "refused", 404),
        ("chat", "refused", 405),
    ]
    assert rows[0]["request"]["body_text"] == '{"a": 1}'


def test_a_refused_request_has_a_row_with_its_error(play: Play) -> None:
    script = play({"text": "{tag} x"})
    script.ask(max_tokens=0)
    row = script.served.rows(f"tenant={script.tenant}")[-1]
    assert (row["state"], row["status"]) == ("refused", 400)
    assert row["error"] == "max_tokens must be at least 1, got 0. (parameter=max_tokens, value=0)"


def test_ids_of_a_prompt_too_long_are_counted_exactly(play: Play) -> None:
    script = play({"text": "{tag} x"}, tenant={"max_model_len": 1024})
    body = {"prompt": [5] * 3200, "max_tokens": 1}
    reply = script.served.call("POST", f"/t/{script.tenant}/v1/completions", body)
    assert reply.json()["error"]["message"] == (
        "This model's maximum context length is 1024 tokens. However, your prompt contains 3200 input tokens, which "
        "exceeds this limit even without any output tokens. Please reduce the length of the input prompt. "
        "(parameter=input_tokens, value=3200)"
    )


def test_detokenize_gives_back_what_tokenize_took(fake: Served) -> None:
    text = "<|im_start|>user\nZürich 🙂<|im_end|>\n"
    tokens = fake.call("POST", "/tokenize", {"prompt": text}).json()["tokens"]
    assert fake.call("POST", "/detokenize", {"tokens": tokens}).json() == {"prompt": text}


def test_several_prompts_come_back_in_order(play: Play) -> None:
    script = play({"text": "{tag} x"})
    prompts = [script.request()["messages"][0]["content"], "no tag"]
    body = {"prompt": prompts, "n": 2, "max_tokens": 50}
    choices = script.served.call("POST", f"/t/{script.tenant}/v1/completions", body).json()["choices"]
    assert [choice["index"] for choice in choices] == [0, 1, 2, 3]
    assert ["x" in choice["text"] for choice in choices] == [True, True, False, False]
