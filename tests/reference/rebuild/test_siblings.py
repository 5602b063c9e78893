"""Retries, nudges and forks: which of several calls for the same turn is the turn."""

from typing import Any

import pytest

from conformance.contract.rebuilds import RebuildAnswer
from tests.reference.rebuild.making import (
    JSON,
    call,
    rebuilt,
    record,
    result,
    said,
    system,
    trained,
    two_turns,
    user,
)

ASKED = [system(), user("Look.")]
FIRST = said("I look.", call('{"command": "ls"}'))
HISTORY = [*ASKED, FIRST, result("a b")]
LAST_PROMPT = [1, 2, 3, 10, 11, 4, 5]


def orphans(found: RebuildAnswer) -> list[str]:
    return [one.record_uuid for one in found.excluded if one.why == "orphan"]


def retry_of_first(n: int, ids: list[int], text: str = "Never mind.") -> JSON:
    return record(n, [*ASKED, said(text)], [1, 2, 3], ids)


def retry_of_last(n: int, ids: list[int], **changes: Any) -> JSON:
    return record(n, [*HISTORY, said("Other.")], LAST_PROMPT, ids, **changes)


def test_a_retry_that_nothing_continues_is_an_orphan_wherever_it_sorts() -> None:
    for place in (5, 0):
        turns = two_turns()
        retry = retry_of_first(9, [20, 21]) | {"captured_at": f"2026-11-29T0{place}:00:00.000000+00:00"}
        found = rebuilt(*turns, retry)
        assert (found.outcome, orphans(found)) == ("clean", ["u9"])
        assert trained(found) == [10, 11, 12, 13]


def test_a_start_with_something_added_after_the_first_was_gone_on_with_is_a_rewritten_history() -> None:
    summary = user("What was done: a look.")
    late = record(2, [*ASKED, summary, said("Done.")], [1, 2, 3, 50], [20, 21])
    found = rebuilt(*two_turns(), late)
    assert (found.outcome, found.withheld, found.reason_code) == ("partial", True, "history_rewritten")
    assert orphans(found) == []
    assert trained(found) == []


def test_of_several_last_calls_the_last_is_kept_and_withheld() -> None:
    found = rebuilt(*two_turns(), retry_of_last(2, [20, 21]))
    assert (found.outcome, found.withheld, found.reason_code) == ("partial", True, "unresolved_siblings")
    assert orphans(found) == ["u1"]
    assert [one.record_uuids for one in found.trajectories] == [["u0", "u2"]]
    assert trained(found) == []


@pytest.mark.parametrize(("place", "withheld"), [(9, True), (0, False)], ids=["after it", "before it"])
def test_a_last_call_that_was_made_once_more_with_an_invalid_record_is_not_trained(place: int, withheld: bool) -> None:
    again = retry_of_last(place, [20, 21], is_valid=False, uuid="again")
    again["captured_at"] = f"2026-11-29T0{place}:00:00.000000+00:00" if place == 0 else again["captured_at"]
    found = rebuilt(*two_turns(), again)
    assert (found.withheld, found.reason_code) == ((True, "unresolved_siblings") if withheld else (False, None))
    assert trained(found) == ([] if withheld else [10, 11, 12, 13])


def test_a_continued_call_that_was_made_once_more_with_an_invalid_record_is_trained() -> None:
    found = rebuilt(*two_turns(), retry_of_first(9, [20, 21]) | {"is_valid": False})
    assert (found.outcome, trained(found)) == ("clean", [10, 11, 12, 13])


def test_an_equal_retry_of_the_last_call_is_no_fork_and_the_later_stands_for_both() -> None:
    turns = two_turns()
    found = rebuilt(*turns, turns[1] | {"uuid": "u2", "captured_at": "2026-11-29T10:00:00.000002+00:00"})
    assert (found.outcome, found.withheld) == ("clean", False)
    assert orphans(found) == ["u1"]
    assert [(note.record_uuid, note.code) for note in found.notes] == [("u2", "twin")]
    assert trained(found) == [10, 11, 12, 13]


def test_an_equal_retry_of_a_continued_call_is_trained_once() -> None:
    turns = two_turns()
    twin = turns[0] | {"uuid": "u00", "captured_at": "2026-11-29T09:00:00.000000+00:00"}
    found = rebuilt(*turns, twin)
    assert (found.outcome, orphans(found)) == ("clean", ["u00"])
    assert trained(found) == [10, 11, 12, 13]


def test_equal_ids_with_other_log_probs_are_not_trained() -> None:
    turns = two_turns()
    found = rebuilt(*turns, turns[0] | {"uuid": "u2", "generation_log_probs": [-3.0, -4.0]})
    assert (found.withheld, found.reason_code) == (True, "unresolved_siblings")


def test_of_equal_calls_the_one_whose_call_id_came_back_stands_for_both() -> None:
    turns = two_turns()
    other = said("I look.", call('{"command": "ls"}', call_id="c7"))
    twin = turns[0] | {"uuid": "u2", "messages": [*ASKED, other], "captured_at": "2026-11-29T11:00:00.000000+00:00"}
    found = rebuilt(*turns, twin)
    assert (found.outcome, orphans(found), trained(found)) == ("clean", ["u2"], [10, 11, 12, 13])


def test_a_retry_with_the_same_tokens_is_a_sibling_whatever_its_tools_are_called() -> None:
    retry = retry_of_first(9, [20, 21]) | {"tools": []}
    found = rebuilt(*two_turns(), retry)
    assert (found.outcome, orphans(found)) == ("clean", ["u9"])


def test_an_episode_played_twice_in_one_session_is_a_fork() -> None:
    again = [one | {"uuid": f"v{n}", "request_id": f"v{n}"} for n, one in enumerate(two_turns())]
    again[0] |= {"generation_token_ids": [20, 21], "messages": [*ASKED, said("So?")]}
    again[1] |= {"messages": [*ASKED, said("So?"), user("Go."), said("Ok.")]}
    again[1] |= {"prompt_token_ids": [1, 2, 3, 20, 21, 4]}
    found = rebuilt(*two_turns(), *again)
    assert (found.withheld, found.reason_code) == (True, "fork")


def test_of_two_calls_with_the_same_text_the_one_whose_ids_the_next_prompt_holds_is_the_turn() -> None:
    turns = two_turns()
    other = record(2, turns[0]["messages"], [1, 2, 3], [10, 12])
    found = rebuilt(*turns, other)
    assert (found.outcome, orphans(found)) == ("clean", ["u2"])
    assert trained(found) == [10, 11, 12, 13]


def test_two_continued_calls_are_a_fork_with_the_shared_prefix_once() -> None:
    turns = two_turns()
    fork = retry_of_last(2, [20, 21])
    tails = [
        record(3, [*turns[1]["messages"], user("More."), said("Yes.")], [*LAST_PROMPT, 12, 13, 6], [30]),
        record(4, [*fork["messages"], user("More."), said("No.")], [*LAST_PROMPT, 20, 21, 6], [31]),
    ]
    found = rebuilt(*turns, fork, *tails)
    assert (found.withheld, found.reason_code) == (True, "fork")
    sampled = [t for one in found.trajectories for t, mask in zip(one.tokens, one.mask, strict=True) if mask]
    assert sorted(sampled) == [10, 11, 12, 13, 20, 21, 30, 31]
    assert sorted(uuid for one in found.trajectories for uuid in one.record_uuids) == ["u0", "u1", "u2", "u3", "u4"]


def test_a_call_whose_answer_the_harness_dropped_before_nudging_is_an_orphan() -> None:
    dropped = record(0, [*ASKED, said("")], [1, 2, 3], [20])
    nudged = [*ASKED, user("Use a tool.")]
    found = rebuilt(
        dropped,
        record(1, [*nudged, FIRST], [1, 2, 3, 6], [10, 11]),
        record(2, [*nudged, FIRST, result("a"), said("Done.")], [1, 2, 3, 6, 10, 11, 4], [12]),
    )
    assert (found.outcome, orphans(found), trained(found)) == ("clean", ["u0"], [10, 11, 12])


def test_a_history_that_holds_another_answer_is_a_rewrite_and_no_sibling() -> None:
    turns = two_turns()
    rewritten = record(
        2, [*HISTORY, said("Edited by hand."), user("Go on."), said("Ok.")], [*LAST_PROMPT, 50, 51, 6], [30]
    )
    found = rebuilt(*turns, rewritten)
    assert (found.withheld, found.reason_code) == (True, "history_rewritten")
    assert orphans(found) == []
    assert sorted(uuid for one in found.trajectories for uuid in one.record_uuids) == ["u0", "u1", "u2"]


def test_a_summary_that_is_asked_beside_the_newest_turn_is_no_second_attempt_at_it() -> None:
    turns = two_turns()
    newest = turns[1]["messages"][-1]
    summary = retry_of_last(2, [20, 21]) | {"messages": [*HISTORY[:-1], result("a b. Sum it up."), said("We looked.")]}
    after = record(3, [system(), user("So far: we looked."), newest, user("Go on."), said("Ok.")], [60], [61])
    found = rebuilt(*turns, summary, after)
    assert (found.reason_code, orphans(found)) == ("history_rewritten", ["u2"])
    assert [one.record_uuids for one in found.trajectories] == [["u0", "u1"], ["u3"]]


def test_an_answer_that_was_given_more_than_once_tells_nothing_about_the_last_ones() -> None:
    turns = two_turns()
    same = turns[1]["messages"][-1]
    twice = record(2, [*HISTORY, same], LAST_PROMPT, [20, 21])
    beside = record(3, [system("Titles."), user("Look."), same, user("Name it."), said("A look")], [60], [61], tools=[])
    found = rebuilt(*turns, twice, beside)
    assert (found.withheld, found.reason_code) == (True, "unresolved_siblings")


# Answers that did not reach their client


def test_a_marked_answer_that_a_later_call_goes_on_with_was_had() -> None:
    found = rebuilt(*two_turns(), undelivered=["u0"])
    assert (found.outcome, trained(found)) == ("clean", [10, 11, 12, 13])


def test_a_marked_answer_that_nothing_goes_on_with_is_an_orphan() -> None:
    found = rebuilt(*two_turns(), undelivered=["u1"])
    assert (found.outcome, trained(found), orphans(found)) == ("clean", [10, 11], ["u1"])


def test_of_two_equal_answers_one_that_was_delivered_is_enough() -> None:
    for marked, outcome in ((["u1"], "clean"), (["u2"], "clean"), (["u1", "u2"], "clean")):
        turns = two_turns()
        twin = turns[1] | {"uuid": "u2", "captured_at": "2026-11-29T10:00:00.000009+00:00"}
        found = rebuilt(*turns, twin, undelivered=marked)
        had = [10, 11] if len(marked) == 2 else [10, 11, 12, 13]
        assert (found.outcome, trained(found)) == (outcome, had)


def test_a_marked_answer_that_a_rewritten_history_quotes_was_had() -> None:
    kept = record(1, [system(), user("So far a look."), FIRST, result("a b"), said("Done.")], [1, 50], [20])
    found = rebuilt(two_turns()[0], kept, undelivered=["u0"])
    assert (found.reason_code, orphans(found)) == ("history_rewritten", [])


def test_where_no_answer_was_delivered_the_last_is_withheld() -> None:
    first = two_turns()[0]
    found = rebuilt(first, retry_of_first(1, [20, 21]), undelivered=["u0", "u1"])
    assert (found.outcome, found.reason_code, orphans(found)) == ("partial", "unresolved_siblings", ["u0"])
    assert [one.record_uuids for one in found.trajectories] == [["u1"]]


def test_a_title_does_not_stand_in_for_an_episode_whose_only_answer_was_not_delivered() -> None:
    title = record(1, [system("You name things."), user("Look."), said("A look")], [7, 8], [20], tools=[])
    found = rebuilt(two_turns()[0], title, undelivered=["u0"])
    assert (found.withheld, found.reason_code) == (True, "unresolved_siblings")


# What invalid records tell


def test_a_retry_without_an_answer_of_its_own_overtakes_the_answer_before_it() -> None:
    unanswered = record(2, HISTORY, LAST_PROMPT, [20], is_valid=False)
    found = rebuilt(*two_turns(), unanswered)
    assert (found.withheld, found.reason_code) == (True, "unresolved_siblings")


def test_an_invalid_call_that_goes_on_from_an_answer_does_not_overtake_it() -> None:
    rewritten = {"role": "assistant", "content": [{"type": "text", "text": "Two files."}], "name": "agent"}
    later = record(2, [*HISTORY, rewritten, user("Go on."), said("Done.")], [9], [20], is_valid=False)
    found = rebuilt(*two_turns(), later)
    assert (found.outcome, trained(found)) == ("clean", [10, 11, 12, 13])


def test_a_twin_is_known_by_its_call_ids_in_a_history_that_a_harness_rewrote() -> None:
    ids = ("c1", "c2")
    for taken in ids:
        asked = [said("I look.", call('{"command": "cd /x && ls", "all": "true"}', call_id=one)) for one in ids]
        echoed = said("I look.", call('{"command": "ls", "all": true}', call_id=taken))
        turns = [record(n, [*ASKED, one], [1, 2, 3], [10, 11], request_id="r") for n, one in enumerate(asked)]
        turns[1]["generation_log_probs"] = turns[0]["generation_log_probs"]
        last = record(2, [*ASKED, echoed, result("a b", taken), said("Two files.")], [1, 2, 3, 10, 11, 4], [12])
        found = rebuilt(*turns, last)
        assert (found.outcome, found.trajectories[0].record_uuids) == ("clean", [f"u{ids.index(taken)}", "u2"])
