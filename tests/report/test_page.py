"""What is drawn of a report for people: the page, the Markdown, the badge."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from conformance.contract.vocabulary import Level, Verdict
from conformance.report import badge, folder, hops, markdown
from conformance.report.results import NOT_IN_PLAY, Footer, Report, Result
from conformance.report.summary import ExitStatus

pytestmark = pytest.mark.unit

ODD = "<script>alert(1)</script> | `x` \x1b[31m\ud800"


class Sentence:
    statement, harm, level = "It holds <always>.", "The trainer sees it.", Level.MUST


class Reader(HTMLParser):
    """What a browser would fetch, and which scripts it would run."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.tags: list[str] = []
        self.rules: dict[str, dict[str, str | None]] = {}
        self.checked: list[str | None] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        if values.get("class") == "rule":
            self.rules[values["id"] or ""] = values
        if values.get("name") == "verdict" and "checked" in values:
            self.checked.append(values["value"])


def draw(place: Path, report: Report) -> Path:
    place.mkdir(exist_ok=True)
    sentences = {line.requirement: Sentence() for line in report.results}
    folder.draw_for_people(place, report, sentences, {"CAP": "records"}, lambda name: f"trackgauge repro {name}")
    return place


def read(place: Path) -> tuple[str, Reader]:
    text = (place / "index.html").read_text(encoding="utf-8")
    reader = Reader()
    reader.feed(text)
    return text, reader


def test_the_page_holds_every_requirement_with_its_verdict_and_needs_nothing_from_elsewhere(
    tmp_path: Path, report: Report
) -> None:
    text, reader = read(draw(tmp_path, report))
    verdicts = {name: values["data-verdict"] for name, values in reader.rules.items()}
    assert verdicts == {
        "CAP-001": "pass", "CAP-002": "fail", "STR-007": "fail", "STR-008": "inconclusive", "RET-001": "inconclusive",
        "RET-002": "skip", "RET-003": "error", "VAL-001": "known", "VAL-002": "stale",
    }  # fmt: skip
    assert all(link.startswith(("#", "evidence/")) for link in reader.links)
    assert not {"link", "img", "iframe"} & set(reader.tags)
    assert "exit 1: not conforming" in text
    assert "trackgauge repro STR-007" in text
    assert "no such file" in text


def test_findings_are_shown_first_and_everything_where_there_are_none(tmp_path: Path, report: Report) -> None:
    _, found = read(draw(tmp_path, report))
    assert found.checked == ["fail", "error", "inconclusive", "stale", "known"]
    fine = replace(report, results=report.results[:2], errors=())
    _, held = read(draw(tmp_path, fine))
    assert held.checked == ["pass"]


def test_nothing_that_a_system_says_becomes_markup(tmp_path: Path, report: Report) -> None:
    bad = replace(report.results[3], scenario=f"a.py::test[{ODD}]", where=ODD, seen=ODD, reason=ODD)
    place = draw(tmp_path, replace(report, results=(bad,), header=replace(report.header, systems={"proxy": ODD})))
    text, reader = read(place)
    assert reader.tags.count("script") == 1
    assert "\x1b" not in text
    told = (place / "summary.md").read_text(encoding="utf-8")
    assert "<script>" not in re.sub(r"(`+).*?\1", "", told)
    ET.fromstring((place / "badge.svg").read_text(encoding="utf-8"))


def test_the_hops_of_a_failure_are_drawn_from_its_evidence(tmp_path: Path, report: Report) -> None:
    exchange = {"request": {"method": "POST", "path": "/v1/x"}, "response": {"status": 502}, "ended": "complete"}
    row = {"endpoint": "chat", "status": 200, "state": "cut", "generation_token_ids": [1, 2], "fault": "cut_stream"}
    parts = {
        "hops": [{"exchanges": [{**exchange, "streamed": True}] * 20}],
        "ledger": [row],
        "records": {"s": [{"is_valid": True, "generation_token_ids": [1, 2]}], "t": "not to be had: it died"},
    }
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence" / "cut.json").write_text(json.dumps(parts))
    (tmp_path / "evidence" / "cut.har").write_text("{}")
    calls, engine, records = hops.of(tmp_path, "evidence/cut.json")
    assert (calls.steps[0], len(calls.steps), calls.more) == (hops.Step("POST /v1/x → 502 stream", bad=True), 12, 8)
    assert engine.steps == (hops.Step("chat → 200 cut, 2 tokens, fault cut_stream", bad=True),)
    assert [step.text for step in records.steps] == ["s: valid, 2 tokens", "t: not to be had: it died"]
    text, reader = read(draw(tmp_path, report))
    assert text.count("<th>client → system</th>") == 1
    assert {"evidence/cut.json", "evidence/cut.har"} <= set(reader.links)


@pytest.mark.parametrize("content", [None, "", "[]", '{"hops": 3, "ledger": [1], "records": null}'])
def test_evidence_that_cannot_be_read_is_no_picture_and_no_error(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "x.json").write_text(content)
    assert hops.of(tmp_path, "x.json") == ()


def test_ten_thousand_lines_make_one_page(tmp_path: Path, report: Report) -> None:
    lines = tuple(
        Result(f"CAP-{n % 500:03}", Level.MUST, f"a.py::test[{n}]", "acme", Verdict.FAIL, True, 1, 2)
        for n in range(10_000)
    )
    text, reader = read(draw(tmp_path, replace(report, results=lines)))
    assert len(reader.rules) == 500
    assert len(text) < 8_000_000
    assert "and 450 more" in (tmp_path / "summary.md").read_text(encoding="utf-8")


def test_the_markdown_tells_findings_before_the_table_and_how_to_repeat_them(report: Report) -> None:
    text = markdown.drawn(report, {"STR-007": Sentence()}, lambda name: f"trackgauge repro {name}")
    assert text.startswith("## Trackgauge: acme 0.3\n\nmust 2/7 · should 0/1")
    assert "- **fail STR-007** (MUST) It holds &lt;always>.  \n  expected `2`, seen `3`  \n" in text
    assert "`trackgauge repro STR-007`" in text
    assert "- **known VAL-001** (MUST)  \n  stores every attempt\n" in text
    assert text.index("STR-007") < text.index("CAP-002") < text.index("VAL-001") < text.index("| family |")


@pytest.mark.parametrize(
    ("status", "told", "colour"),
    [
        (0, "must 2/7 · should 0/1 · known 1 · judged 8 of 9", "#2f8f5b"),
        (1, "must 2/7 · should 0/1 · known 1 · judged 8 of 9", "#d1242f"),
        (3, "must 2/7 · should 0/1 · known 1 · judged 8 of 9", "#8250df"),
        (4, "did not start", "#d1242f"),
        (5, "nothing ran", "#d1242f"),
    ],
)
def test_the_badge_counts_and_its_colour_is_the_exit_status(
    report: Report, status: int, told: str, colour: str
) -> None:
    its = replace(report, footer=Footer(1, 1, 0, 1, status))
    text = badge.drawn(its)
    assert colour in text
    assert badge.told(its) == told
    assert ET.fromstring(text).get("aria-label") == f"trackgauge: {told}"


def test_the_badge_of_a_system_that_was_hardly_judged_says_so_and_is_not_green(report: Report) -> None:
    held, skipped = report.results[0], next(one for one in report.results if one.verdict is Verdict.SKIP)
    others = [replace(skipped, requirement=f"RET-{number:03}") for number in range(100, 104)]
    elsewhere = replace(skipped, requirement="REB-001", system=NOT_IN_PLAY)
    its = replace(report, results=(held, *others, elsewhere), footer=Footer(1, 1, 0, 1, 0))
    assert badge.told(its) == "must 1/1 · judged 1 of 5"
    assert badge.LITTLE in badge.drawn(its)
    whole = replace(its, results=(held, elsewhere))
    assert badge.told(whole) == "must 1/1"
    assert badge.COLOURS[ExitStatus.AS_EXPECTED] in badge.drawn(whole)
