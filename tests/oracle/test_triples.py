"""What the oracle says of answers that are right, and of each way to be wrong."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from conformance.oracle import rollouts, triples
from conformance.oracle.rollouts import Answer, Sampled

ONE = Sampled("one", (1, 2), (3, 4), (-0.5, -0.25))
TWO = Sampled("two", (1, 2, 3, 4, 5), (6,), (-0.125,))
LOST = Sampled("lost", (1, 2), (7, 8), (-1.5, -1.25))
TRUTH = {call.key: call for call in (ONE, TWO, LOST)}


def item(call: Sampled) -> dict[str, Any]:
    return {
        "type": "message",
        "role": "assistant",
        "content": "Well.",
        "prompt_token_ids": list(call.prompt),
        "generation_token_ids": list(call.generation),
        "generation_log_probs": list(call.log_probs),
    }


def right() -> Answer:
    """Two turns trained, and a third call put aside."""
    trajectory = {
        "session_id": "s",
        "outcome": "clean",
        "withheld": False,
        "items": [{"type": "message", "role": "user", "content": "Go."}, item(ONE), item(TWO)],
        "record_uuids": ["one", "two"],
        "tokens": [1, 2, 3, 4, 5, 6],
        "mask": [0, 0, 1, 1, 0, 1],
        "log_probs": [None, None, -0.5, -0.25, None, -0.125],
    }
    excluded = [{"record_uuid": "lost", "why": "orphan"}]
    return {"outcome": "clean", "withheld": False, "trajectories": [trajectory], "excluded": excluded, "notes": []}


def changed(change: Callable[[Answer, dict[str, Any]], object]) -> Answer:
    answer = copy.deepcopy(right())
    change(answer, answer["trajectories"][0])
    return answer


def test_a_right_answer_is_right_by_every_judgement() -> None:
    answer = right()
    assert triples.one_clean_chain(answer, [ONE, TWO])
    assert triples.delivers(answer, [ONE, TWO])
    assert triples.not_trained(answer, [LOST])
    assert triples.only_sampled(answer, TRUTH)
    assert triples.only_generated(answer, TRUTH)
    assert triples.never_together(answer, ONE, LOST)
    assert rollouts.tokens_conserved(answer, TRUTH)
    assert rollouts.rest_excluded(answer, TRUTH)
    assert not triples.withheld(answer)


@pytest.mark.parametrize(
    "change",
    [
        lambda answer, _: answer.update(outcome="partial"),
        lambda answer, _: answer.update(withheld=True),
        lambda answer, one: answer["trajectories"].append(one),
        lambda answer, _: answer["trajectories"].clear(),
        lambda _, one: one["items"].reverse(),
        lambda _, one: one["items"].pop(),
        lambda _, one: one["items"][1].update(generation_log_probs=[-0.5, -0.250000001]),
        lambda _, one: one["items"][1].update(generation_token_ids=[3, True]),
        lambda _, one: one["items"][2].update(prompt_token_ids=[1, 2, 3, 4]),
        lambda _, one: one["items"][0].update(generation_token_ids=[3]),
    ],
)
def test_a_chain_that_is_not_clean_or_not_these_calls_is_told(
    change: Callable[[Answer, dict[str, Any]], object],
) -> None:
    assert not triples.one_clean_chain(changed(change), [ONE, TWO])


def test_whole_number_log_probs_are_the_floats_that_they_are_and_true_is_no_number() -> None:
    whole = Sampled("whole", (1,), (2, 3), (-1.0, 0.0))
    trajectory: dict[str, Any] = {
        "items": [{**item(whole), "generation_log_probs": [-1, 0]}],
        "record_uuids": ["whole"],
    }
    assert triples.holds(trajectory, [whole])
    trajectory["items"][0]["generation_log_probs"] = [-1, False]
    assert not triples.holds(trajectory, [whole])


def test_a_call_is_trained_if_it_is_named_or_carried_or_masked_in() -> None:
    assert not triples.not_trained(changed(lambda _, one: one["record_uuids"].append("lost")), [LOST])
    assert not triples.not_trained(changed(lambda _, one: one["items"].append(item(LOST))), [LOST])
    assert not triples.not_trained(changed(lambda _, one: one.update(tokens=[7], mask=[1])), [LOST])
    assert triples.not_trained(changed(lambda _, one: one.update(tokens=[7], mask=[0])), [LOST])
    assert triples.not_trained(changed(lambda answer, _: answer.update(withheld=True)), [ONE, TWO])
    assert not triples.ids_not_trained(right(), [6])


def test_a_trainable_triple_that_no_call_sampled_or_that_stands_twice_is_told() -> None:
    strange = Sampled("strange", (1, 2), (3, 5), (-0.5, -0.25))
    assert not triples.only_sampled(changed(lambda _, one: one["items"].append(item(strange))), TRUTH)
    assert not triples.only_sampled(changed(lambda _, one: one["items"].append(item(ONE))), TRUTH)


def test_a_context_token_that_is_masked_in_is_told_even_where_it_is_withheld() -> None:
    answer = changed(lambda answer, one: (answer.update(withheld=True), one.update(mask=[0, 0, 1, 1, 1, 1])))
    assert not triples.only_generated(answer, TRUTH)


def test_two_calls_in_one_trainable_trajectory_are_together() -> None:
    assert not triples.never_together(right(), ONE, TWO)
    assert triples.never_together(changed(lambda answer, _: answer.update(withheld=True)), ONE, TWO)


def test_withheld_means_that_it_says_so_and_is_not_clean() -> None:
    assert triples.withheld({**right(), "withheld": True, "outcome": "partial"})
    assert not triples.withheld({**right(), "withheld": True, "outcome": "clean"})
    assert not triples.withheld({**right(), "withheld": None, "outcome": "failed"})


def test_a_token_that_is_nowhere_or_twice_is_not_conserved() -> None:
    assert not rollouts.tokens_conserved(changed(lambda answer, _: answer["excluded"].clear()), TRUTH)
    assert not rollouts.tokens_conserved(changed(lambda answer, one: answer["trajectories"].append(one)), TRUTH)
    assert not rollouts.tokens_conserved(changed(lambda _, one: one.update(mask=[0, 0, 1, 1, 1, 1])), TRUTH)


def test_a_call_that_stands_nowhere_needs_one_known_reason() -> None:
    for why in ([], ["orphan", "invalid"], ["forgotten"]):
        excluded = [{"record_uuid": "lost", "why": one} for one in why]
        assert not rollouts.rest_excluded({**right(), "excluded": excluded}, TRUTH)


def test_a_call_is_known_as_trained_by_its_name_its_triple_or_its_masked_tokens() -> None:
    assert triples.none_trained(right(), [LOST])
    assert not triples.none_trained(right(), [ONE])
    nameless = right()
    nameless["trajectories"][0]["record_uuids"] = []
    assert not triples.none_trained(nameless, [TWO])
    nameless["trajectories"][0]["items"] = []
    assert not triples.none_trained(nameless, [TWO])


def test_equal_ids_with_other_log_probs_are_not_the_same_call() -> None:
    twin = Sampled("twin", (9, 2), ONE.generation, (-0.75, -0.5))
    assert triples.none_trained(right(), [twin])


def test_an_excluded_call_stands_nowhere_else() -> None:
    assert rollouts.excludes(right(), [LOST])
    assert not rollouts.excludes(right(), [ONE])
    both = right()
    both["trajectories"][0]["record_uuids"].append("lost")
    assert not rollouts.excludes(both, [LOST])
