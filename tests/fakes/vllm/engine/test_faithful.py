"""Faithful turns re-render to exactly prompt and generation; drifting ones never come back from a tokenizer."""

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fakes.vllm import tokenizer
from fakes.vllm.engine import PlaybookEngine
from fakes.vllm.playbook import Content
from fakes.vllm.promises import unfaithful
from fakes.vllm.reading import read_playbook
from fakes.vllm.tenants import TemplateConfig, TenantConfig, Tenants
from tests.fakes.vllm.engine.conftest import Converse
from tests.fakes.vllm.engine.making import RUN, Conversation

ENCODING = tokenizer.load()

TEXT = st.text(st.characters(codec="utf-8") | st.sampled_from('\n "{}\\<>/é🙂'), max_size=30)
MARKUP = st.sampled_from(["</think>", "<tool_call>", "<|im_end|>", "\n"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
CALLS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["execute_bash", "view"]), "arguments": st.dictionaries(TEXT, VALUES, max_size=3)}
    ),
    min_size=1,
    max_size=3,
)


def _with_tag(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**calls[0], "arguments": {"note": "x  # {tag}", **calls[0]["arguments"]}}, *calls[1:]]


TURNS = st.lists(
    st.fixed_dictionaries({"text": TEXT | MARKUP}, optional={"reasoning": TEXT | MARKUP})
    | st.fixed_dictionaries({"calls": CALLS.map(_with_tag)}, optional={"reasoning": TEXT | MARKUP}),
    min_size=1,
    max_size=4,
)


def _conversation(turns: list[dict[str, Any]], sampling: str, config: TenantConfig) -> Conversation:
    document = {"about": "x", "sampling": sampling, "scopes": {"main": {"turns": turns}}}
    tenants = Tenants()
    tenants.put("t", config).register(RUN, read_playbook(document, "test"))
    return Conversation(PlaybookEngine(ENCODING, tenants), "t", RUN)


@settings(max_examples=300, deadline=None)
@given(TURNS, st.sampled_from([None, "qwen3"]))
def test_a_turn_the_loader_accepts_as_faithful_re_renders_to_prompt_and_generation(
    turns: list[dict[str, Any]], parser: str | None
) -> None:
    contents = [Content.model_validate(turn) for turn in turns]
    assume(all(content.text != "" or content.calls for content in contents))
    assume(all("{tag" not in (content.reasoning or "") for content in contents))
    assume(all(unfaithful(content, ENCODING) is None for content in contents))
    config = TenantConfig.model_validate({"reasoning_parser": parser, "template": {"strip_history_reasoning": False}})
    talk = _conversation(turns, "faithful", config)
    sequence: list[int] = []
    for _ in turns:
        drawn = talk.ask()
        assert drawn.faithful
        assert drawn.prompt_token_ids[: len(sequence)] == sequence
        sequence = drawn.prompt_token_ids + drawn.samples[0].token_ids
        talk.take(drawn)
        if "tool_calls" not in talk.messages[-1] and talk.messages[-1]["role"] == "assistant":
            talk.say("Go on.")
    final = talk.engine.render(talk.request())
    assert final[: len(sequence)] == sequence


TOOL_LOOP = """
about: It works with tools, thinking.
sampling: faithful
scopes:
  main:
    turns:
      - {reasoning: I should look., calls: [{name: a, arguments: {x: "1  # {tag}"}}, {name: b, arguments: {y: é}}]}
      - {reasoning: I should change it., calls: [{name: a, arguments: {x: "2  # {tag}"}}]}
      - {text: Done.}
"""


def _breaks(talk: Conversation, turns: int, *, nudge: bool = False) -> list[bool]:
    """For each next turn, whether its prompt no longer begins with the prompt and generation before it."""
    broken = []
    before: list[int] = []
    for number in range(turns):
        drawn = talk.ask()
        if number:
            broken.append(drawn.prompt_token_ids[: len(before)] != before)
        before = drawn.prompt_token_ids + drawn.samples[0].token_ids
        talk.take(drawn)
        if nudge:
            talk.say("Go on.")
    return broken


def test_a_tool_loop_with_reasoning_is_contiguous_under_the_real_template(converse: Converse) -> None:
    assert _breaks(converse(TOOL_LOOP), 3) == [False, False]


def test_stripping_history_reasoning_breaks_at_the_next_user_message(converse: Converse) -> None:
    assert _breaks(converse(TOOL_LOOP), 3, nudge=True) == [True, True]


def test_reasoning_that_a_later_user_message_strips_is_not_faithful(converse: Converse) -> None:
    longer = TOOL_LOOP + "      - {text: More.}\n"
    keeps = TenantConfig(template=TemplateConfig(strip_history_reasoning=False))
    for script, config, faithful in ((TOOL_LOOP, None, True), (longer, None, False), (longer, keeps, True)):
        talk = converse(script, config=config)
        assert [talk.ask().faithful for _ in range(2)] == [faithful, faithful]


def test_a_prefilled_empty_think_block_breaks_and_is_never_called_faithful(converse: Converse) -> None:
    config = TenantConfig(template=TemplateConfig(prefill_empty_think=True))
    assert _breaks(converse(TOOL_LOOP, config=config), 3) == [True, True]
    assert not converse(TOOL_LOOP).ask().faithful
    talk = converse(TOOL_LOOP, config=TenantConfig(), template_kwargs={"enable_thinking": False})
    assert not talk.ask().faithful


def test_with_an_empty_think_block_in_the_prompt_the_model_does_not_think(converse: Converse) -> None:
    talk = converse(TOOL_LOOP, template_kwargs={"enable_thinking": False})
    assert talk.text(talk.ask()).startswith("<tool_call>")


def test_compact_arguments_break_when_the_template_dumps_them_again(converse: Converse) -> None:
    compact = """
        about: x
        sampling: drifting
        scopes: {main: {turns: [
          {sampling: drifting, calls: [{name: a, arguments: '{"x":"1  # {tag}"}'}]}, {text: Done.}]}}
    """
    assert _breaks(converse(compact), 2) == [True]


def test_every_drifting_turn_breaks_unless_its_ids_are_injected(converse: Converse) -> None:
    talk = converse(TOOL_LOOP.replace("faithful", "drifting"))
    assert _breaks(talk, 3) == [True, True]


@settings(max_examples=100, deadline=None)
@given(TURNS)
def test_a_drifting_generation_is_its_text_in_another_split(turns: list[dict[str, Any]]) -> None:
    assume(all("{tag" not in turn.get("reasoning", "") for turn in turns))
    assume(all(turn.get("text") != "" for turn in turns))
    # The loader refuses text with an end token in it, and Hypothesis finds such words in the code under test.
    assume(not any(end in str(turns) for end in ("<|im_end|>", "<|endoftext|>")))
    talk = _conversation(turns, "drifting", TenantConfig())
    drawn = talk.ask()
    (sample,) = drawn.samples
    assert ENCODING.encode(ENCODING.decode(sample.token_ids), allowed_special="all") != sample.token_ids
    assert not drawn.faithful


@pytest.mark.parametrize("stray", [{"stop": ("look",)}, {"max_tokens": 4}, {"stop_token_ids": (10,)}])
def test_what_the_request_cuts_is_not_faithful(stray: dict[str, Any], converse: Converse) -> None:
    assert not converse(TOOL_LOOP).ask(**stray).faithful


def test_a_streamed_call_after_reasoning_is_not_faithful_once_a_parser_takes_the_reasoning_out(
    converse: Converse,
) -> None:
    for parser in (None, "qwen3"):
        config = TenantConfig.model_validate({"reasoning_parser": parser})
        for streamed in (False, True):
            talk = converse(TOOL_LOOP, config=config)
            drawn = talk.ask(streamed=streamed)
            assert drawn.faithful is not (streamed and parser == "qwen3")
            talk.take(drawn)
            if streamed and parser:
                talk.messages[1]["content"] = "\n\n"
            before = drawn.prompt_token_ids + drawn.samples[0].token_ids
            assert (talk.ask().prompt_token_ids[: len(before)] == before) is drawn.faithful


def test_a_forced_call_is_not_faithful(converse: Converse) -> None:
    drawn = converse(TOOL_LOOP).ask(tool_choice="required")
    assert not drawn.faithful


def test_nemo_rl_splices_the_sampled_ids_into_the_next_prompt(converse: Converse) -> None:
    talk = converse(TOOL_LOOP.replace("faithful", "drifting"))
    first = talk.ask()
    sampled = first.prompt_token_ids + first.samples[0].token_ids
    talk.take(first)
    template = talk.engine.render(talk.request())
    spliced = talk.engine.render(talk.request(prefix_token_ids=sampled))
    assert template[: len(sampled)] != sampled
    assert spliced[: len(sampled)] == sampled
    assert talk.engine.encoding.decode(spliced) == talk.engine.encoding.decode(template)


def test_splicing_a_prefix_without_its_end_token_adds_the_templates(converse: Converse) -> None:
    talk = converse(TOOL_LOOP)
    first = talk.ask()
    sampled = first.prompt_token_ids + first.samples[0].token_ids[:-1]
    talk.take(first)
    end = ENCODING.encode_single_token("<|im_end|>")
    assert talk.engine.render(talk.request(prefix_token_ids=sampled))[: len(sampled) + 1] == [*sampled, end]
