"""A report is read back whole, or refused in one line that says where."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from conformance.contract.vocabulary import Level, Verdict
from conformance.report import ndjson, schema
from conformance.report.results import Footer, Header, Result, SuiteError

pytestmark = pytest.mark.unit

HEADER = Header("0.1.0", "1.0", "2026-12", {"proxy": "reference 0.1.0"}, {"vllm": "0.32"}, "2026-12-01T00:00:00Z")
FOOTER = Footer(seconds=1.5, servers_started=2, starts_refused=0, scenarios=2, exit_status=1)
HELD = Result("CAP-001", Level.MUST, "cap.py::test_a", "reference", Verdict.PASS, gates=True)
BROKEN = Result("STR-007", Level.MUST, "str.py::test_b", "reference", Verdict.FAIL, True, expected=2, seen=3)
ERROR = SuiteError("str.py::test_c", "fixture `proxy` broke")


def written(folder: Path) -> Path:
    path = folder / "report" / "results.ndjson"
    ndjson.write(path, HEADER, [HELD, BROKEN], [ERROR], FOOTER)
    return path


def edited(folder: Path, change: Callable[[list[str]], list[str]]) -> Path:
    path = written(folder)
    path.write_text("".join(line + "\n" for line in change(path.read_text("utf-8").splitlines())), "utf-8")
    return path


def refusal(path: Path) -> str:
    with pytest.raises(ndjson.ReportError) as caught:
        ndjson.read(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{path}:{caught.value.line}: ")
    return message.removeprefix(f"{path}:")


def test_what_was_written_is_read_back_with_the_verdicts_counted(tmp_path: Path) -> None:
    report = ndjson.read(written(tmp_path))
    assert (report.header, report.results, report.errors) == (HEADER, (HELD, BROKEN), (ERROR,))
    assert report.footer.verdicts["pass"] == 1
    assert report.footer.verdicts["fail"] == 1
    assert sum(report.footer.verdicts.values()) == 2


def test_each_line_is_on_disk_before_the_next_is_known(tmp_path: Path) -> None:
    path = tmp_path / "results.ndjson"
    with ndjson.Writer(path, HEADER) as writer:
        writer.result(BROKEN)
        assert [json.loads(line)["kind"] for line in path.read_text("utf-8").splitlines()] == ["header", "result"]
    assert "no footer" in refusal(path)


def test_a_report_without_its_footer_is_refused(tmp_path: Path) -> None:
    assert refusal(edited(tmp_path, lambda lines: lines[:-1])).startswith("4: no footer after this line")


def test_a_repeated_verdict_is_refused_by_reader_and_writer(tmp_path: Path) -> None:
    message = refusal(edited(tmp_path, lambda lines: [*lines[:3], lines[2], *lines[3:]]))
    assert message == "4: a second verdict on STR-007 in str.py::test_b; give one per scenario"
    with pytest.raises(ndjson.ReportError, match="second verdict on CAP-001"):
        ndjson.write(tmp_path / "again.ndjson", HEADER, [HELD, HELD], [], FOOTER)


def test_an_unknown_verdict_is_refused_with_the_known_ones_named(tmp_path: Path) -> None:
    message = refusal(edited(tmp_path, lambda lines: [line.replace('"fail"', '"flaky"') for line in lines]))
    assert message.startswith("3: verdict: 'flaky' is not one of ['pass', 'fail'")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(lambda lines: [], "1: no header", id="empty"),
        pytest.param(lambda lines: lines[1:], "1: the header must be the first line", id="headless"),
        pytest.param(lambda lines: [lines[0], *lines], "2: the header must be", id="two headers"),
        pytest.param(lambda lines: [*lines, lines[1]], "6: a line after the footer", id="after the footer"),
        pytest.param(lambda lines: [lines[0], lines[1][:30], *lines[2:]], "2: not JSON", id="half a line"),
        pytest.param(lambda lines: [lines[0], "[" * 20_000, *lines[2:]], "2: not JSON", id="too deep"),
        pytest.param(lambda lines: [lines[0], "[]", *lines[2:]], "2: a line must be an object", id="a list"),
        pytest.param(lambda lines: [lines[0], '{"kind":[]}'], "2: kind must be one of header,", id="no kind"),
        pytest.param(lambda lines: [lines[0], *lines[2:]], "4: the footer counts", id="a line lost"),
        pytest.param(
            lambda lines: [lines[0].replace('"v":1', '"v":2'), *lines[1:]], "1: report version 2", id="version"
        ),
        pytest.param(
            lambda lines: [lines[0], lines[1].replace('"gates":true', '"gates":"yes"'), *lines[2:]],
            "2: gates: 'yes' is not of type 'boolean'",
            id="type",
        ),
    ],
)
def test_a_damaged_report_is_refused_with_its_line(
    tmp_path: Path, change: Callable[[list[str]], list[str]], said: str
) -> None:
    assert refusal(edited(tmp_path, change)).startswith(said)


def test_a_missing_file_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "absent.ndjson"
    with pytest.raises(ndjson.ReportError) as refused:
        ndjson.read(path)
    assert str(refused.value) == f"{path}: cannot be read: No such file or directory"


def test_unknown_keys_are_ignored(tmp_path: Path) -> None:
    path = edited(tmp_path, lambda lines: [line.replace("{", '{"later":1,', 1) for line in lines])
    assert ndjson.read(path).results == (HELD, BROKEN)


def test_the_shipped_schema_is_the_exported_one() -> None:
    shipped = json.loads(schema.SCHEMA.read_text("utf-8"))
    assert shipped == schema.exported(), (
        f"write the output of python -m conformance.report.schema to {schema.SCHEMA.name}"
    )


def test_real_lines_are_of_the_published_form_and_broken_ones_are_not(tmp_path: Path) -> None:
    validator = Draft202012Validator(json.loads(schema.SCHEMA.read_text("utf-8")))
    lines = [json.loads(line) for line in written(tmp_path).read_text("utf-8").splitlines()]
    for line in lines:
        validator.validate(line)
        for key in line:
            assert not validator.is_valid({name: value for name, value in line.items() if name != key}), key


@pytest.mark.parametrize("odd", [None, True, 0, 1.5, "1", "fail", [], {}, [1], {"a": 1}], ids=repr)
def test_what_the_types_take_for_the_published_form_the_schema_does_too(tmp_path: Path, odd: object) -> None:
    taken = 0
    for line in (json.loads(line) for line in written(tmp_path).read_text("utf-8").splitlines()):
        for key in line:
            changed = {**line, key: odd}
            if schema.fits(changed, json.dumps(changed).encode()):
                taken += 1
                assert schema.problem_of(changed) is None, (key, odd)
    assert taken > 0


def test_values_that_json_lacks_are_told_in_words_and_keep_the_line_readable(tmp_path: Path) -> None:
    odd = {
        "nan": math.nan, "bytes": b"\xff", "huge": 2**70, "surrogate": "\ud800", "tuple": (1, True, 2.0), "set": {2, 1},
        "enum": Level.MAY, 7: "key",
    }  # fmt: skip
    path = tmp_path / "results.ndjson"
    result = Result("CAP-002", Level.MAY, "cap.py::test_odd", "reference", Verdict.FAIL, False, seen=odd)
    ndjson.write(path, HEADER, [result], [], FOOTER)
    [read] = ndjson.read(path).results
    assert read.seen == {
        "nan": "float nan", "bytes": "bytes b'\\xff'", "huge": 2**70, "surrogate": "\ud800", "tuple": [1, True, 2.0],
        "set": [1, 2], "enum": "MAY", "int 7": "key",
    }  # fmt: skip


def test_long_lists_are_shortened_in_the_middle_and_say_so(tmp_path: Path) -> None:
    path = tmp_path / "results.ndjson"
    result = Result("CAP-003", Level.MUST, "cap.py::test_long", "reference", Verdict.FAIL, True, seen=list(range(5000)))
    ndjson.write(path, HEADER, [result], [], FOOTER)
    [read] = ndjson.read(path).results
    assert read.seen[:2] == [0, 1]
    assert read.seen[32] == "… 4936 of 5000 items left out …"
    assert read.seen[-1] == 4999
