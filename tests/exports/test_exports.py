"""Rollouts as files: nothing is lost on the way into any format, and a spoilt row is told."""

import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.exports.errors import ExportError
from conformance.exports.files import Format, write
from conformance.exports.masks import check, read_rows
from conformance.exports.sources import answers
from conformance.shapes.judging import shapes
from conformance.shapes.play import Play
from conformance.shapes.stage import stage
from conformance.systems.profiles import find
from tests.reference.rebuild.making import call, rebuilt, record, said, system, user

JSON = Any
REBUILD = find("reference-rebuild")


class Captured:
    """A rollout with a child and a broken child, as files: envelopes, the ledger, the rebuild's answer."""

    def __init__(self, folder: Path) -> None:
        self.tree, self.answer, self.ledger = (folder / name for name in ("tree.json", "answer.json", "ledger.json"))
        with stage(folder) as made:
            (one,) = shapes(["broken child"])
            played = Play(made, one.tongue, one.playbook())
            one.act(played)
            envelopes = played.envelopes()
            self.tree.write_text(json.dumps({"sessions": envelopes}))
            self.answer.write_text(json.dumps(made.rebuild.ask_now({"sessions": envelopes})))
            self.ledger.write_text(json.dumps({"rows": played.rows()}))


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Captured:
    return Captured(tmp_path_factory.mktemp("captured"))


def exported(captured: Captured, form: Format, to: Path) -> Path:
    write(answers(str(captured.answer), REBUILD), form, to, sys.stdout)
    return to


@pytest.mark.parametrize("form", [Format.NDJSON, Format.ARROW, Format.PARQUET])
def test_rows_come_back_as_they_were(captured: Captured, form: Format, tmp_path: Path) -> None:
    file = exported(captured, form, tmp_path / f"rows.{form}")
    trajectories = json.loads(captured.answer.read_text())["trajectories"]
    rows = list(read_rows(file))
    assert len(rows) == 3
    for row, one in zip(rows, trajectories, strict=True):
        for key in ("tokens", "mask", "log_probs", "record_uuids", "session_id", "parent", "outcome", "withheld"):
            assert row[key] == one[key], key
    found = check(file, captured.ledger)
    assert found.faults == []
    assert found.trained + found.withheld == found.sampled


def test_a_tree_of_envelopes_is_rebuilt_on_the_way(captured: Captured, tmp_path: Path) -> None:
    file = tmp_path / "rows.ndjson"
    assert write(answers(str(captured.tree), REBUILD), Format.NDJSON, file, sys.stdout) == 3
    assert check(file, captured.ledger).faults == []


def test_an_atif_document_holds_every_sampled_token_on_its_step(captured: Captured, tmp_path: Path) -> None:
    documents = list(read_rows(exported(captured, Format.ATIF, tmp_path / "rows.jsonl")))
    for document, one in zip(documents, json.loads(captured.answer.read_text())["trajectories"], strict=True):
        steps = document["steps"]
        assert [step["step_id"] for step in steps] == list(range(1, len(steps) + 1))
        sampled = [token for step in steps if "metrics" in step for token in step["metrics"]["completion_token_ids"]]
        assert sampled == [token for token, bit in zip(one["tokens"], one["mask"], strict=True) if bit]
        called = {call["tool_call_id"] for step in steps for call in step.get("tool_calls", ())}
        answered = {
            result["source_call_id"] for step in steps for result in step.get("observation", {}).get("results", ())
        }
        assert answered <= called
        assert answered or len(steps) < 4
        assert document["extra"]["withheld"] == one["withheld"]


ATIF_KEYS = {
    "trajectory": {"schema_version", "session_id", "trajectory_id", "agent", "steps", "final_metrics", "extra"},
    "agent": {"name", "version", "model_name", "tool_definitions", "extra"},
    "step": {
        *("step_id", "source", "message", "reasoning_content", "tool_calls", "observation", "metrics"),
        *("llm_call_count", "is_copied_context", "extra"),
    },
    "call": {"tool_call_id", "function_name", "arguments", "extra"},
    "metrics": {"prompt_tokens", "completion_tokens", "prompt_token_ids", "completion_token_ids", "logprobs"},
}
"""Of ATIF 1.7 as published, whose readers refuse any other key; optional ones that are never written are left out."""


def test_an_atif_document_has_no_key_that_its_readers_refuse(captured: Captured, tmp_path: Path) -> None:
    for document in read_rows(exported(captured, Format.ATIF, tmp_path / "rows.jsonl")):
        assert document.keys() <= ATIF_KEYS["trajectory"]
        assert document["agent"].keys() <= ATIF_KEYS["agent"]
        for step in document["steps"]:
            assert step.keys() <= ATIF_KEYS["step"]
            assert step["source"] == "agent" or step.keys() <= {"step_id", "source", "message"}
            assert all(call.keys() <= ATIF_KEYS["call"] for call in step.get("tool_calls", ()))
            assert step.get("metrics", {}).keys() <= ATIF_KEYS["metrics"]


def test_a_response_holds_input_and_output_apart(captured: Captured, tmp_path: Path) -> None:
    documents = list(read_rows(exported(captured, Format.RESPONSES, tmp_path / "rows.jsonl")))
    for document in documents:
        roles = [item.get("role") for item in document["responses_create_params"]["input"]]
        assert roles == ["system", "user"]
        assert any(item.get("generation_token_ids") for item in document["response"]["output"])
        assert all(isinstance(value, str) for value in document["response"]["metadata"].values())
    assert [document["mask_sample"] for document in documents] == [False, True, True]


def spoilt() -> Iterator[tuple[str, Callable[[JSON], None], str]]:
    """One fault each, and the words of the line that has to tell it."""
    yield "a token lost", lambda row: row["tokens"].pop(), "expected one length"
    yield "context masked in", lambda row: row["mask"].__setitem__(0, 1), "expected a log prob where mask is 1"
    yield "a log prob of zero for context", lambda row: row["log_probs"].__setitem__(0, 0.0), "null where mask is 0"
    yield "a mask of true", lambda row: row["mask"].__setitem__(0, False), "expected 0 or 1, seen False"
    yield "an id as a float", lambda row: row["tokens"].__setitem__(0, 7.0), "expected an id"
    yield "the engine's no-entry value", lambda row: _set_log_prob(row, -9999.0), "a finite number"
    yield "a log prob above zero", lambda row: _set_log_prob(row, 0.5), "a finite number"
    yield "a log prob beyond every float", lambda row: _set_log_prob(row, -(10**400)), "a finite number"
    yield "nothing sampled", _mask_out, "seen none"
    yield "no mask", lambda row: row.pop("mask"), "mask: expected a list"
    yield "another token", lambda row: row["tokens"].__setitem__(0, row["tokens"][0] + 1), "behind its own prompt"
    yield "another log prob", lambda row: _set_log_prob(row, -0.123), "with its own log prob"


def _set_log_prob(row: JSON, value: float) -> None:
    row["log_probs"][row["mask"].index(1)] = value


def _mask_out(row: JSON) -> None:
    row["mask"], row["log_probs"] = [0] * len(row["mask"]), [None] * len(row["mask"])


@pytest.mark.parametrize(("spoil", "told"), [pytest.param(fault, told, id=name) for name, fault, told in spoilt()])
def test_a_spoilt_row_is_told_and_hides_no_other(
    captured: Captured, tmp_path: Path, spoil: Callable[[JSON], None], told: str
) -> None:
    rows = list(read_rows(exported(captured, Format.NDJSON, tmp_path / "rows.ndjson")))
    spoil(rows[0])
    rows.append(rows[1])
    file = tmp_path / "spoilt.ndjson"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    first, *others = check(file, captured.ledger).faults
    assert first.startswith("row 1 (session ")
    assert told in first
    assert any("stands in row 2 too" in fault for fault in others)
    assert any("masked in already" in fault for fault in others)


ROW: JSON = {"tokens": [1, 2], "mask": [0, 1], "log_probs": [None, -1.0], "record_uuids": ["u"], "withheld": False}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"record_uuids": ["u", "u"]}, "record u stands in row 1 too"),
        ({"record_uuids": 5}, "record_uuids: expected a list of strings"),
        ({"record_uuids": "abc"}, "record_uuids: expected a list of strings"),
        ({"record_uuids": [["u"]]}, "record_uuids: expected a list of strings"),
        ({"withheld": "false"}, "withheld: expected true or false"),
    ],
)
def test_what_a_row_says_beside_its_tokens_must_be_well_formed(changed: JSON, told: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.ndjson"
    file.write_text(json.dumps(ROW | changed))
    (fault,) = check(file).faults
    assert told in fault


DEEP = "[" * 100_000
GENERATION = {"seq": 1, "prompt_token_ids": [1], "generation_token_ids": [2], "generation_log_probs": [-1.0]}


@pytest.mark.parametrize(
    ("rows", "ledger"),
    [
        (DEEP, json.dumps(GENERATION)),
        (json.dumps(ROW), DEEP),
        (json.dumps(ROW), '{"rows": 5}'),
        (json.dumps(ROW), json.dumps(GENERATION | {"prompt_token_ids": None})),
        (json.dumps(ROW), json.dumps(GENERATION | {"generation_log_probs": None})),
    ],
)
def test_rows_and_ledgers_of_any_form_are_refused_in_one_line(rows: str, ledger: str, tmp_path: Path) -> None:
    (tmp_path / "rows.ndjson").write_text(rows)
    (tmp_path / "ledger.json").write_text(ledger)
    with pytest.raises(ExportError):
        check(tmp_path / "rows.ndjson", tmp_path / "ledger.json")


def test_a_source_that_nests_too_deep_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text(DEEP)
    with pytest.raises(ExportError, match="no JSON"):
        list(answers(str(tmp_path / "deep.json"), REBUILD))


@pytest.mark.parametrize("form", [Format.ARROW, Format.PARQUET])
def test_text_that_columns_cannot_hold_is_refused_in_one_line(captured: Captured, form: Format, tmp_path: Path) -> None:
    (answer,) = answers(str(captured.answer), REBUILD)
    first, *others = answer.trajectories
    odd = answer.model_copy(update={"trajectories": [first.model_copy(update={"session_id": "\ud83d"}), *others]})
    with pytest.raises(ExportError, match="does not fit"):
        write([odd], form, tmp_path / "out", sys.stdout)
    assert list(tmp_path.iterdir()) == []


def test_no_rows_are_no_sound_rows(tmp_path: Path) -> None:
    empty = tmp_path / "rows.ndjson"
    empty.touch()
    assert "nothing was checked" in check(empty).faults[0]


@pytest.mark.parametrize("name", ["rows.ndjson", "rows.parquet", "rows.arrow"])
def test_what_is_no_such_file_is_told_in_one_line(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    with pytest.raises(ExportError, match="no such file"):
        list(read_rows(tmp_path / f"missing-{name}"))
    file.write_text("[1")
    with pytest.raises(ExportError, match=name):
        list(read_rows(file))


def test_without_the_extra_a_line_says_what_to_install(tmp_path: Path, captured: Captured) -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        f"sys.argv = ['trackgauge', 'export', '--from', {str(captured.answer)!r}, '--format', 'parquet',"
        f" '--to', {str(tmp_path / 'rows.parquet')!r}]\n"
        "from conformance.cli import main; main()"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "pyarrow is not installed; pip install 'trackgauge[arrow]'\n"
    assert list(tmp_path.iterdir()) == []


def test_a_rollout_that_leaves_no_row_is_told_and_hides_no_other(tmp_path: Path, captured: Captured) -> None:
    source, to = tmp_path / "answers.ndjson", tmp_path / "rows.ndjson"
    failed = {"id": "r-7", "outcome": "failed", "withheld": True, "reason": "no record", "trajectories": []}
    source.write_text("\n".join(json.dumps(one) for one in (failed, json.loads(captured.answer.read_text()))))
    command = [sys.executable, "-m", "conformance.cli", "export", "--from", str(source), "--to", str(to)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr == "r-7: failed, no row: no record\n3 training sequences\n"
    assert len(list(read_rows(to))) == 3


def test_a_profile_of_a_proxy_makes_no_rollouts_and_is_told_for_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"^--rebuild reference: expected .* of a rebuild, seen that of a proxy$"):
        list(answers(str(tmp_path), find("reference")))


@pytest.mark.parametrize("arguments", ["[" * 100_000, '{"a": NaN}', '{"a": 1e999}', "[1]", '{"a"'])
def test_arguments_that_atif_cannot_hold_stay_as_they_were_written(arguments: str) -> None:
    asked = [system(), user("Look."), said("", call(arguments))]
    answer = rebuilt(record(0, asked, [1, 2], [3]))
    out = io.StringIO()
    assert write([answer], Format.ATIF, None, out) == 1
    (made,) = json.loads(out.getvalue(), parse_constant=pytest.fail)["steps"][-1]["tool_calls"]
    assert (made["arguments"], made["extra"]) == ({}, {"arguments": arguments})
