"""Sources with several sessions, and sessions that lost records."""

import pytest

from tests.reference.rebuild.making import JSON, answer, envelope, rebuilt, trained, two_turns


def session(name: str, parent: str | None = None, count: int = 2) -> JSON:
    turns = [
        turn
        | {"session_id": name, "parent_session_id": parent}
        | {key: f"{name}-{turn[key]}" for key in ("uuid", "request_id")}
        for turn in two_turns()[:count]
    ]
    return envelope(*turns, session=name)


def test_children_have_trajectories_and_parents_of_their_own() -> None:
    found = answer({"sessions": [session("child", "root"), session("root"), session("inner", "child")]})
    assert (found.outcome, found.withheld) == ("clean", False)
    assert [(one.session_id, one.parent) for one in found.trajectories] == [
        ("root", None),
        ("child", "root"),
        ("inner", "child"),
    ]


def test_a_broken_child_takes_neither_root_nor_sibling_with_it() -> None:
    broken = session("b", "root")
    broken["completions"][0]["is_valid"] = False
    dead = session("c", "root", count=1)
    dead["completions"][0]["is_valid"] = False
    found = answer({"sessions": [session("root"), session("a", "root"), broken, dead]})
    assert (found.outcome, found.withheld) == ("clean", False)
    told = [(one.session_id, one.outcome, one.withheld, one.reason_code) for one in found.trajectories]
    assert told == [
        ("root", "clean", False, None),
        ("a", "clean", False, None),
        ("b", "partial", True, "invalid_record"),
        ("c", "failed", True, "no_valid_record"),
    ]
    strict = answer({"sessions": [session("root"), broken]}, allow_partial=False)
    assert (strict.outcome, strict.error is None, strict.trajectories) == ("failed", False, [])


def test_of_several_roots_the_one_with_most_sampled_tokens_leads_and_all_is_withheld() -> None:
    found = answer({"sessions": [session("a", count=1), session("z"), session("b")]})
    assert (found.withheld, found.reason_code) == (True, "several_roots")
    assert [one.session_id for one in found.trajectories] == ["b", "a", "z"]
    assert trained(found) == []


@pytest.mark.parametrize("parents", [("b", "a"), ("a", "b"), ("x", "y")], ids=["a ring", "own parents", "strangers"])
def test_a_tree_without_a_root_is_withheld_and_ends(parents: tuple[str, str]) -> None:
    found = answer({"sessions": [session("a", parents[0]), session("b", parents[1])]})
    assert (found.withheld, found.reason_code, len(found.trajectories)) == (True, "no_root", 2)


def test_a_child_whose_root_is_missing_is_not_trained_as_the_root() -> None:
    found = answer({"sessions": [session("child", "root")]})
    assert (found.withheld, found.reason_code, trained(found)) == (True, "no_root", [])
    assert [one.record_uuids for one in found.trajectories] == [["child-u0", "child-u1"]]


def test_a_session_of_its_own_may_name_a_parent() -> None:
    found = answer({"envelope": session("child", "root")})
    assert (found.outcome, found.trajectories[0].parent) == ("clean", "root")


def test_a_session_that_lost_records_is_withheld() -> None:
    found = rebuilt(*two_turns(), incomplete=True)
    assert (found.outcome, found.withheld, found.reason_code) == ("partial", True, "records_lost")
    assert found.trajectories[0].record_uuids == ["u0", "u1"]


def test_an_envelope_that_is_none_withholds_the_tree_and_hides_nothing() -> None:
    found = answer({"sessions": [session("root"), 7, {"schema_version": 2}]})
    assert (found.withheld, found.reason_code) == (True, "records_lost")
    assert found.trajectories[0].session_id == "root"


def test_a_session_in_two_envelopes_is_one_session() -> None:
    whole = session("root")
    halves = [whole | {"completions": [one]} for one in whole["completions"]]
    assert answer({"sessions": halves}) == answer({"envelope": whole})
    halves[1] |= {"incomplete": True}
    assert answer({"sessions": halves}).reason_code == "records_lost"


@pytest.mark.parametrize("renamed", [{}, {"uuid": "another"}, {"request_id": "another"}])
def test_a_generation_that_two_sessions_hold_is_trained_in_the_first_alone(renamed: JSON) -> None:
    root, copy = session("root"), session("child", "root")
    copy["completions"] = [
        one | {"session_id": "child", "parent_session_id": "root"} | {key: f"{one[key]}-2" for key in renamed}
        for one in root["completions"]
    ]
    for order in ([root, copy], [copy, root]):
        found = answer({"sessions": order})
        assert [(one.session_id, one.withheld, one.reason_code) for one in found.trajectories] == [
            ("root", False, None),
            ("child", True, "invalid_record"),
        ]
        assert trained(found) == [10, 11, 12, 13]


def test_a_generation_that_two_agents_hold_is_trained_in_the_session_s_own_alone() -> None:
    agent = {"x_trackgauge": {"agent_id": "a1"}}
    found = rebuilt(*two_turns(), *(one | agent | {"uuid": f"b{one['uuid']}"} for one in two_turns()))
    assert [(one.agent, one.withheld) for one in found.trajectories] == [(None, False), ("a1", True)]
    assert trained(found) == [10, 11, 12, 13]


def test_equal_generations_of_two_requests_are_two() -> None:
    found = answer({"sessions": [session("root"), session("child", "root")]})
    assert trained(found) == [10, 11, 12, 13] * 2
