"""How requirement files are read, and what each slip in them says."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.contract.vocabulary import Level, SystemKind
from conformance.requirements import CatalogueError, load, missing

CAPABILITIES = 'chat = "Chats."\nrecords-disk = "Keeps files."\nretrieval-http = "Hands records out."\n'

FAMILY = """
[family]
code = "SES"
title = "sessions"
about = "Which session a call belongs to."
place = 1
applies_to = "proxy"
needs = ["chat"]
since = "1.0"
"""

REQUIREMENT = """
[SES-001]
level = "MUST"
needs = ["records-disk|retrieval-http"]
statement = "A call is recorded."
harm = "Nothing can be trained."
origin = { kind = "pr", ref = "Switchyard#63" }
"""

Written = Callable[..., Path]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """A catalogue folder made of texts: each keyword a family file, ``sets`` a mapping of set files."""

    def write(capabilities: str = CAPABILITIES, sets: dict[str, str] | None = None, **families: str) -> Path:
        (tmp_path / "families").mkdir()
        (tmp_path / "sets").mkdir()
        (tmp_path / "capabilities.toml").write_text(capabilities, encoding="utf-8")
        for name, text in families.items():
            (tmp_path / "families" / f"{name}.toml").write_text(text, encoding="utf-8")
        for name, text in (sets or {}).items():
            (tmp_path / "sets" / f"{name}.toml").write_text(text, encoding="utf-8")
        return tmp_path

    return write


def test_a_requirement_takes_kind_version_and_needs_of_its_family(written: Written) -> None:
    requirement = load(directory=written(sessions=FAMILY + REQUIREMENT))["SES-001"]
    assert requirement.applies_to is SystemKind.PROXY
    assert requirement.since == "1.0"
    assert requirement.needs == ("chat", "records-disk|retrieval-http")
    assert requirement.family == "SES"
    assert requirement.checkable
    assert requirement.gates_others


def test_an_excluded_requirement_is_listed_and_not_checkable(written: Written) -> None:
    text = FAMILY + REQUIREMENT + 'excluded = "Nobody can see it."\n'
    requirement = load(directory=written(sessions=text))["SES-001"]
    assert not requirement.checkable
    assert requirement.excluded == "Nobody can see it."


def test_a_decision_of_the_project_does_not_gate_other_systems(written: Written) -> None:
    text = FAMILY + REQUIREMENT.replace('kind = "pr"', 'kind = "project"')
    assert not load(directory=written(sessions=text))["SES-001"].gates_others


def test_families_stand_in_the_order_of_their_places(written: Written) -> None:
    first = FAMILY.replace("SES", "ZZZ") + REQUIREMENT.replace("SES", "ZZZ")
    second = FAMILY.replace("place = 1", "place = 2") + REQUIREMENT
    assert list(load(directory=written(aaa=second, zzz=first))) == ["ZZZ-001", "SES-001"]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        pytest.param('level = "MUST"', 'level = "must"', "level: 'must'; allowed: MUST, SHOULD, MAY", id="level"),
        pytest.param('level = "MUST"\n', "", "[SES-001] level: missing", id="no-level"),
        pytest.param("harm =", "hram =", "hram: unknown key; allowed: level, needs", id="unknown-key"),
        pytest.param('harm = "Nothing can be trained."\n', "", "[SES-001] harm: missing", id="must-without-harm"),
        pytest.param("A call is recorded.", " ", "statement: ' '; allowed: a text of one line", id="blank-statement"),
        pytest.param("records-disk|", "record-disk|", "'record-disk' is no capability; allowed: chat", id="capability"),
        pytest.param('["records-disk|retrieval-http"]', '"chat"', "allowed: a list of capabilities", id="needs-text"),
        pytest.param('kind = "pr"', 'kind = "rumour"', "kind: 'rumour'; allowed: pr, recording", id="origin-kind"),
        pytest.param('ref = "Switchyard#63"', 'ref = ""', "origin ref: ''", id="origin-without-ref"),
        pytest.param("ref =", "at =", "origin at: unknown key; allowed: kind, ref", id="origin-key"),
        pytest.param("[SES-001]", "[SES-1]", "[SES-1]: not an id here; allowed: SES-001 to SES-999", id="short-id"),
        pytest.param("[SES-001]", "[CAP-001]", "[CAP-001]: not an id here", id="id-of-another-family"),
        pytest.param('applies_to = "proxy"', 'applies_to = "client"', "allowed: proxy, rebuild", id="kind"),
        pytest.param('since = "1.0"', "since = 1.0", "since: 1.0; allowed: a contract version", id="since"),
        pytest.param("place = 1", "place = 0", "place: 0; allowed: a whole number from 1", id="place"),
        pytest.param('title = "sessions"\n', "", "[family] title: missing", id="no-title"),
        pytest.param("[family]", "[families]", "[family]: missing; allowed: a table", id="no-family"),
        pytest.param("[SES-001]", "[SES-001", "sessions.toml: not TOML:", id="not-toml"),
    ],
)
def test_a_slip_is_told_on_one_line_with_file_key_and_what_is_allowed(
    written: Written, old: str, new: str, complaint: str
) -> None:
    text = FAMILY + REQUIREMENT
    assert old in text
    with pytest.raises(CatalogueError) as caught:
        load(directory=written(sessions=text.replace(old, new, 1)))
    message = str(caught.value)
    assert complaint in message
    assert message.startswith("sessions.toml: ")
    assert "\n" not in message


def test_an_id_that_stands_twice_is_refused(written: Written) -> None:
    with pytest.raises(CatalogueError, match=r"sessions\.toml: not TOML: .*SES-001"):
        load(directory=written(sessions=FAMILY + REQUIREMENT + REQUIREMENT))


def test_a_family_code_that_is_taken_is_refused(written: Written) -> None:
    second = FAMILY.replace("place = 1", "place = 2")
    with pytest.raises(CatalogueError, match=r"two\.toml: \[family\] code: SES is taken"):
        load(directory=written(one=FAMILY + REQUIREMENT, two=second))


def test_a_place_that_is_taken_is_refused(written: Written) -> None:
    second = FAMILY.replace("SES", "CAP")
    with pytest.raises(CatalogueError, match=r"two\.toml: \[family\] place: 1 is taken by one\.toml"):
        load(directory=written(one=FAMILY + REQUIREMENT, two=second))


def test_a_capability_without_its_sentence_is_refused(written: Written) -> None:
    with pytest.raises(CatalogueError, match=r"capabilities\.toml: chat: 1; allowed: a text"):
        load(directory=written(capabilities="chat = 1\n", sessions=FAMILY))


def test_a_missing_capability_is_the_reason_for_a_skip(written: Written) -> None:
    requirement = load(directory=written(sessions=FAMILY + REQUIREMENT))["SES-001"]
    assert missing(requirement, {"chat", "retrieval-http"}) is None
    assert missing(requirement, {"chat"}) == "not declared: records-disk or retrieval-http"
    assert missing(requirement, set()) == "not declared: chat, records-disk or retrieval-http"


def test_a_requirement_gives_way_to_a_capability_that_is_declared_instead(written: Written) -> None:
    text = FAMILY + REQUIREMENT.replace("needs = ", "unless = ")
    text = text.replace('"records-disk|retrieval-http"', '"records-disk"')
    requirement = load(directory=written(sessions=text))["SES-001"]
    assert missing(requirement, {"chat"}) is None
    assert missing(requirement, {"chat", "records-disk"}) == "declared instead: records-disk"


def test_a_frozen_set_keeps_its_ids_and_levels_whatever_the_catalogue_says_now(written: Written) -> None:
    text = FAMILY + REQUIREMENT + REQUIREMENT.replace("001", "002")
    directory = written(sessions=text, sets={"2026-12": 'SES-002 = "SHOULD"\n'})
    frozen = load("2026-12", directory=directory)
    assert list(frozen) == ["SES-002"]
    assert frozen["SES-002"].level is Level.SHOULD
    assert frozen.set_name == "2026-12"
    assert load(directory=directory)["SES-002"].level is Level.MUST


def test_an_unknown_set_is_told_with_the_sets_there_are(written: Written) -> None:
    directory = written(sessions=FAMILY + REQUIREMENT, sets={"2026-12": 'SES-001 = "MUST"\n'})
    with pytest.raises(CatalogueError, match="set '2027-01' is unknown; allowed: 2026-12"):
        load("2027-01", directory=directory)


def test_a_set_that_names_a_vanished_requirement_is_refused(written: Written) -> None:
    directory = written(sessions=FAMILY + REQUIREMENT, sets={"2026-12": 'SES-009 = "MUST"\n'})
    with pytest.raises(CatalogueError, match=r"sets/2026-12\.toml: SES-009: no such requirement"):
        load("2026-12", directory=directory)


def test_loading_the_catalogue_imports_no_third_party_library() -> None:
    code = (
        "import sys; before = set(sys.modules); import conformance.requirements as r; r.load();"
        "tops = {name.split('.')[0] for name in set(sys.modules) - before};"
        "print(sorted(tops - set(sys.stdlib_module_names) - {'conformance'}))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert run.stdout.strip() == "[]"
