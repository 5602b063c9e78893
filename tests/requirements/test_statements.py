"""What every requirement that ships has to be: one plain sentence with a level, a harm and an origin."""

import json
import re
import subprocess
import sys

import pytest

from conformance.contract.vocabulary import Level
from conformance.requirements import Catalogue, CatalogueError, counts, listing, load
from conformance.requirements.catalogue import set_text
from conformance.requirements.listing import entry

CATALOGUE = load()


def test_every_statement_is_one_plain_sentence() -> None:
    def plain(statement: str) -> bool:
        one_sentence = statement.endswith(".") and not re.search(r"[.!?] [A-Z]", statement)
        return len(statement) <= 200 and one_sentence and not re.search(r"[`*<>|]", statement)

    assert [r.statement for r in CATALOGUE.values() if not plain(r.statement)] == []


def test_every_requirement_says_its_harm_in_one_short_sentence() -> None:
    assert [r.id for r in CATALOGUE.values() if not r.harm.endswith(".") or len(r.harm) > 200] == []


def test_every_bug_and_pull_request_can_be_looked_up() -> None:
    forms = {"bug": r"BUG-\d{3} \S+#\d+", "pr": r"(Switchyard|Gym)#\d+"}
    for r in CATALOGUE.values():
        assert re.fullmatch(forms.get(r.origin.kind, ".+"), r.origin.ref), r.id


def test_no_excluded_requirement_explains_a_mutant_it_does_not_need() -> None:
    assert [r.id for r in CATALOGUE.values() if r.excluded and r.no_mutant] == []


def test_no_statement_stands_twice() -> None:
    statements = [r.statement for r in CATALOGUE.values()]
    assert len(statements) == len(set(statements))


def test_ids_of_a_family_rise_without_a_gap() -> None:
    for code in CATALOGUE.families:
        numbers = [int(r.id[4:]) for r in CATALOGUE.values() if r.family == code]
        assert numbers == list(range(1, len(numbers) + 1))


def test_the_families_of_the_spine_are_all_there_and_first() -> None:
    assert list(CATALOGUE.families)[:12] == [
        *("SES", "UPS", "CAP", "VAL", "RET", "STR"),
        *("ERR", "MOD", "CFG", "SEC", "CNC", "REB"),
    ]


def test_the_families_of_dialects_and_harnesses_are_all_there() -> None:
    assert {"ANT", "RSP", "HAR", "TRE", "CMP", "SID", "RTY", "DLC"} <= set(CATALOGUE.families)


def test_well_over_140_requirements_are_checkable() -> None:
    assert sum(r.checkable for r in CATALOGUE.values()) > 140


def test_the_set_of_december_2026_asks_for_known_requirements_in_order() -> None:
    frozen = load("2026-12")
    assert set(frozen) <= set(CATALOGUE)
    assert [key for key in CATALOGUE if key in frozen] == list(frozen)
    assert any(r.level is Level.MUST for r in frozen.values())


def test_a_set_written_from_the_catalogue_reads_back_with_its_levels() -> None:
    text = set_text(CATALOGUE, "2026-12")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert lines == [f'{r.id} = "{r.level.value}"' for r in CATALOGUE.values()]


def test_the_listing_is_a_line_a_requirement() -> None:
    lines = listing(CATALOGUE, family="MOD").splitlines()
    assert len(lines) == sum(r.family == "MOD" for r in CATALOGUE.values())
    assert lines[0].startswith("MOD-001  MUST    GET /v1/models")


def test_of_one_requirement_why_it_is_asked_is_told_too() -> None:
    first, *rows = entry(CATALOGUE, "SES-001").splitlines()
    assert first.startswith("SES-001  MUST  ")
    assert [row.split()[0] for row in rows] == ["harm", "origin", "judges", "needs"]
    assert CATALOGUE["SES-001"].harm in rows[0]
    with pytest.raises(CatalogueError, match="requirement 'SES-999' is unknown"):
        entry(CATALOGUE, "SES-999")


def test_the_json_listing_gives_everything_known_of_a_requirement() -> None:
    rows = json.loads(listing(CATALOGUE, as_json=True))
    assert [row["id"] for row in rows] == list(CATALOGUE)
    assert set(rows[0]) == {
        *("id", "family", "level", "applies_to", "needs", "unless", "statement", "harm"),
        *("origin", "since", "withdrawn", "excluded", "no_mutant"),
    }


def test_an_unknown_family_is_told_with_the_families_there_are() -> None:
    with pytest.raises(CatalogueError, match="family 'XYZ' is unknown; allowed: SES, UPS"):
        listing(CATALOGUE, family="XYZ")


def test_the_count_by_family_adds_up() -> None:
    last = counts(CATALOGUE).splitlines()[-1].split()
    assert [int(number) for number in last[-2:]] == [
        sum(r.checkable for r in CATALOGUE.values()),
        sum(r.excluded is not None for r in CATALOGUE.values()),
    ]


def test_the_module_prints_the_count_by_family() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "conformance.requirements"], capture_output=True, text=True, check=True, timeout=30
    )
    assert run.stdout.strip() == counts(CATALOGUE).strip()


def test_a_catalogue_is_a_mapping_by_id() -> None:
    assert isinstance(CATALOGUE, Catalogue)
    assert all(CATALOGUE[key].id == key for key in CATALOGUE)
