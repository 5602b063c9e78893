"""Side calls are told by ordered rules and are never an attempt of a turn."""

from typing import Any

import pytest

from fakes.vllm.sample import SampleRequest
from fakes.vllm.tags import format_tag
from tests.fakes.vllm.engine.conftest import Converse
from tests.fakes.vllm.engine.making import RUN, Conversation, Message

TITLE_AND_SUMMARY = """
about: A title beside turn 0, a summary later.
scopes: {main: {turns: [{text: I look.}, {text: I change it.}, {text: Done.}]}}
side_calls:
  - {name: title, when: {tools: none, first_system_contains: "short title"}, text: A title}
  - {name: summary, when: {last_user_contains: "Summarise"}, text: "{tag} It went well."}
  - {name: never, when: {any_contains: "Summarise"}, text: The first match wins}
"""
TITLE: list[Message] = [{"role": "system", "content": "Give a short title."}]


def _title(talk: Conversation) -> SampleRequest:
    return SampleRequest(tenant="default", endpoint="chat", messages=TITLE + talk.messages)


def test_a_side_call_beside_turn_0_is_no_attempt_of_it(converse: Converse) -> None:
    for title_first in (True, False):
        talk = converse(TITLE_AND_SUMMARY)
        drawn = (
            [talk.engine.draw(_title(talk)), talk.ask()]
            if title_first
            else [talk.ask(), talk.engine.draw(_title(talk))]
        )
        title, turn = drawn if title_first else reversed(drawn)
        assert (title.rule, title.turn, title.attempt) == ("title", None, 0)
        assert (turn.rule, turn.turn, turn.attempt) == (None, 0, 0)
        assert talk.text(title) == "A title"


def test_a_side_call_has_attempts_and_log_probs_of_its_own(converse: Converse) -> None:
    talk = converse(TITLE_AND_SUMMARY.replace("text: A title", "text: A title, attempts: fresh"))
    first, second = talk.engine.draw(_title(talk)), talk.engine.draw(_title(talk))
    assert (first.attempt, second.attempt) == (0, 1)
    assert first.samples[0].log_probs != second.samples[0].log_probs


def test_a_summary_repeats_the_highest_tag_and_the_turn_after_it_is_the_same(converse: Converse) -> None:
    talk = converse(TITLE_AND_SUMMARY)
    for _ in range(2):
        talk.take(talk.ask())
        talk.say("Go on.")
    talk.say("Summarise the work.")
    summary = talk.ask()
    assert (summary.rule, talk.text(summary)) == ("summary", f"{format_tag(RUN, 0, 2)} It went well.")
    talk.messages = [{"role": "user", "content": f"Summary: {talk.text(summary)}"}]
    after = talk.ask()
    assert (after.rule, after.turn, after.attempt) == (None, 2, 0)


def test_the_rules_read_the_decoded_text_of_a_token_prompt(converse: Converse) -> None:
    talk = converse(TITLE_AND_SUMMARY)
    ids = talk.engine.render(_title(talk))
    assert (
        talk.engine.draw(SampleRequest(tenant="default", endpoint="completions", prompt_token_ids=ids)).rule == "title"
    )
    ids = talk.engine.render(talk.request())
    assert talk.engine.draw(SampleRequest(tenant="default", endpoint="completions", prompt_token_ids=ids)).rule is None


HISTORY: list[Message] = [
    {"role": "system", "content": "You help."},
    {"role": "user", "content": f"{format_tag(RUN, 0, 0)} Fix it."},
    {"role": "assistant", "content": "I will."},
    {"role": "user", "content": "Please do."},
]
TOOLS = [{"type": "function", "function": {"name": name}} for name in ("a", "b")]


@pytest.mark.parametrize(
    ("when", "fits"),
    [
        ("{tools: none}", False),
        ("{tools: any}", True),
        ("{tools: 2}", True),
        ("{tools: 1}", False),
        ("{roles: [system, user, assistant, user]}", True),
        ("{roles: [system, user]}", False),
        ("{messages: 4}", True),
        ("{messages: 3}", False),
        ("{last_user_contains: Please}", True),
        ("{last_user_contains: Fix}", False),
        ("{first_system_contains: help}", True),
        ("{first_system_contains: Please}", False),
        ("{last_contains: do}", True),
        ("{last_contains: I will}", False),
        ("{any_contains: I will}", True),
        ("{any_contains: nowhere}", False),
        ("{tools: 2, last_user_contains: Fix}", False),
    ],
)
@pytest.mark.parametrize("as_tokens", [False, True], ids=["messages", "tokens"])
def test_every_condition_must_hold(when: str, fits: bool, as_tokens: bool, converse: Converse) -> None:
    talk = converse(
        f"about: x\nscopes: {{main: {{turns: [{{text: a}}]}}}}\nside_calls: [{{name: s, when: {when}, text: b}}]"
    )
    given: dict[str, Any] = {"messages": HISTORY, "tools": TOOLS}
    if as_tokens:
        given = {"prompt_token_ids": talk.engine.render(SampleRequest(tenant="default", endpoint="chat", **given))}
    assert (talk.engine.draw(SampleRequest(tenant="default", endpoint="x", **given)).rule == "s") is fits
