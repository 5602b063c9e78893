"""Sessions in which nothing went wrong."""

from tests.reference.rebuild.making import answer, envelope, rebuilt, trained, two_turns


def test_two_turns_become_one_sequence_with_each_sampled_token_once() -> None:
    found = rebuilt(*two_turns())
    assert (found.outcome, found.withheld, found.error) == ("clean", False, None)
    [one] = found.trajectories
    assert one.tokens == [1, 2, 3, 10, 11, 4, 5, 12, 13]
    assert one.mask == [0, 0, 0, 1, 1, 0, 0, 1, 1]
    assert one.log_probs == [None, None, None, -0.5, -0.625, None, None, -1.5, -1.625]
    assert one.record_uuids == ["u0", "u1"]
    assert trained(found) == [10, 11, 12, 13]


def test_the_last_item_of_a_generated_turn_carries_the_triple() -> None:
    [one] = rebuilt(*two_turns()).trajectories
    kinds = [(item["type"], item.get("role"), item.get("generation_token_ids")) for item in one.items]
    assert kinds == [
        ("message", "system", None),
        ("message", "user", None),
        ("message", "assistant", None),
        ("function_call", None, [10, 11]),
        ("function_call_output", None, None),
        ("message", "assistant", [12, 13]),
    ]


def test_the_order_of_the_records_in_the_envelope_does_not_matter() -> None:
    assert rebuilt(*reversed(two_turns())) == rebuilt(*two_turns())


def test_a_session_as_a_tree_of_one_is_the_same() -> None:
    assert answer({"sessions": [envelope(*two_turns())]}) == rebuilt(*two_turns())
