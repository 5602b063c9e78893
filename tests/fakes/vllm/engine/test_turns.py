"""Which turn a prompt asks for, and which attempt of it."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.vllm import tokenizer
from fakes.vllm.draws import OFF_SCRIPT_TEXT
from fakes.vllm.engine import NEUTRAL_TEXT, PlaybookEngine
from fakes.vllm.sample import Drawn, PromptTooLong, SampleRequest
from fakes.vllm.tags import format_tag
from fakes.vllm.tenants import TenantConfig, Tenants
from tests.fakes.vllm.engine.conftest import Converse
from tests.fakes.vllm.engine.making import RUN, Conversation, Message, playbook_from

TWO_TURNS = """
about: It looks, then it is done.
scopes:
  main:
    turns:
      - calls: [{name: execute_bash, arguments: {command: "ls  # {tag}"}}]
      - text: Done.
"""
PARENT_AND_CHILD = """
about: The parent hands work to a child.
scopes:
  main:
    turns:
      - calls: [{name: Task, arguments: {prompt: "{tag:child} Search.", description: "search {tag}"}}]
      - text: Both done.
  child:
    turns:
      - text: Child done.
"""


def _where(drawn: Drawn) -> tuple[int | None, int | None, int | None, int]:
    return drawn.run, drawn.scope, drawn.turn, drawn.attempt


def _raw(engine: PlaybookEngine, messages: list[Message], tenant: str = "default") -> Drawn:
    return engine.draw(SampleRequest(tenant=tenant, endpoint="chat", messages=messages))


def test_each_answer_carries_the_tag_of_the_next_turn(converse: Converse) -> None:
    talk = converse(TWO_TURNS)
    first = talk.ask()
    assert talk.text(first).endswith(f'"ls  # {format_tag(RUN, 0, 1)}"}}}}\n</tool_call>')
    talk.take(first)
    second = talk.ask()
    assert talk.text(second) == f"{format_tag(RUN, 0, 2)} Done."
    assert [_where(first), _where(second)] == [(RUN, 0, 0, 0), (RUN, 0, 1, 0)]


def test_asking_again_is_the_next_attempt_and_gives_the_same_bits(converse: Converse) -> None:
    talk = converse(TWO_TURNS)
    first, again = talk.ask(), talk.ask()
    assert (first.attempt, again.attempt) == (0, 1)
    assert first.samples == again.samples


def test_rendering_is_no_attempt(converse: Converse) -> None:
    talk = converse(TWO_TURNS)
    assert talk.engine.render(talk.request()) == talk.engine.render(talk.request())
    assert talk.ask().attempt == 0


def test_a_prompt_that_is_too_long_is_no_attempt(converse: Converse) -> None:
    talk = converse(TWO_TURNS, config=TenantConfig(max_model_len=150))
    talk.say("word " * 200)
    with pytest.raises(PromptTooLong) as refused:
        talk.ask()
    assert refused.value.limit == 150
    assert refused.value.prompt_tokens == len(talk.engine.render(talk.request()))
    talk.messages.pop()
    assert talk.ask().attempt == 0


def test_dropping_and_adding_turns_in_history_does_not_move_the_turn(converse: Converse) -> None:
    talk = converse(TWO_TURNS)
    talk.take(talk.ask())
    talk.messages[1:1] = [{"role": "assistant", "content": "I was never said."}, {"role": "user", "content": "Hm?"}]
    assert talk.ask().turn == 1


def test_a_summary_that_repeats_the_highest_tag_goes_on_where_the_history_was(converse: Converse) -> None:
    talk = converse(TWO_TURNS)
    talk.take(talk.ask())
    talk.messages = [{"role": "user", "content": f"So far: ls was run. {format_tag(RUN, 0, 1)} Go on."}]
    assert _where(talk.ask()) == (RUN, 0, 1, 0)


def test_a_child_is_found_by_the_tag_in_its_task_prompt(converse: Converse) -> None:
    parent = converse(PARENT_AND_CHILD)
    call = parent.ask()
    parent.take(call)
    child = Conversation(parent.engine, "default", RUN)
    child.messages = [{"role": "user", "content": f"{format_tag(RUN, 1, 0)} Search."}]
    answer = child.ask()
    assert _where(answer) == (RUN, 1, 0, 0)
    assert child.text(answer) == f"{format_tag(RUN, 1, 1)} Child done."
    assert _where(parent.ask()) == (RUN, 0, 1, 0)


def test_past_the_end_it_says_off_script(converse: Converse) -> None:
    talk = converse(TWO_TURNS)
    talk.messages.append({"role": "assistant", "content": format_tag(RUN, 0, 2)})
    drawn = talk.ask()
    assert (drawn.off_script, drawn.turn, talk.text(drawn)) == (True, 2, OFF_SCRIPT_TEXT)


@pytest.mark.parametrize("tag", [format_tag(8, 0, 0), format_tag(RUN, 5, 0)], ids=["unknown run", "unknown scope"])
def test_a_tag_of_no_playbook_is_off_script(tag: str, converse: Converse) -> None:
    talk = converse(TWO_TURNS)
    talk.messages = [{"role": "user", "content": tag}]
    assert talk.ask().off_script


def test_without_a_tag_it_gives_a_neutral_answer_and_counts_nothing(engine: PlaybookEngine) -> None:
    messages = [{"role": "user", "content": "Are you there?"}]
    first, second = _raw(engine, messages), _raw(engine, messages)
    assert engine.encoding.decode(first.samples[0].token_ids) == f"{NEUTRAL_TEXT}<|im_end|>"
    assert first == second
    assert _where(first) == (None, None, None, 0)
    assert not first.off_script


def test_token_prompts_find_the_turn_in_the_decoded_text(converse: Converse) -> None:
    talk = converse(TWO_TURNS)
    ids = talk.engine.render(talk.request())
    drawn = talk.engine.draw(SampleRequest(tenant="default", endpoint="completions", prompt_token_ids=ids))
    assert _where(drawn) == (RUN, 0, 0, 0)
    assert (drawn.prompt_token_ids, drawn.rendered_ids) == (ids, ids)


def test_a_token_prompt_is_used_verbatim_and_its_canonical_render_kept_beside_it(converse: Converse) -> None:
    talk = converse(TWO_TURNS.replace("about", "sampling: drifting\nabout"))
    first = talk.ask()
    suffix = talk.engine.encoding.encode("\n<|im_start|>assistant\n", allowed_special="all")
    sent = first.prompt_token_ids + first.samples[0].token_ids + suffix
    drawn = talk.engine.draw(SampleRequest(tenant="default", endpoint="completions", prompt_token_ids=sent))
    assert drawn.turn == 1
    assert drawn.prompt_token_ids == sent
    assert drawn.rendered_ids != sent
    assert talk.engine.encoding.decode(drawn.rendered_ids or []) == talk.engine.encoding.decode(sent)
    assert not drawn.faithful


def test_tenants_and_runs_count_their_own_attempts(converse: Converse, engine: PlaybookEngine) -> None:
    here = converse(TWO_TURNS)
    here.ask()
    elsewhere = converse(TWO_TURNS, tenant="other", config=TenantConfig())
    other_run = converse(TWO_TURNS, run=8)
    assert [elsewhere.ask().attempt, other_run.ask().attempt, here.ask().attempt] == [0, 0, 1]


def test_registering_a_run_again_begins_its_attempts_anew(converse: Converse) -> None:
    converse(TWO_TURNS).ask()
    assert converse(TWO_TURNS).ask().attempt == 0


def test_a_tenant_put_again_forgets_its_runs(converse: Converse, tenants: Tenants) -> None:
    talk = converse(TWO_TURNS)
    tenants.put("default", TenantConfig())
    assert talk.ask().off_script


ATTEMPTS = """
about: x
sampling: {sampling}
scopes: {{main: {{turns: [{{text: I look first at the tests., attempts: {attempts}}}]}}}}
"""


def test_a_fresh_attempt_is_the_same_text_in_another_split_with_other_log_probs(converse: Converse) -> None:
    for sampling in ("faithful", "drifting"):
        talk = converse(ATTEMPTS.format(sampling=sampling, attempts="fresh"))
        drawn = [talk.ask() for _ in range(4)]
        assert len({talk.text(one) for one in drawn}) == 1
        assert len({tuple(one.samples[0].token_ids) for one in drawn}) == 4
        assert len({tuple(one.samples[0].log_probs) for one in drawn}) == 4
        assert [one.faithful for one in drawn] == [sampling == "faithful", False, False, False]


def test_listed_attempts_follow_the_turns_own_content_and_the_last_repeats(converse: Converse) -> None:
    talk = converse(ATTEMPTS.format(sampling="faithful", attempts="[{text: Second.}, {text: Third.}]"))
    texts = [talk.text(talk.ask()) for _ in range(4)]
    tag = format_tag(RUN, 0, 1)
    assert texts == [f"{tag} I look first at the tests.", f"{tag} Second.", f"{tag} Third.", f"{tag} Third."]


def test_a_turn_that_cannot_return_is_asked_again_and_then_goes_on(converse: Converse) -> None:
    talk = converse(
        'about: x\nscopes: {main: {turns: [{text: "", returns: false, attempts: [{text: Sorry.}]}, {text: End.}]}}'
    )
    empty = talk.ask()
    assert talk.text(empty) == ""
    talk.messages += [{"role": "assistant", "content": ""}, {"role": "user", "content": "Say something."}]
    second = talk.ask()
    assert (second.turn, second.attempt, talk.text(second)) == (0, 1, f"{format_tag(RUN, 0, 1)} Sorry.")
    talk.take(second)
    talk.say("Go on.")
    assert talk.ask().turn == 1


def test_a_fault_strikes_on_its_attempts_only(converse: Converse) -> None:
    talk = converse(
        "about: x\nscopes: {main: {turns: [{text: a, fault: {name: cut_stream, on_attempts: [1], at_token: 3}}]}}"
    )
    faults = [talk.ask().fault for _ in range(3)]
    assert [fault and (fault.name, fault.at_token) for fault in faults] == [None, ("cut_stream", 3), None]


def test_a_gate_names_the_run_where_it_is_asked_to(converse: Converse) -> None:
    talk = converse("about: x\nscopes: {main: {turns: [{text: a, gate: 'half-{run}'}]}}")
    assert talk.ask().gate == "half-000007"


def test_a_message_that_no_parser_would_give_is_served_with_its_tag(converse: Converse) -> None:
    talk = converse(
        'about: x\nsampling: drifting\nscopes: {main: {turns: [{text: "words", message: {content: "{tag} x"}}]}}'
    )
    drawn = talk.ask()
    assert drawn.samples[0].message == {"content": f"{format_tag(RUN, 0, 1)} x"}
    assert talk.text(drawn) == "words"


def test_ids_beyond_the_vocabulary_are_kept_and_say_nothing(converse: Converse) -> None:
    talk = converse("about: x\nsampling: drifting\nscopes: {main: {turns: [{ids: [201087, '{tag}', 9999999999]}]}}")
    first = talk.ask(stop=("nowhere",))
    assert (first.samples[0].token_ids[0], first.samples[0].token_ids[-1]) == (201087, 9999999999)
    ids = first.prompt_token_ids + first.samples[0].token_ids
    drawn = talk.engine.draw(SampleRequest(tenant="default", endpoint="completions", prompt_token_ids=ids))
    assert (drawn.turn, drawn.prompt_token_ids) == (1, ids)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ROLES = st.sampled_from(["system", "developer", "user", "assistant", "tool", "function", "x"]) | JSON
KEYS = st.sampled_from(["role", "content", "tool_calls", "reasoning", "reasoning_content", "name", "function"])
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": ROLES, "content": JSON}) | st.dictionaries(KEYS, JSON, max_size=4), max_size=4
)


@settings(max_examples=200, deadline=None)
@given(MESSAGES, JSON, st.booleans())
def test_whatever_the_messages_are_there_is_an_answer(messages: list[Message], choice: Any, more: bool) -> None:
    tenants = Tenants()
    side = "side_calls: [{name: s, when: {tools: 1, last_user_contains: a, first_system_contains: b}, text: c}]"
    known = tenants.put("t", TenantConfig())
    known.register(RUN, playbook_from(f"{TWO_TURNS}{side}"))
    tagged = [{"role": "user", "content": format_tag(RUN, 0, 0)}, *messages]
    engine = PlaybookEngine(tokenizer.load(), tenants)
    request = SampleRequest(tenant="t", endpoint="chat", messages=tagged, tools=[{}], tool_choice=choice)
    drawn = engine.draw(replace(request, continue_final_message=more, add_generation_prompt=not more))
    assert drawn.run == RUN
    assert len(drawn.samples[0].token_ids) == len(drawn.samples[0].log_probs) > 0


def test_explicit_ids_and_log_probs_stand_as_they_are(converse: Converse) -> None:
    talk = converse(
        "about: x\nsampling: drifting\nscopes: {main: {turns: "
        "[{ids: [72, 105], log_probs: [0.5, -1.0], returns: false, attempts: [{ids: ['{tag}', 104, 105]}]}]}}"
    )
    first, second = talk.ask().samples[0], talk.ask().samples[0]
    assert (first.token_ids, first.log_probs, first.finish_reason) == ([72, 105], [0.5, -1.0], "length")
    assert talk.engine.encoding.decode(second.token_ids) == f"{format_tag(RUN, 0, 1)}hi"
