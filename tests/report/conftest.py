"""One report with every verdict in it, for the drawings to draw."""

import pytest

from conformance.contract.vocabulary import Level, Verdict
from conformance.report.results import Footer, Header, Report, Result, SuiteError
from conformance.report.summary import counts

CUT = "scenarios/streams/test_cut.py::test_a_retry_after_a_cut_stream_is_trained_once[openhands]"
PLAIN = "scenarios/capture/test_ids.py::test_ids_are_the_engines"
LONELY = "scenarios/retrieval/test_list.py::test_sessions_are_listed"


def result(requirement: str, level: str, scenario: str, verdict: str, **more: object) -> Result:
    return Result(requirement, Level(level), scenario, "acme 0.3", Verdict(verdict), level == "MUST", **more)  # type: ignore[arg-type]


@pytest.fixture
def report() -> Report:
    header = Header("0.1.0", "1.0", "2026-12", {"proxy": "acme 0.3"}, {"vllm": "0.32"}, "2026-12-01T00:00:00Z")
    results = (
        result("CAP-001", "MUST", PLAIN, "pass", seconds=0.25),
        result("CAP-001", "MUST", CUT, "pass"),
        result("CAP-002", "SHOULD", PLAIN, "fail", expected=64, seen=32),
        result(
            "STR-007", "MUST", CUT, "fail", expected=2, seen=3, where="session s-41f0", evidence="evidence/cut.json"
        ),
        result("STR-008", "MUST", CUT, "inconclusive", reason="not reached, since STR-007 failed"),
        result("RET-001", "MUST", LONELY, "inconclusive", reason="the negative control did not hold"),
        result("RET-002", "MAY", LONELY, "skip", reason="not declared: retrieval-http"),
        result("RET-003", "MUST", LONELY, "error", reason="the scenario ended without checking it"),
        result("VAL-001", "MUST", PLAIN, "known", reason="stores every attempt"),
        result("VAL-002", "MUST", PLAIN, "stale", reason="named as a known failure"),
    )
    errors = (SuiteError("scenarios/x.py::test_z", "fixture `proxy` broke:\n\x00 no such file"),)
    verdicts = {name: int(str(count)) for name, count in counts(each.verdict for each in results).items()}
    return Report(header, results, errors, Footer(12.34, 21, 3, 40, 1, verdicts))
