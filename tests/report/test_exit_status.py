"""The status by which a gate stands or falls."""

import pytest

from conformance.contract.vocabulary import Level, Verdict
from conformance.report.results import Result, SuiteError
from conformance.report.summary import by_requirement, exit_status, unexplained

pytestmark = pytest.mark.unit


def result(
    verdict: str, level: str = "MUST", scenario: str = "a", requirement: str = "CAP-001", gates: bool = True
) -> Result:
    return Result(requirement, Level(level), scenario, "reference", Verdict(verdict), gates)


PASSED = result("pass", scenario="other", requirement="CAP-900")


@pytest.mark.parametrize(
    ("results", "strict", "status"),
    [
        pytest.param([PASSED], False, 0, id="all passed"),
        pytest.param([PASSED, result("fail")], False, 1, id="a gating MUST failed"),
        pytest.param([PASSED, result("fail", gates=False)], False, 0, id="a MUST that does not gate failed"),
        pytest.param([PASSED, result("fail", "SHOULD")], False, 0, id="a SHOULD failed"),
        pytest.param([PASSED, result("fail", "SHOULD")], True, 1, id="a SHOULD failed under strict"),
        pytest.param([PASSED, result("fail", "MAY")], True, 1, id="a MAY failed under strict"),
        pytest.param([PASSED, result("error", "MAY")], False, 1, id="an error of any level"),
        pytest.param([PASSED, result("inconclusive")], False, 1, id="inconclusive without a failure"),
        pytest.param(
            [PASSED, result("inconclusive"), result("fail", "SHOULD", "b")], False, 1, id="the failure is elsewhere"
        ),
        pytest.param(
            [PASSED, result("inconclusive"), result("fail", "SHOULD", requirement="CAP-002", gates=False)],
            False,
            1,
            id="a MUST left open behind a SHOULD that does not gate",
        ),
        pytest.param(
            [PASSED, result("inconclusive"), result("fail", requirement="CAP-002", gates=False)],
            False,
            1,
            id="a MUST left open behind a decision of ours that does not gate",
        ),
        pytest.param(
            [PASSED, *(result(its, "SHOULD", requirement=its, gates=False) for its in ("inconclusive", "fail"))],
            False,
            0,
            id="a SHOULD left open behind a SHOULD",
        ),
        pytest.param(
            [PASSED, result("inconclusive"), result("known", requirement="CAP-002")],
            False,
            0,
            id="inconclusive after a known failure",
        ),
        pytest.param([PASSED, result("known")], False, 0, id="a known failure"),
        pytest.param([PASSED, result("stale")], False, 3, id="a stale known failure"),
        pytest.param([result("stale"), result("fail", requirement="CAP-002")], False, 1, id="stale and failed"),
        pytest.param([], False, 5, id="no result"),
        pytest.param([result("skip"), result("skip", scenario="b")], False, 5, id="all skipped"),
        pytest.param([PASSED, result("skip")], False, 0, id="some skipped"),
    ],
)
def test_a_run_ends_with_the_status_of_its_most_serious_finding(
    results: list[Result], strict: bool, status: int
) -> None:
    assert exit_status(results, [], strict) == status
    assert exit_status(results[::-1], [], strict) == status


def test_a_suite_error_fails_the_run_even_when_nothing_ran() -> None:
    assert exit_status([], [SuiteError("a", "a fixture broke")], strict=False, nothing_ran=True) == 1


def test_a_run_that_selected_nothing_is_never_a_success() -> None:
    assert exit_status([], [], strict=False, nothing_ran=True) == 5


def test_the_unexplained_are_told_apart_by_scenario() -> None:
    explained, bare = result("inconclusive", scenario="a"), result("inconclusive", scenario="b")
    assert unexplained([explained, result("fail", requirement="CAP-002", scenario="a"), bare]) == [bare]


def test_what_gates_is_explained_only_by_what_gates_or_is_known() -> None:
    left_open = result("inconclusive")
    failures = [result(verdict, gates=gates) for verdict, gates in (("fail", True), ("fail", False), ("known", False))]
    assert [unexplained([left_open, each]) == [] for each in failures] == [True, False, True]


def test_a_requirement_has_the_worst_verdict_of_its_scenarios() -> None:
    lines = [result("pass", scenario="a"), result("fail", scenario="b"), result("skip", scenario="c")]
    assert by_requirement(lines) == {"CAP-001": (Level.MUST, Verdict.FAIL)}
    assert by_requirement([lines[2], lines[0]]) == {"CAP-001": (Level.MUST, Verdict.PASS)}
