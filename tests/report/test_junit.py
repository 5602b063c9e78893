"""``junit.xml``, read back as its consumers read it."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from conformance.contract.vocabulary import Level, Verdict
from conformance.report import junit
from conformance.report.results import Report, Result

pytestmark = pytest.mark.unit


@pytest.fixture
def root(report: Report, tmp_path: Path) -> ET.Element:
    junit.write(tmp_path / "report" / "junit.xml", report)
    return ET.parse(tmp_path / "report" / "junit.xml").getroot()


def test_each_verdict_becomes_its_element(root: ET.Element) -> None:
    outcomes = {
        (case.attrib["name"], case.attrib["classname"].rsplit("::", 1)[-1][:10]): [child.tag for child in case]
        for case in root.iter("testcase")
    }
    assert outcomes == {
        ("CAP-001", "test_ids_a"): [],
        ("CAP-001", "test_a_ret"): [],
        ("CAP-002", "test_ids_a"): ["failure"],
        ("STR-007", "test_a_ret"): ["failure"],
        ("STR-008", "test_a_ret"): ["error"],
        ("RET-001", "test_sessi"): ["error"],
        ("RET-002", "test_sessi"): ["skipped"],
        ("RET-003", "test_sessi"): ["error"],
        ("VAL-001", "test_ids_a"): ["skipped"],
        ("VAL-002", "test_ids_a"): ["failure"],
        ("suite", "test_z"): ["error"],
    }


def test_families_are_suites_and_their_counts_add_up(root: ET.Element) -> None:
    assert root.tag == "testsuites"
    assert [suite.attrib["name"] for suite in root] == ["CAP", "RET", "STR", "VAL", "suite errors"]
    for key, whole in (("tests", 11), ("failures", 3), ("errors", 4), ("skipped", 2)):
        assert int(root.attrib[key]) == whole
        assert sum(int(suite.attrib[key]) for suite in root) == whole
    assert root.attrib["time"] == "12.340"
    assert root[0].attrib["time"] == "0.250"


def test_a_failure_tells_what_was_expected_and_whether_it_gates(root: ET.Element) -> None:
    failures = {case.attrib["name"]: case.find("failure") for case in root.iter("testcase")}
    must, should = failures["STR-007"], failures["CAP-002"]
    assert must is not None
    assert should is not None
    assert (must.attrib["type"], should.attrib["type"]) == ("fail MUST, gates", "fail SHOULD, does not gate")
    assert must.attrib["message"] == "expected 2, seen 3"
    assert (must.text or "").splitlines() == [
        "expected: 2",
        "seen: 3",
        "where: session s-41f0",
        "system: acme 0.3",
        "evidence: evidence/cut.json",
    ]


def test_what_xml_cannot_hold_is_escaped(tmp_path: Path, report: Report) -> None:
    odd = "a\x00b\x1b[31m\ud800\ufffe ⟦000001:00:0001⟧ ]]>&<"
    bad = Result("SEC-001", Level.MUST, f"x.py::test[{odd}]", "acme", Verdict.FAIL, True, seen=odd, reason=odd)
    junit.write(tmp_path / "junit.xml", Report(report.header, (bad,), (), report.footer))
    [failure] = ET.parse(tmp_path / "junit.xml").getroot().iter("failure")
    assert failure.attrib["message"] == "a\\x00b\\x1b[31m\\ud800\\ufffe ⟦000001:00:0001⟧ ]]>&<"
