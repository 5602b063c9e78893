"""The adapter for NeMo Gym's rebuilds, over stand-ins with Gym's names: it adds nothing to what Gym says."""

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.scenarios.rebuild.sessions import Session
from conformance.systems import profiles
from conformance.systems.profile_reading import load
from conformance.systems.rebuild import RebuildUnderTest

ADAPTER = Path(profiles.__file__).parent / "adapters" / "gym.py"
Started = Callable[[str], RebuildUnderTest]

TRACE = """
    from collections import namedtuple
    class SwitchyardTraceError(Exception): pass
    fields = "input_items output_items tools record_uuids model partial_reason"
    SwitchyardTrace = namedtuple("SwitchyardTrace", fields, defaults=(None,))
    class Item(dict):
        def model_dump(self): return dict(self)
    def one(record): return record["is_valid"]
    def reconstruct_switchyard_rollout(envelope, session_id, converter, allow_partial=True):
        print("Gym prints")
        records = envelope["completions"]
        if not records: raise SwitchyardTraceError("envelope has no completions")
        for number, record in enumerate(records):
            if record["is_valid"] is not True:
                if number == 0: raise SwitchyardTraceError(f"record {number} is_valid is not true: {one(record)}")
                kept = [one["uuid"] for one in records[:number]]
                return SwitchyardTrace([Item(type="message")], [], [], kept, "m", f"record {number} of 3: no")
        return SwitchyardTrace([], [], [], [one["uuid"] for one in records], records[0]["model"])
"""
CONVERTER = """
    class VLLMConverter:
        def __init__(self, return_token_id_information): pass
"""


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    """Starts the adapter over the stand-ins for one of Gym's rebuilds."""
    for path, text in {
        "nemo_gym/__init__.py": "",
        "nemo_gym/switchyard_trace.py": TRACE,
        "responses_api_models/vllm_model/app.py": CONVERTER,
    }.items():
        file = tmp_path / "gym" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text), encoding="utf-8")
    running: list[RebuildUnderTest] = []

    def start(which: str) -> RebuildUnderTest:
        profile = tmp_path / "gym.toml"
        words = [sys.executable, str(ADAPTER), "--checkout", str(tmp_path / "gym"), "--rebuild", which]
        profile.write_text(
            f'name = "gym"\nkind = "rebuild"\ncapabilities = ["rebuild-session"]\n[start]\ncommand = {words}\n',
            encoding="utf-8",
        )
        running.append(RebuildUnderTest(load(profile), tmp_path))
        return running[-1]

    yield start
    for one in running:
        one.close()


def _envelope(**broken: Any) -> tuple[Session, Any]:
    session = Session()
    turns = session.turns(3)
    for name, value in broken.items():
        turns[int(name[-1])].broken(is_valid=value)
    return session, session.envelope()


def test_what_gym_takes_whole_is_clean_and_what_it_prints_is_no_answer(started: Started) -> None:
    gym, (session, envelope) = started("switchyard-trace"), _envelope()
    answer = gym.ask_now({"envelope": envelope})
    assert (answer["outcome"], answer["withheld"], gym.junk) == ("clean", False, [])
    assert answer["trajectories"][0]["record_uuids"] == [made.uuid for made in session.made]


def test_what_gym_says_must_be_masked_is_withheld_and_what_it_does_not_list_is_not_listed(started: Started) -> None:
    answer = started("switchyard-trace").ask_now({"envelope": _envelope(record_1=False)[1]})
    assert (answer["outcome"], answer["withheld"], answer["reason"]) == ("partial", True, "record 1 of 3: no")
    assert [len(one["record_uuids"]) for one in answer["trajectories"]] == [1]
    assert answer["excluded"] == []


def test_an_error_of_gyms_names_its_rule_and_the_record_that_it_counts(started: Started) -> None:
    session, envelope = _envelope(record_0=5)
    answer = started("switchyard-trace").ask_now({"envelope": envelope})
    assert answer["error"] == {
        "rule": "is_valid is not true",
        "record_uuid": session.made[0].uuid,
        "message": "record 0 is_valid is not true: 5",
    }


def test_any_other_exception_is_told_under_its_type_and_the_next_question_is_answered(started: Started) -> None:
    gym = started("switchyard-trace")
    assert gym.ask_now({"envelope": _envelope(record_0=...)[1]})["error"]["rule"] == "KeyError"
    assert gym.ask_now({"envelope": _envelope()[1]})["outcome"] == "clean"


def test_a_source_that_gym_cannot_read_is_refused(started: Started) -> None:
    answer = started("switchyard-trace").ask_now({"url": "http://127.0.0.1:1"})
    assert answer["error"]["message"] == "one session is rebuilt at a time; seen url"
