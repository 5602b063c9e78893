"""A generation stops where the engine would stop it, and says why."""

from typing import Any

import pytest
import tiktoken

from fakes.vllm.tags import format_tag
from fakes.vllm.tenants import TenantConfig
from tests.fakes.vllm.engine.conftest import Converse
from tests.fakes.vllm.engine.making import RUN, Conversation

SCRIPT = "about: x\nscopes: {main: {turns: [{text: I look first. Then I write the patch.}]}}"


@pytest.fixture
def talk(converse: Converse) -> Conversation:
    return converse(SCRIPT)


def test_its_own_end_is_a_stop_without_a_reason(talk: Conversation) -> None:
    (sample,) = talk.ask().samples
    assert (sample.finish_reason, sample.stop_reason) == ("stop", None)
    assert talk.engine.encoding.decode(sample.token_ids).endswith("patch.<|im_end|>")


def test_a_length_stop_keeps_exactly_so_many_ids_of_the_same_sample(talk: Conversation) -> None:
    whole, cut = talk.ask().samples[0], talk.ask(max_tokens=18).samples[0]
    assert (cut.token_ids, cut.log_probs) == (whole.token_ids[:18], whole.log_probs[:18])
    assert (cut.finish_reason, cut.stop_reason) == ("length", None)


def test_the_end_token_wins_when_the_length_is_reached_with_it(talk: Conversation) -> None:
    whole = talk.ask().samples[0]
    assert talk.ask(max_tokens=len(whole.token_ids)).samples[0].finish_reason == "stop"


def test_without_max_tokens_the_models_length_is_the_limit(converse: Converse) -> None:
    prompt = len(converse(SCRIPT, tools=None).ask().prompt_token_ids)
    talk = converse(SCRIPT, config=TenantConfig(max_model_len=prompt + 5), tools=None)
    for asked in (None, 100):
        (sample,) = talk.ask(max_tokens=asked).samples
        assert (len(sample.token_ids), sample.finish_reason) == (5, "length")


def test_a_stop_string_keeps_the_tokens_up_to_the_one_that_completes_it(talk: Conversation) -> None:
    (sample,) = talk.ask(stop=("nowhere", "st. T")).samples
    assert (sample.finish_reason, sample.stop_reason) == ("stop", "st. T")
    assert talk.engine.encoding.decode(sample.token_ids) == f"{format_tag(RUN, 0, 1)} I look first. Then"


def test_the_stop_string_that_is_complete_first_wins(talk: Conversation) -> None:
    assert talk.ask(stop=("patch", "look", "look first")).samples[0].stop_reason == "look"


def test_a_stop_string_never_matches_the_end_token(talk: Conversation) -> None:
    assert talk.ask(stop=("<|im_end|>", "")).samples[0].stop_reason is None


def test_a_stop_string_across_several_tokens_of_one_character_is_found(converse: Converse) -> None:
    talk = converse("about: x\nscopes: {main: {turns: [{text: It is 🛰 there.}]}}")
    (sample,) = talk.ask(stop=("🛰",)).samples
    assert talk.engine.encoding.decode(sample.token_ids).endswith("It is 🛰")


def test_a_stop_token_is_kept_and_named(talk: Conversation, encoding: tiktoken.Encoding) -> None:
    look = encoding.encode_single_token(" look")
    (sample,) = talk.ask(stop_token_ids=(look,)).samples
    assert (sample.token_ids[-1], sample.finish_reason, sample.stop_reason) == (look, "stop", look)


def test_the_end_token_as_a_stop_token_stays_the_silent_end(talk: Conversation, encoding: tiktoken.Encoding) -> None:
    end = encoding.encode_single_token("<|im_end|>")
    assert talk.ask(stop_token_ids=(end,)).samples[0].stop_reason is None


def test_the_second_end_token_is_named_as_the_reason(converse: Converse, encoding: tiktoken.Encoding) -> None:
    talk = converse("about: x\nsampling: drifting\nscopes: {main: {turns: [{text: I look., finish: endoftext}]}}")
    (sample,) = talk.ask().samples
    end = encoding.encode_single_token("<|endoftext|>")
    assert (sample.token_ids[-1], sample.finish_reason, sample.stop_reason) == (end, "stop", end)


def test_a_turn_that_finishes_by_length_has_no_end_token(converse: Converse) -> None:
    talk = converse("about: x\nsampling: drifting\nscopes: {main: {turns: [{text: I look at, finish: length}]}}")
    (sample,) = talk.ask().samples
    assert (talk.text(talk.ask()), sample.finish_reason) == (f"{format_tag(RUN, 0, 1)} I look at", "length")


CALLS = """
about: x
sampling: drifting
scopes: {main: {turns: [{calls: [{name: a, arguments: {x: "1 {tag}"}}, {name: b, arguments: {y: 2}}]}]}}
"""
TOOLS = [{"type": "function", "function": {"name": name}} for name in ("a", "b", "c")]


def _call(name: str, arguments: str) -> str:
    return f'<tool_call>{{"name": "{name}", "arguments": {arguments}}}</tool_call>'


TAG = format_tag(RUN, 0, 1)


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        ("required", _call("a", f'{{"x": "1 {TAG}"}}') + _call("b", '{"y": 2}')),
        ({"type": "function", "function": {"name": "a"}}, _call("a", f'{{"x": "1 {TAG}"}}')),
        ({"type": "function", "function": {"name": "c"}}, _call("c", '{"text": ""}')),
    ],
    ids=["required", "named", "named, and the playbook has no such call"],
)
def test_a_forced_choice_is_generated_as_the_markup_that_was_recorded(
    choice: Any, text: str, converse: Converse
) -> None:
    talk = converse(CALLS, tools=TOOLS)
    assert talk.text(talk.ask(tool_choice=choice)) == text


def test_several_choices_are_the_same_text_in_other_splits(talk: Conversation) -> None:
    drawn = talk.ask(n=3)
    assert len({tuple(sample.token_ids) for sample in drawn.samples}) == 3
    assert len({talk.engine.encoding.decode(sample.token_ids) for sample in drawn.samples}) == 1
    assert drawn.samples[0] == talk.ask().samples[0]


def test_candidates_are_given_when_asked_for(talk: Conversation) -> None:
    (sample,) = talk.ask(alternatives=2).samples
    assert sample.alternatives is not None
    assert [len(row) for row in sample.alternatives] == [2] * len(sample.token_ids)
    assert talk.ask().samples[0].alternatives is None
