"""Generations are read as the engine reads them: as recorded, and as the fake's own parsers do, which are others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.reference.capture.continuity.parsers import Said, parsed
from fakes.vllm.parsers import extract_calls, split_reasoning
from tests.reference.capture.continuity import recorded

pytestmark = pytest.mark.unit

CASES = (
    "chat tool nonstream",
    "capture params, tool call, buffered",
    "capture params, reasoning and tool call, buffered",
)

PIECES = st.sampled_from(
    [
        *("<think>", "</think>", "<tool_call>", "</tool_call>", "\n", " ", "text", "größer"),
        *(
            '{"name": "look", "arguments": {"path": "ü", "depth": 2.0}}',
            '{"name": "look"}',
            '{"name": 7, "arguments": {}}',
        ),
        *('{"name":"note","arguments":"x"}', "{", "[]", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|im"),
    ]
)


@pytest.mark.parametrize("case", CASES)
def test_a_recorded_generation_is_read_as_the_engine_read_it(case: str) -> None:
    message = recorded.answer(case)["choices"][0]["message"]
    said = parsed(recorded.generated_text(case), reasons=message["reasoning"] is not None, calls=True)
    calls = [(call["function"]["name"], call["function"]["arguments"]) for call in message["tool_calls"]]
    assert said == Said(message["reasoning"], message["content"], calls)


@given(st.lists(PIECES, max_size=9).map("".join), st.booleans(), st.booleans())
def test_any_generation_is_read_as_another_reader_reads_it(text: str, reasons: bool, calls: bool) -> None:
    reasoning, content = split_reasoning(text, thinking=reasons)
    found, rest = extract_calls(content) if calls and content is not None else ([], content)
    said = parsed(text, reasons=reasons, calls=calls)
    assert said == Said(reasoning, rest, [(call.name, call.arguments) for call in found])


def test_a_call_that_was_cut_stays_text() -> None:
    text = 'I look.\n<tool_call>\n{"name": "look", "arguments": {"pa'
    assert parsed(text, reasons=False, calls=True) == Said(None, text)


def test_thinking_that_was_cut_is_all_there_is() -> None:
    assert parsed("<think>\nhmm", reasons=True, calls=True) == Said("\nhmm", None)


@pytest.mark.parametrize("special", ["<|im_start|>", "<|endoftext|>", "<|vision_pad|>"])
def test_special_tokens_leave_thought_and_text_where_thoughts_are_read(special: str) -> None:
    text = f'a{special}b</think>c{special}d<tool_call>{special}{{"name": "look", "arguments": {{}}}}</tool_call>'
    assert parsed(text, reasons=True, calls=True) == Said("ab", "cd", [("look", "{}")])
    assert parsed(text, reasons=False, calls=True) == Said(None, text)


def test_without_tools_markup_is_text() -> None:
    text = '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>'
    assert parsed(text, reasons=False, calls=False) == Said(None, text)
