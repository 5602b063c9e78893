"""Title calls, summaries, compaction, several conversations, several agents."""

from typing import Any

import pytest

from conformance.contract.rebuilds import RebuildAnswer
from tests.reference.rebuild.making import (
    BASH,
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


def title(n: int, ids: list[int], **changes: Any) -> JSON:
    asked = [system("You write titles."), user("Look.")]
    return record(n, [*asked, said("Looking")], [7, 8, n], ids, **({"tools": []} | changes))


def side_calls(found: RebuildAnswer) -> list[str]:
    return [one.record_uuid for one in found.excluded if one.why == "side_call"]


def delivered(found: RebuildAnswer) -> list[list[str]]:
    return [one.record_uuids for one in found.trajectories]


def compacted(n: int) -> list[JSON]:
    """Two turns after a compaction: the history is a summary and the kept tail."""
    tail = [said("I look.", call('{"command": "ls"}')), result("a b")]
    asked = [system(), user("What so far?"), said("We looked."), *tail, user("Go on.")]
    turn = said("", call("{}", call_id="c9"))
    return [
        record(n, [*asked, turn], [1, 60, 61], [62]),
        record(n + 1, [*asked, turn, result("", "c9"), said("Ok.")], [1, 60, 61, 62, 63], [64]),
    ]


def summary(n: int) -> JSON:
    asked = [system("You summarise."), user("All of it.")]
    return record(n, [*asked, said("We looked.")], [7, 50], [51], tools=[])


def test_a_title_call_before_beside_or_after_the_main_chain_is_a_side_call() -> None:
    for place in ("09", "10", "11"):
        beside = title(9, [70]) | {"captured_at": f"2026-11-29T{place}:00:00.000000+00:00"}
        found = rebuilt(*two_turns(), beside)
        assert (found.outcome, side_calls(found), delivered(found)) == ("clean", ["u9"], [["u0", "u1"]])
        assert trained(found) == [10, 11, 12, 13]


def test_a_side_call_of_another_model_or_with_tools_of_its_own_changes_nothing() -> None:
    search = title(9, [70], model="small", tools=[BASH | {"id": "web_search"}])
    found = rebuilt(*two_turns(), search)
    assert (found.outcome, side_calls(found)) == ("clean", ["u9"])


def test_a_side_call_that_was_retried_is_excluded_whole() -> None:
    found = rebuilt(*two_turns(), title(8, [70]), title(9, [71]) | {"prompt_token_ids": [7, 8, 8]})
    assert (found.outcome, delivered(found)) == ("clean", [["u0", "u1"]])
    assert side_calls(found) == ["u9", "u8"]


def test_a_summary_of_the_whole_conversation_without_tools_is_a_side_call() -> None:
    turns = two_turns()
    asked = [*turns[0]["messages"], result("a b"), user("Sum it up.")]
    found = rebuilt(*turns, record(9, [*asked, said("All good.")], [9, 9, 9], [70], tools=[]))
    assert (found.outcome, side_calls(found)) == ("clean", ["u9"])


def test_the_first_prompt_asked_again_without_tools_is_a_side_call() -> None:
    turns = two_turns()
    found = rebuilt(*turns, record(9, [*turns[0]["messages"][:2], said("Title")], [9, 9, 9], [70], tools=[]))
    assert (found.outcome, side_calls(found)) == ("clean", ["u9"])


def test_a_single_call_with_the_main_chain_s_tools_and_system_is_no_side_call() -> None:
    beside = record(9, [system(), user("Else."), said("x")], [9, 9], [70])
    beside["captured_at"] = "2026-11-29T10:00:00.000000+00:01"
    found = rebuilt(*two_turns(), beside)
    assert (found.withheld, found.reason_code, side_calls(found)) == (True, "several_chains", [])


def test_a_call_of_the_system_prompt_alone_is_no_attempt_at_the_first_turn() -> None:
    warm_up = record(9, [system(), said("Hello.")], [1], [70])
    warm_up["captured_at"] = "2026-11-29T10:00:00.000000+00:01"
    found = rebuilt(*two_turns(), warm_up)
    assert (found.withheld, found.excluded) == (True, [])


def test_two_conversations_at_once_are_not_one_that_was_rewritten() -> None:
    other = [system(), user("Else.")]
    turn = said("", call("{}"))
    first = record(5, [*other, turn], [80], [81])
    first["captured_at"] = "2026-11-29T10:00:00.000000+00:01"
    second = record(6, [*other, turn, result(""), said("x")], [80, 81, 82], [83])
    assert rebuilt(*two_turns(), first, second).reason_code == "ambiguous_main"


def test_a_single_call_that_holds_a_turn_under_another_system_prompt_is_no_side_call() -> None:
    rewritten = compacted(3)[0]
    rewritten["messages"][0] = system("You are an agent. Today is Monday.")
    found = rebuilt(*two_turns(), rewritten)
    assert (found.withheld, found.reason_code, side_calls(found)) == (True, "history_rewritten", [])


def test_the_words_of_a_prompt_do_not_make_a_side_call() -> None:
    turns = two_turns()
    for turn in turns:
        turn["messages"][0] = system("You are a title generator.")
    assert rebuilt(*turns).outcome == "clean"


def test_a_title_call_alone_beside_one_main_call_is_told_by_its_tools() -> None:
    found = rebuilt(two_turns()[0], title(9, [70]))
    assert (found.outcome, side_calls(found), trained(found)) == ("clean", ["u9"], [10, 11])


def test_two_single_calls_that_nothing_tells_apart_are_ambiguous() -> None:
    found = rebuilt(title(1, [70]), title(2, [71]) | {"messages": [system("b"), user("b"), said("b")]})
    assert (found.withheld, found.reason_code, side_calls(found)) == (True, "ambiguous_main", [])
    assert len(found.trajectories) == 2


def test_two_conversations_that_no_id_tells_apart_are_withheld() -> None:
    asked = [system("You explore."), user("Find.")]
    turn = said("", call("{}"))
    other = [
        record(5, [*asked, turn], [80], [81], tools=[BASH | {"id": "grep"}]),
        record(6, [*asked, turn, result(""), said("x")], [80, 81, 82], [83], tools=[BASH | {"id": "grep"}]),
    ]
    turns = two_turns()
    more = [*turns[1]["messages"], user("More."), said("Yes.")]
    third = record(7, more, [1, 2, 3, 10, 11, 4, 5, 12, 13, 6], [14])
    found = rebuilt(*turns, *other, third)
    assert (found.withheld, found.reason_code) == (True, "several_chains")
    assert delivered(found) == [["u0", "u1", "u7"], ["u5", "u6"]]


def test_after_a_compaction_all_is_withheld_and_no_token_is_lost() -> None:
    found = rebuilt(*two_turns(), summary(2), *compacted(3))
    assert (found.outcome, found.withheld, found.reason_code) == ("partial", True, "history_rewritten")
    assert side_calls(found) == ["u2"]
    assert delivered(found) == [["u0", "u1"], ["u3", "u4"]]
    assert [one.mask for one in found.trajectories] == [[0, 0, 0, 1, 1, 0, 0, 1, 1], [0, 0, 0, 1, 0, 1]]
    assert found.notes == []


def test_a_single_call_after_a_compaction_is_no_side_call() -> None:
    found = rebuilt(*two_turns(), compacted(3)[0])
    assert (found.withheld, found.reason_code, side_calls(found)) == (True, "history_rewritten", [])


def test_two_compactions_with_their_summaries_keep_one_line() -> None:
    third = record(6, [system(), user("And now?"), said("Fine.")], [1, 65], [66])
    again = record(5, [system("You summarise."), user("The rest."), said("Done.")], [7, 52], [53], tools=[])
    found = rebuilt(*two_turns(), summary(2), *compacted(3), again, third)
    assert (found.reason_code, side_calls(found)) == ("history_rewritten", ["u2", "u5"])
    assert delivered(found) == [["u0", "u1"], ["u3", "u4"], ["u6"]]


def test_agents_of_one_session_have_trajectories_of_their_own() -> None:
    agent = {"x_trackgauge": {"agent_id": "a1"}}
    inner = {"x_trackgauge": {"agent_id": "a2", "parent_agent_id": "a1"}}
    asked = [system(), user("Search.")]
    found = rebuilt(
        *two_turns(),
        record(5, [*asked, said("Found.")], [80], [81], **agent),
        record(6, [*asked, said("Deep.")], [80, 5], [82], **inner),
    )
    assert (found.outcome, found.withheld) == ("clean", False)
    assert [(one.agent, one.parent, one.record_uuids) for one in found.trajectories] == [
        (None, None, ["u0", "u1"]),
        ("a1", "s", ["u5"]),
        ("a2", "a1", ["u6"]),
    ]


def test_a_broken_agent_leaves_the_root_clean_and_is_withheld_itself() -> None:
    agent = {"x_trackgauge": {"agent_id": "a1"}}
    broken = [one | agent | {"uuid": f"b{n}", "request_id": f"b{n}"} for n, one in enumerate(two_turns())]
    broken[1]["prompt_token_ids"] = [9, 9]
    found = rebuilt(*two_turns(), *broken)
    assert (found.outcome, found.withheld) == ("clean", False)
    assert [(one.agent, one.outcome, one.withheld) for one in found.trajectories] == [
        (None, "clean", False),
        ("a1", "partial", True),
        ("a1", "partial", True),
    ]
    assert trained(found) == [10, 11, 12, 13]


def test_native_children_inside_one_session_are_split_from_their_root() -> None:
    root = {"x_trackgauge": {"native_session_id": "ses_root"}}
    child = {"x_trackgauge": {"native_session_id": "ses_child", "native_parent_id": "ses_root"}}
    found = rebuilt(
        *(one | root for one in two_turns()),
        record(5, [system(), user("Search."), said("Found.")], [80], [81], **child),
        title(9, [70]),
    )
    assert (found.outcome, side_calls(found)) == ("clean", ["u9"])
    assert [(one.agent, one.parent) for one in found.trajectories] == [(None, None), ("ses_child", "s")]


def test_agents_without_their_root_are_withheld() -> None:
    found = rebuilt(
        record(5, [system(), user("a"), said("b")], [80], [81], x_trackgauge={"agent_id": "a1"}),
        record(6, [system(), user("c"), said("d")], [82], [83], x_trackgauge={"agent_id": "a2"}),
    )
    assert (found.withheld, found.reason_code, trained(found)) == (True, "no_root", [])


@pytest.mark.parametrize("extras", [{"agent_id": "a1"}, {"native_session_id": "ses_a", "native_parent_id": "ses_root"}])
def test_an_agent_without_its_root_is_not_trained_as_the_root(extras: JSON) -> None:
    found = rebuilt(*(turn | {"x_trackgauge": extras} for turn in two_turns()))
    assert (found.withheld, found.reason_code, trained(found)) == (True, "no_root", [])
    assert delivered(found) == [["u0", "u1"]]


def test_a_side_call_is_not_trained_in_place_of_the_invalid_main_call() -> None:
    found = rebuilt(two_turns()[0] | {"is_valid": False}, title(9, [70]))
    assert (found.withheld, found.reason_code, trained(found)) == (True, "invalid_record", [])


def test_what_starts_after_an_invalid_first_call_is_not_trained() -> None:
    later = record(5, [system(), user("So far: nothing. Go on."), said("Ok.")], [90], [91])
    found = rebuilt(two_turns()[0] | {"is_valid": False}, later)
    assert (found.withheld, found.reason_code, delivered(found)) == (True, "invalid_record", [["u5"]])


@pytest.mark.parametrize("extras", [[], {"agent_id": [1]}, {"native_session_id": {}}, {"agent_id": 5}])
def test_an_invalid_call_may_name_its_agent_in_any_way(extras: Any) -> None:
    found = rebuilt(*two_turns(), title(9, [70]) | {"is_valid": False, "x_trackgauge": extras})
    assert (found.outcome, trained(found)) == ("clean", [10, 11, 12, 13])


def test_an_invalid_side_call_costs_the_main_chain_nothing() -> None:
    found = rebuilt(*two_turns(), title(9, [70]) | {"is_valid": False})
    assert (found.outcome, trained(found)) == ("clean", [10, 11, 12, 13])


def test_two_native_roots_in_one_session_are_withheld() -> None:
    one, other = ({"x_trackgauge": {"native_session_id": name}} for name in ("x", "y"))
    second = record(5, [system(), user("Search."), said("Found.")], [80], [81], **other)
    found = rebuilt(*(turn | one for turn in two_turns()), second)
    assert (found.withheld, found.reason_code) == (True, "several_roots")


def test_a_last_call_with_the_main_chains_tools_may_be_that_chain_after_a_compaction() -> None:
    lone = record(5, [system("Another prompt."), user("So far: nothing. Go on."), said("Ok.")], [90], [91])
    found = rebuilt(*two_turns(), lone)
    assert (found.withheld, side_calls(found), delivered(found)) == (True, [], [["u0", "u1"], ["u5"]])


def test_a_call_with_the_main_chains_tools_between_its_turns_is_a_side_call() -> None:
    beside = record(5, [system("You check commands."), user("ls"), said("Ok.")], [90], [91])
    found = rebuilt(*two_turns(), beside | {"captured_at": "2026-11-29T10:00:00.0000005+00:00"})
    assert (found.outcome, side_calls(found)) == ("clean", ["u5"])
