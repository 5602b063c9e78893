"""The template renders what the real server rendered, and encodes it at hard borders."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fakes.vllm import tokenizer
from fakes.vllm.template import Segmenter, Switches, joined_ids, render

RECORDINGS = Path(__file__).parents[3] / "data" / "vllm"
# Here the ids come from the request (token-in), not from the template.
TOKEN_IN = {"kv reuse ids"}


def _rendered(request: dict[str, Any]) -> list[str]:
    return render(
        request["messages"],
        tools=request.get("tools"),
        enable_thinking=request.get("chat_template_kwargs", {}).get("enable_thinking", True),
        add_generation_prompt=request.get("add_generation_prompt", True),
        continue_final_message=request.get("continue_final_message", False),
    )


def _chat_cases(pattern: str) -> list[Any]:
    cases = json.loads((RECORDINGS / "recorded-0.32.0.json").read_text(encoding="utf-8"))["cases"]
    found = []
    for case in cases:
        seen = re.search(pattern, case.get("body") or "")
        is_chat = case["status"] == 200 and "messages" in case.get("request", {})
        if is_chat and seen is not None and case["case"] not in TOKEN_IN:
            found.append(pytest.param(case["request"], json.loads(seen[1]), id=case["case"]))
    return found


@pytest.fixture(scope="module")
def recorded() -> Segmenter:
    return Segmenter(tokenizer.from_tokenizer_json(RECORDINGS / "tokenizer.json"))


@pytest.mark.parametrize(("request_", "ids"), _chat_cases(r'"(?:prompt_token_ids|tokens)":(\[[\d,]+\])'))
def test_prompt_ids_are_those_that_were_recorded(request_: dict[str, Any], ids: list[int], recorded: Segmenter) -> None:
    assert joined_ids(map(recorded.block, _rendered(request_))) == ids


@pytest.mark.parametrize(("request_", "count"), _chat_cases(r'"(?:prompt_tokens|input_tokens|count)":(\d+)'))
def test_prompts_are_as_long_as_recorded(request_: dict[str, Any], count: int, recorded: Segmenter) -> None:
    assert len(joined_ids(map(recorded.block, _rendered(request_)))) == count


@pytest.mark.parametrize(("request_", "text"), _chat_cases(r'"prompt_text":("(?:[^"\\]|\\.)*")'))
def test_prompt_text_is_what_was_recorded(request_: dict[str, Any], text: str) -> None:
    assert "".join(_rendered(request_)) == text


def test_a_text_prompt_is_cut_at_the_borders_of_a_rendered_one(recorded: Segmenter) -> None:
    blocks = _rendered({"messages": [{"role": "user", "content": " \n two"}, {"role": "assistant", "content": "\n x"}]})
    assert recorded.encode("".join(blocks)) == joined_ids(map(recorded.block, blocks))
    assert recorded.encode("hello") == [71, 394, 319]


HISTORY: list[dict[str, Any]] = [
    {"role": "user", "content": "a"},
    {"role": "assistant", "content": "b", "reasoning": "Hm."},
    {"role": "user", "content": "c"},
]
COMPACT: list[dict[str, Any]] = [
    {"role": "user", "content": "a"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": '{"a":1.50,"ü":"é"}'}}],
    },
]


@pytest.mark.parametrize(("strips", "body"), [(True, "b"), (False, "<think>\nHm.\n</think>\n\nb")])
def test_the_switch_for_history_reasoning_strips_it_or_keeps_it(strips: bool, body: str) -> None:
    blocks = render(HISTORY, switches=Switches(strip_history_reasoning=strips))
    assert blocks[1] == f"<|im_start|>assistant\n{body}<|im_end|>\n"


@pytest.mark.parametrize(("redumps", "arguments"), [(True, '{"a": 1.5, "ü": "é"}'), (False, '{"a":1.50,"ü":"é"}')])
def test_the_switch_for_tool_calls_dumps_them_again_or_leaves_them(redumps: bool, arguments: str) -> None:
    blocks = render(COMPACT, switches=Switches(redump_tool_calls=redumps))
    assert f'{{"name": "f", "arguments": {arguments}}}\n</tool_call>' in blocks[1]


def test_the_switch_for_the_empty_think_block_ends_the_prompt_with_it() -> None:
    assert render(HISTORY, switches=Switches(prefill_empty_think=True))[-1].endswith("<think>\n\n</think>\n\n")


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"role": 3, "content": 5},
        {"role": "user", "content": [1, {"type": "image_url"}, None, "x"]},
        {"role": "assistant", "tool_calls": [None, {"function": 3}, {"function": {"arguments": "{"}}]},
    ],
)
def test_an_odd_message_is_rendered_without_a_traceback(message: dict[str, Any]) -> None:
    assert "".join(render([message]))


def test_a_million_blanks_are_encoded_though_the_split_pattern_gives_up_on_them() -> None:
    segmenter = Segmenter(tokenizer.load())
    text = "<think>" + " " * 1_500_000 + "x</think>"
    with pytest.raises(ValueError, match="Regex error"):
        segmenter.encoding.encode(text, allowed_special="all")
    assert segmenter.encoding.decode(segmenter.encode(text)) == text


@pytest.mark.parametrize("body", ["\n\nx", "x"])
def test_the_border_after_the_header_holds_though_the_tokenizer_would_join_across_it(body: str) -> None:
    segmenter = Segmenter(tokenizer.load())
    header = segmenter.block("<|im_start|>assistant\n").ids
    assert segmenter.block(f"<|im_start|>assistant\n{body}").ids == header + segmenter.body(body)
    joined = segmenter.encoding.encode(f"<|im_start|>assistant\n{body}", allowed_special="all")
    assert (tuple(joined) == header + segmenter.body(body)) is (body == "x")
