"""The parsers: what a generation reads as, buffered and in any chunking of a stream."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.vllm import tokenizer
from fakes.vllm.answers import AnswerOptions, Identity, Json
from fakes.vllm.chat_answer import chat_body
from fakes.vllm.chat_stream import chat_chunks
from fakes.vllm.detokenize import detokenizer
from fakes.vllm.forms import Material
from fakes.vllm.parsers import ParsedCall, extract_calls, split_reasoning
from fakes.vllm.profiles import profile
from fakes.vllm.sample import FinishReason, Sample

WORDS = detokenizer(tokenizer.load())
END = WORDS.encoding.encode_single_token("<|im_end|>")
NAMES = Identity("chatcmpl-0", 0, "tiny", "seed")
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": "Zürich 🙂"}}\n</tool_call>'


def sample(text: str, *, chunking: tuple[int, ...] = (), finish: FinishReason = "stop", **more: Any) -> Sample:
    ids = WORDS.encoding.encode(text, allowed_special="all")
    if finish == "stop" and not isinstance(more.get("stop_reason"), str):
        ids.append(END)
    return Sample(ids, [-0.5] * len(ids), finish, chunking=chunking, **more)


def material(options: AnswerOptions, *samples: Sample, version: str = "0.32") -> Material:
    return Material(NAMES, [[1]], [list(samples)], options, WORDS, profile(version))


def buffered(one: Sample, options: AnswerOptions, version: str = "0.32") -> Json:
    body = chat_body(material(options, one, version=version))
    choice: Json = body["choices"][0]
    return choice


def streamed(one: Sample, options: AnswerOptions, version: str = "0.32") -> Json:
    """The choice a client puts together from the chunks."""
    joined: Json = {"content": "", "reasoning": "", "tool_calls": [], "token_ids": [], "logprobs": []}
    for chunk in chat_chunks(material(options, one, version=version)):
        for choice in chunk.body["choices"]:
            delta = choice["delta"]
            joined["content"] += delta.get("content") or ""
            joined["reasoning"] += delta.get("reasoning") or ""
            for call in delta.get("tool_calls", ()):
                if "id" in call:
                    joined["tool_calls"].append({"id": call["id"], "name": call["function"]["name"], "arguments": ""})
                joined["tool_calls"][call["index"]]["arguments"] += call["function"].get("arguments") or ""
            joined["token_ids"] += choice.get("token_ids") or []
            joined["logprobs"] += (choice["logprobs"] or {"content": []})["content"]
            joined["finish_reason"] = choice["finish_reason"]
    return joined


ALL = AnswerOptions(tools="auto", return_token_ids=True, logprobs=True, skip_hidden=False)

HALF_A_TAG = "<think>\n</think>\n\na < b, </ and <tool"

TEXTS = [
    "Plain text.",
    "<think>\nhm\n</think>\n\nText after.",
    f"<think>\nhm\n</think>\n\n{CALL}",
    f"<think>\n\n</think>\n\nSome text.\n{CALL}\n{CALL}",
    f"<think>\nnever closed {CALL}",
    "<think>\nnothing else",
    HALF_A_TAG,
    '<think>\n\n</think>\n\n<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>',
]


@pytest.mark.parametrize("text", TEXTS)
@settings(max_examples=25, deadline=None)
@given(chunking=st.lists(st.integers(min_value=1, max_value=9), max_size=40))
def test_a_stream_reads_the_same_in_any_chunking(text: str, chunking: list[int]) -> None:
    one_by_one = streamed(sample(text), ALL)
    chunked = streamed(sample(text, chunking=tuple(chunking)), ALL)
    assert chunked == one_by_one


def test_a_stream_that_ends_in_half_a_tag_never_shows_it_as_in_vllm() -> None:
    one = sample(HALF_A_TAG)
    assert buffered(one, ALL)["message"]["content"] == "\n\na < b, </ and <tool"
    assert streamed(one, ALL)["content"] == "\n\na < b, </ and "


@pytest.mark.parametrize("text", [text for text in TEXTS if text != HALF_A_TAG])
def test_a_stream_reads_as_the_buffered_answer_does(text: str) -> None:
    one = sample(text)
    whole, parts = buffered(one, ALL), streamed(one, ALL)
    message = whole["message"]
    assert parts["content"].strip() == (message["content"] or "").strip()
    assert parts["reasoning"] == (message["reasoning"] or "")
    assert parts["finish_reason"] == whole["finish_reason"]
    assert parts["token_ids"] == whole["token_ids"]
    assert parts["logprobs"] == whole["logprobs"]["content"]
    calls = message.get("tool_calls", [])
    assert [call["id"] for call in parts["tool_calls"]] == [call["id"] for call in calls]
    for streamed_call, call in zip(parts["tool_calls"], calls, strict=True):
        assert json.loads(streamed_call["arguments"]) == json.loads(call["function"]["arguments"])


def test_buffered_arguments_are_dumped_again_and_streamed_ones_are_raw() -> None:
    one = sample('<think>\n\n</think>\n\n<tool_call>\n{"name":"f","arguments":{"a":1,"b":[2]}}\n</tool_call>')
    assert buffered(one, ALL)["message"]["tool_calls"][0]["function"]["arguments"] == '{"a": 1, "b": [2]}'
    assert streamed(one, ALL)["tool_calls"][0]["arguments"] == '{"a":1,"b":[2]}'


@pytest.mark.parametrize(
    ("content", "calls", "text"),
    [
        ("no call", [], "no call"),
        (f"before {CALL} after", [ParsedCall("f", '{"a": "Zürich 🙂"}')], "before "),
        (f"  \n{CALL}", [ParsedCall("f", '{"a": "Zürich 🙂"}')], None),
        ('<tool_call>{"name": "f", "arguments": {}', [], '<tool_call>{"name": "f", "arguments": {}'),
        ('<tool_call>{"name": "f", "arguments": {}}', [ParsedCall("f", "{}")], None),
        (f"{CALL}<tool_call>[1]</tool_call>", [], f"{CALL}<tool_call>[1]</tool_call>"),
        ('<tool_call>{"name": "f"}</tool_call>', [], '<tool_call>{"name": "f"}</tool_call>'),
        ('<tool_call>{"name": "f", "arguments": "raw"}</tool_call>', [ParsedCall("f", '"raw"')], None),
    ],
)
def test_hermes_calls_are_read_all_or_none(content: str, calls: list[ParsedCall], text: str | None) -> None:
    assert extract_calls(content) == (calls, text)


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("<think>\na\n</think>\n\nb", ("\na\n", "\n\nb")),
        ("a</think>b", ("a", "b")),
        ("a", ("a", None)),
        ("", (None, None)),
        ("<think>a</think>b</think>c", ("a", "bc")),
        ("a<tool_call>b", ("a", "<tool_call>b")),
        ("a<|im_start|>b</think>c<|endoftext|>d", ("ab", "cd")),
        ("<|im_end|>", (None, None)),
    ],
)
def test_reasoning_ends_at_its_tag_or_at_a_call(text: str, split: tuple[str | None, str | None]) -> None:
    assert split_reasoning(text, thinking=True) == split


def test_without_thinking_all_is_content() -> None:
    assert split_reasoning("<think>a</think>", thinking=False) == (None, "<think>a</think>")


def test_stop_strings_hold_text_back_by_one_less_than_the_longest() -> None:
    options = AnswerOptions(return_token_ids=True, stop=("zz", "STOP"), reasoning_parser=False, tool_parser=False)
    one = sample("one two STOP", finish="stop", stop_reason="STOP")
    shown = [c.body["choices"][0]["delta"]["content"] for c in chat_chunks(material(options, one))]
    assert "".join(shown) == "one two "
    assert buffered(one, options)["message"]["content"] == "one two "
    assert len(shown) - 1 == len(one.token_ids)


def test_a_stop_string_may_stay_in_the_text() -> None:
    options = AnswerOptions(stop=("STOP",), include_stop=True, reasoning_parser=False, tool_parser=False)
    one = sample("one STOP", finish="stop", stop_reason="STOP")
    assert buffered(one, options)["message"]["content"] == "one STOP"
    assert streamed(one, options)["content"] == "one STOP"


def test_a_scripted_message_replaces_what_the_parsers_would_say() -> None:
    message = {
        "content": "two",
        "reasoning": "one",
        "tool_calls": [{"function": {"name": "f", "arguments": "not json"}}],
        "extra": {"kept": True},
    }
    one = sample("whatever it was", message=message)
    whole, parts = buffered(one, ALL)["message"], streamed(one, ALL)
    assert (whole["content"], whole["reasoning"], whole["extra"]) == ("two", "one", {"kept": True})
    assert whole["tool_calls"][0]["function"] == {"name": "f", "arguments": "not json"}
    assert (parts["content"], parts["reasoning"]) == ("two", "one")
    assert parts["tool_calls"] == [{"id": whole["tool_calls"][0]["id"], "name": "f", "arguments": "not json"}]


def test_parallel_calls_off_shows_the_first_call_and_all_ids() -> None:
    options = AnswerOptions(tools="auto", return_token_ids=True, parallel_calls=False)
    one = sample(f"<think>\n\n</think>\n\n{CALL}\n{CALL}")
    assert len(buffered(one, options)["message"]["tool_calls"]) == 1
    parts = streamed(one, options)
    assert len(parts["tool_calls"]) == 1
    assert parts["token_ids"] == one.token_ids


def test_several_choices_come_interleaved_after_all_their_roles() -> None:
    options = AnswerOptions(return_token_ids=True, include_usage=True, reasoning_parser=False, tool_parser=False)
    samples = [sample("one two three"), sample("four")]
    chunks = [c.body for c in chat_chunks(material(options, *samples))]
    indexes = [choice["index"] for chunk in chunks for choice in chunk["choices"]]
    assert indexes[:4] == [0, 1, 0, 1]
    assert chunks[-1]["usage"]["completion_tokens"] == sum(len(one.token_ids) for one in samples)


def test_half_a_character_at_the_end_is_not_text() -> None:
    emoji = WORDS.encoding.encode("𓂀")
    one = Sample(emoji[:-1], [-0.5] * (len(emoji) - 1), "length")
    options = AnswerOptions(return_token_ids=True, reasoning_parser=False, tool_parser=False)
    assert buffered(one, options)["message"]["content"] == ""
    assert streamed(one, options)["content"] == ""
