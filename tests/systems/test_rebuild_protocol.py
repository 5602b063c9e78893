"""The documented protocol: its example answers the suite, and what it shows is of the published form."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from conformance.contract.rebuilds import RebuildAnswer
from conformance.requirements.catalogue import load
from conformance.scenarios.rebuild.sessions import Session
from conformance.systems import profile_reading
from conformance.systems.rebuild import RebuildUnderTest

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "rebuild-protocol.md").read_text(encoding="utf-8")
EXAMPLE = DOCS / "examples" / "one_chain.toml"


def _schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DOCS / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8"))
    return found


@pytest.fixture
def example(tmp_path: Path) -> Iterator[RebuildUnderTest]:
    started = RebuildUnderTest(profile_reading.load(EXAMPLE), tmp_path)
    yield started
    started.close()


def test_what_the_document_shows_is_of_the_published_form() -> None:
    question, answer = (json.loads(shown) for shown in re.findall(r"```json\n(.*?)\n```", TEXT, re.DOTALL))
    jsonschema.validate(question, _schema("rebuild-request"))
    jsonschema.validate(answer, _schema("rebuild-answer"))
    assert question["id"] == answer["id"]


def test_the_document_shows_the_examples_own_profile_and_only_capabilities_that_exist() -> None:
    shown = re.search(r"```toml\n(.*?)\n```", TEXT, re.DOTALL)
    assert shown is not None
    told, own = tomllib.loads(shown[1]), tomllib.loads(EXAMPLE.read_text(encoding="utf-8"))
    assert told == {key: value for key, value in own.items() if key != "about"}
    named = set(re.findall(r"^\| (`.*?) \|", TEXT.partition("## A profile")[2], re.MULTILINE))
    assert {name for cell in named for name in re.findall(r"`([a-z-]+)`", cell)} <= set(load().capabilities)


def test_the_example_is_short_and_makes_one_chain_of_plain_turns(example: RebuildUnderTest) -> None:
    assert len((DOCS / "examples" / "one_chain.py").read_text(encoding="utf-8").splitlines()) <= 45
    session = Session()
    turns = session.turns(3)
    answer = example.ask_now({"envelope": session.envelope()})
    jsonschema.validate(answer, _schema("rebuild-answer"))
    assert RebuildAnswer.model_validate(answer).trajectories[0].record_uuids == [turn.uuid for turn in turns]
    assert example.ask_now({"log_dir": "nowhere"})["outcome"] == "failed"
    assert example.ask_raw(b"{nope", answer_id="")["error"]["rule"] == "JSONDecodeError"
