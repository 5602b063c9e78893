"""The judging of items, shown a conversation told truly, and told with one fault each."""

from typing import Any

import pytest

from conformance.oracle import conversation

Item = dict[str, Any]

MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "text": "Look."}]},
    {
        "role": "assistant",
        "content": "I look.",
        "reasoning_content": "Hm.",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "a"},
    {"role": "assistant", "content": ""},
]


def triple(prompt: list[int], generation: list[int]) -> Item:
    log_probs = [-0.5] * len(generation)
    return {"prompt_token_ids": prompt, "generation_token_ids": generation, "generation_log_probs": log_probs}


def items() -> list[Item]:
    return [
        {"role": "user", "content": "Look."},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": "{}", **triple([1], [10])},
        {"type": "function_call_output", "call_id": "c1", "output": "a"},
        {"type": "message", "role": "assistant", "content": [], **triple([1, 10, 2], [11])},
    ]


def trajectory(told: list[Item]) -> dict[str, Any]:
    return {"record_uuids": ["a", "b"], "items": told}


def test_a_conversation_told_truly_is_right() -> None:
    told = trajectory(items())
    assert conversation.same_conversation(told, MESSAGES)
    assert conversation.triple_on_last_items(told)
    assert conversation.items_continue(told)
    assert conversation.triples_only_on({"trajectories": [told]}, [MESSAGES[1], MESSAGES[3]])


@pytest.mark.parametrize(
    "lie",
    [
        items()[1:],
        [*items(), items()[0]],
        [items()[0], *items()],
        [items()[4], *items()[:4]],
        [*items()[:3], items()[3] | {"arguments": "{ }"}, *items()[4:]],
        [*items()[:4], items()[4] | {"call_id": "c2"}, *items()[5:]],
    ],
)
def test_another_conversation_is_told(lie: list[Item]) -> None:
    assert not conversation.same_conversation(trajectory(lie), MESSAGES)


@pytest.mark.parametrize("place", [0, 1, 2, 4])
def test_a_triple_on_any_other_item_is_told(place: int) -> None:
    told = items()
    told[place] |= triple([1], [10])
    assert not conversation.triple_on_last_items(trajectory(told))


def test_a_triple_that_is_missing_or_not_whole_is_told() -> None:
    for key in ("prompt_token_ids", "generation_token_ids", "generation_log_probs"):
        told = items()
        del told[3][key]
        assert not conversation.triple_on_last_items(trajectory(told))


def test_prompts_that_do_not_begin_with_what_came_before_are_told() -> None:
    for prompt in ([1, 9, 2], [1], [2, 1, 10]):
        told = items()
        told[5] |= triple(prompt, [11])
        assert not conversation.items_continue(trajectory(told))


def test_a_triple_on_words_that_nobody_sampled_is_told() -> None:
    assert not conversation.triples_only_on({"trajectories": [trajectory(items())]}, [MESSAGES[3]])


def test_tools_are_named_in_either_form() -> None:
    tools = [{"type": "function", "name": "bash"}, {"type": "function", "function": {"name": "finish"}}]
    assert conversation.tool_names({"tools": tools}) == ["bash", "finish"]
