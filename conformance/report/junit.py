"""``junit.xml``: a suite per family, a case per requirement and scenario, for tools that read nothing else.

A failed check is a ``failure`` at every level, its type naming the level and whether it gates; so is a stale known
failure. What was not judged is an ``error``, a known failure ``skipped``. The exit status, not this file, is the gate.
"""

from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree as ET

from conformance.contract.vocabulary import Verdict
from conformance.report.lines import contrast, printable
from conformance.report.results import Header, Report, Result, SuiteError, family_of

SUITE_ERRORS = "suite errors"
"""The name of the suite that holds what no requirement speaks of."""

_ELEMENTS = {
    Verdict.FAIL: "failure",
    Verdict.STALE: "failure",
    Verdict.ERROR: "error",
    Verdict.INCONCLUSIVE: "error",
    Verdict.SKIP: "skipped",
    Verdict.KNOWN: "skipped",
}


def write(path: Path, report: Report) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    tree = ET.ElementTree(drawn(report))
    ET.indent(tree)
    tree.write(path, encoding="utf-8", xml_declaration=True)


def drawn(report: Report) -> ET.Element:
    """The document's root."""
    families: dict[str, list[ET.Element]] = {}
    for result in report.results:
        families.setdefault(family_of(result.requirement), []).append(_case(result))
    if report.errors:
        families[SUITE_ERRORS] = [_error_case(error) for error in report.errors]
    root = ET.Element("testsuites", {"name": "trackgauge"})
    root.extend(_suite(name, cases, report.header) for name, cases in sorted(families.items()))
    _count(root, root.iter("testcase"))
    root.set("time", f"{report.footer.seconds:.3f}")
    return root


def _suite(name: str, cases: list[ET.Element], header: Header) -> ET.Element:
    suite = ET.Element("testsuite", {"name": name, "timestamp": printable(header.started_at)})
    _count(suite, cases)
    suite.set("time", f"{sum(float(case.get('time', '0')) for case in cases):.3f}")
    properties = ET.SubElement(suite, "properties")
    told = {
        "suite_version": header.suite_version,
        "contract_version": header.contract_version,
        "requirement_set": header.requirement_set,
        **{f"system.{kind}": its for kind, its in header.systems.items()},
        **{f"fake.{kind}": its for kind, its in header.fakes.items()},
    }
    for key, value in told.items():
        ET.SubElement(properties, "property", {"name": printable(key), "value": printable(value)})
    suite.extend(cases)
    return suite


def _count(element: ET.Element, cases: Iterable[ET.Element]) -> None:
    inside = [{child.tag for child in case} for case in cases]
    element.set("tests", str(len(inside)))
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(attribute, str(sum(tag in tags for tags in inside)))


def _case(result: Result) -> ET.Element:
    case = _bare_case(result.scenario, result.requirement, result.seconds)
    tag = _ELEMENTS.get(result.verdict)
    if tag is not None:
        expected, seen = contrast(result.expected, result.seen)
        message = result.reason or f"expected {expected}, seen {seen}"
        outcome = ET.SubElement(case, tag, {"message": printable(message), "type": _type(result)})
        if tag != "skipped":
            outcome.text = _body(result, expected, seen)
    return case


def _error_case(error: SuiteError) -> ET.Element:
    case = _bare_case(error.scenario, "suite", error.seconds)
    ET.SubElement(case, "error", {"message": printable(error.reason), "type": "suite error"})
    return case


def _bare_case(scenario: str, name: str, seconds: float) -> ET.Element:
    return ET.Element("testcase", {"classname": printable(scenario), "name": printable(name), "time": f"{seconds:.3f}"})


def _type(result: Result) -> str:
    gate = "gates" if result.gates else "does not gate"
    return f"{result.verdict} {result.level}, {gate}"


def _body(result: Result, expected: str, seen: str) -> str:
    told = {
        "expected": None if result.expected is None and result.seen is None else expected,
        "seen": None if result.expected is None and result.seen is None else seen,
        "where": result.where,
        "reason": result.reason,
        "system": result.system,
        "evidence": result.evidence,
    }
    return "\n".join(f"{key}: {printable(value)}" for key, value in told.items() if value is not None)
