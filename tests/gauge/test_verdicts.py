"""One verdict per covered requirement, and never one without a cause."""

from conformance.contract.vocabulary import Verdict
from conformance.gauge.verdicts import Checked, Ending, rule

ENDED_WELL = Ending()


def verdicts(covered: tuple[str, ...], checks: list[Checked], ending: Ending = ENDED_WELL) -> list[Verdict]:
    return [one.verdict for one in rule(covered, {}, checks, ending)]


def test_a_requirement_passes_when_all_its_checks_hold() -> None:
    checks = [Checked("AAA-001", True), Checked("AAA-001", True)]
    assert verdicts(("AAA-001",), checks) == [Verdict.PASS]


def test_one_failed_check_among_many_fails_the_requirement_and_is_the_one_shown() -> None:
    checks = [Checked("AAA-001", True, 1, 1), Checked("AAA-001", False, 1, 2), Checked("AAA-001", True, 3, 3)]
    (ruling,) = rule(("AAA-001",), {}, checks, ENDED_WELL)
    assert ruling.verdict is Verdict.FAIL
    assert ruling.checked == Checked("AAA-001", False, 1, 2)


def test_what_was_not_reached_after_a_failure_is_inconclusive_and_names_it() -> None:
    first, second = rule(("AAA-001", "AAA-002"), {}, [Checked("AAA-001", False)], Ending(broken="IndexError"))
    assert (first.verdict, second.verdict) == (Verdict.FAIL, Verdict.INCONCLUSIVE)
    assert second.reason is not None
    assert "AAA-001" in second.reason


def test_what_there_was_nothing_to_judge_by_does_not_pass_whatever_else_holds() -> None:
    unseen = {"AAA-001": "there was no record to judge it by"}
    checks = [Checked("AAA-001", True), Checked("AAA-002", False)]
    first, _ = rule(("AAA-001", "AAA-002"), {}, checks, ENDED_WELL, unseen)
    assert first.verdict is Verdict.INCONCLUSIVE
    assert first.reason == "there was no record to judge it by, since AAA-002 failed"


def test_what_was_seen_to_be_violated_fails_although_elsewhere_there_was_nothing_to_judge_by() -> None:
    (ruling,) = rule(("AAA-001",), {}, [Checked("AAA-001", False)], ENDED_WELL, {"AAA-001": "no record"})
    assert ruling.verdict is Verdict.FAIL


def test_a_scenario_that_breaks_for_no_known_cause_is_an_error_although_there_was_nothing_to_judge_by() -> None:
    (ruling,) = rule(("AAA-001",), {}, [], Ending(broken="KeyError"), {"AAA-001": "no record"})
    assert ruling.verdict is Verdict.ERROR


def test_what_was_never_checked_without_a_cause_is_an_error_of_the_suite() -> None:
    assert verdicts(("AAA-001",), []) == [Verdict.ERROR]


def test_a_scenario_that_breaks_cannot_pass_what_it_checked_before() -> None:
    assert verdicts(("AAA-001",), [Checked("AAA-001", True)], Ending(broken="KeyError: 'x'")) == [Verdict.ERROR]


def test_a_dead_system_makes_the_rest_inconclusive_and_is_named() -> None:
    (ruling,) = rule(("AAA-001",), {}, [], Ending(died="the proxy died with exit code -9", broken="refused"))
    assert (ruling.verdict, ruling.reason) == (Verdict.INCONCLUSIVE, "the proxy died with exit code -9")


def test_an_unmet_prerequisite_makes_the_rest_inconclusive() -> None:
    assert verdicts(("AAA-001",), [], Ending(unmet="the control did not hold")) == [Verdict.INCONCLUSIVE]


def test_a_system_that_stops_a_scenario_makes_what_was_not_finished_inconclusive() -> None:
    stopped = Ending(stopped="the session list: expected 200, seen 500")
    first, second = rule(("AAA-001", "AAA-002"), {}, [Checked("AAA-001", True)], stopped)
    assert {first.verdict, second.verdict} == {Verdict.INCONCLUSIVE}
    assert first.reason == second.reason == "the session list: expected 200, seen 500"


def test_a_skipped_requirement_keeps_its_reason_whatever_happened() -> None:
    (ruling,) = rule(("AAA-001",), {"AAA-001": "not declared: pins"}, [], Ending(broken="x"))
    assert (ruling.verdict, ruling.reason) == (Verdict.SKIP, "not declared: pins")
