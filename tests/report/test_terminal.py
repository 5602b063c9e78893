"""The end of a run, as a reader sees it."""

import io
from dataclasses import dataclass, replace

import pytest

from conformance.contract.vocabulary import Level, Verdict
from conformance.report import terminal
from conformance.report.results import Report, Result, Sentences
from conformance.report.summary import ExitStatus
from conformance.requirements import catalogue

pytestmark = pytest.mark.unit


@dataclass(frozen=True)
class Told:
    statement: str
    harm: str
    level: Level = Level.MUST


SENTENCES = {
    "STR-007": Told(
        "A call retried after its stream was cut is trained once, whichever of the two answers the harness used.",
        "The trainer sees two branches and discards the rollout.",
    )
}


def again(scenario: str) -> str:
    return f"trackgauge run --system acme.toml '{scenario}'"


def blocks(text: str) -> dict[str, list[str]]:
    """The paragraphs of a rendered report by their first line."""
    return {lines[0]: lines[1:] for lines in (part.splitlines() for part in text.strip().split("\n\n"))}


def test_a_failure_is_a_block_that_can_be_read_without_the_source(report: Report) -> None:
    text = terminal.render(report, SENTENCES, "report/results.ndjson", again)
    scenario = report.results[3].scenario
    assert blocks(text)["FAIL STR-007 (MUST) · acme 0.3"] == [
        f"  scenario {scenario}",
        "  rule     A call retried after its stream was cut is trained once, whichever of",
        "           the two answers the harness used.",
        "  expected 2",
        "  seen     3",
        "  where    session s-41f0",
        "  harm     The trainer sees two branches and discards the rollout.",
        "  evidence report/evidence/cut.json",
        f"  again    {again('STR-007')}",
    ]


def test_findings_come_in_order_of_weight_and_what_is_explained_comes_last(report: Report) -> None:
    titles = list(blocks(terminal.render(report, SENTENCES, "report/results.ndjson")))[:-2]
    assert titles == [
        "ERROR of the suite, not of a system",
        "FAIL STR-007 (MUST) · acme 0.3",
        "FAIL CAP-002 (SHOULD, does not gate) · acme 0.3",
        "ERROR RET-003 (MUST) · acme 0.3",
        "INCONCLUSIVE RET-001 (MUST) · acme 0.3",
        "STALE VAL-002 (MUST) · acme 0.3",
        "INCONCLUSIVE STR-008 (MUST) · acme 0.3",
        "KNOWN VAL-001 (MUST) · acme 0.3",
    ]


def test_the_table_counts_requirements_by_family_and_level(report: Report) -> None:
    table = terminal.render(report, SENTENCES, "report/results.ndjson").split("\n\n")[-2].splitlines()
    assert [line.split() for line in table] == [
        ["family", "must", "should", "may", "skipped", "known", "stale", "open"],
        ["CAP", "1/1", "0/1", "·", "·", "·", "·", "·"],
        ["RET", "0/2", "·", "·", "1", "·", "·", "2"],
        ["STR", "0/2", "·", "·", "·", "·", "·", "1"],
        ["VAL", "1/2", "·", "·", "·", "1", "1", "·"],
    ]


def test_the_end_says_what_was_held_and_where_the_results_are(report: Report) -> None:
    lines = terminal.render(report, SENTENCES, "some/where/results.ndjson").splitlines()
    assert lines[-1] == "results some/where/results.ndjson"
    assert lines[-3].endswith("errors 2 · judged 8 of 9")
    assert lines[-2] == "40 scenarios · 21 servers · 12.3 s · exit 1: not conforming, or not shown to be"
    assert terminal.closing(report.results, report.errors) == (
        "must 2/7 · should 0/1 · may 0/0 · skipped 1 · known 1 (stale 1) · inconclusive 2 · errors 2 · judged 8 of 9"
    )
    assert terminal.closing(report.results[:3], ()) == (
        "must 1/1 · should 0/1 · may 0/0 · skipped 0 · known 0 (stale 0)"
    )


def test_eighty_columns_hold_all_but_what_must_not_be_broken(report: Report) -> None:
    long = replace(report.results[3], seen=list(range(4000)), expected=[*range(3000), 0, *range(3001, 4000)])
    text = terminal.render(replace(report, results=(long,)), SENTENCES, "report/results.ndjson")
    whole = ("  scenario ", "  evidence ", "  again ", "results ")
    assert all(len(line) <= 80 for line in text.splitlines() if not line.startswith(whole))
    assert '"index": 3000' in text


def test_values_from_the_wire_neither_colour_nor_break_the_terminal(report: Report) -> None:
    hostile = "\x1b[2J\r[bold]:smile:[/bold]\x00\ud800"
    bad = Result("SEC-001", Level.MUST, hostile, hostile, Verdict.FAIL, True, hostile, [hostile], hostile, hostile)
    text = terminal.render(replace(report, results=(bad,)), SENTENCES, "report/results.ndjson")
    assert not {"\x1b", "\r", "\x00", "\ud800"} & set(text)
    assert "[bold]:smile:[/bold]" in text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_is_for_terminals_only(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("TERM", raising=False)
    pipe, screen = io.StringIO(), Terminal()
    terminal.show(report, SENTENCES, pipe, "report/results.ndjson")
    terminal.show(report, SENTENCES, screen, "report/results.ndjson")
    assert "\x1b" not in pipe.getvalue()
    assert "\x1b[1;31mFAIL\x1b[0m STR-007" in screen.getvalue()


def test_a_stream_that_knows_no_unicode_is_served(report: Report) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    terminal.show(report, SENTENCES, stream, "report/results.ndjson")
    assert b"FAIL STR-007 (MUST) \\xb7 acme 0.3" in raw.getvalue()


def test_the_catalogue_gives_the_sentences() -> None:
    sentences: Sentences = catalogue.load()
    assert all(sentence.statement for sentence in sentences.values())


def test_every_exit_status_has_a_meaning() -> None:
    assert set(terminal.MEANINGS) == set(ExitStatus)


def test_a_requirement_that_fails_in_many_scenarios_is_told_once_with_all_their_names(report: Report) -> None:
    (failure,) = [line for line in report.results if line.requirement == "STR-007"]
    twice = replace(report, results=(*report.results, replace(failure, scenario="streams/test_other.py::test_b")))
    found = blocks(terminal.render(twice, SENTENCES, "report/results.ndjson"))["FAIL STR-007 (MUST) · acme 0.3"]
    assert found[-1] == "  also in  streams/test_other.py::test_b"
    assert sum(line.startswith("  rule") for line in found) == 1


def test_a_family_of_which_nothing_was_judged_takes_no_line_of_the_table(report: Report) -> None:
    skipped = tuple(
        replace(line, verdict=Verdict.SKIP) for line in report.results if line.requirement.startswith("CAP")
    )
    others = tuple(line for line in report.results if not line.requirement.startswith("CAP"))
    text = terminal.render(replace(report, results=(*others, *skipped)), SENTENCES, "report/results.ndjson")
    table = text.split("\n\n")[-2].splitlines()
    assert [line.split()[0] for line in table] == ["family", "RET", "STR", "VAL"]
