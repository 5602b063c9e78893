"""What is listed as known to fail, in whole runs and in parts of one."""

from pathlib import Path

import pytest

from conformance.gauge.known import lists_for
from conformance.requirements.catalogue import load
from conformance.systems.known_failures import form
from conformance.systems.known_failures.text import text_of
from conformance.systems.profiles import choose, names
from conformance.systems.tables import ProfileError
from tests.gauge.suite import Ran, Suite

VIOLATED = '@covers("CAP-001", "CAP-002")\ndef test_it(check):\n    check("CAP-001", False, expected=1, seen=2)\n'
VIOLATED += '    check("CAP-002", True)\n'
HELD = VIOLATED.replace("False, expected=1, seen=2", "True")
TWICE = """
@covers("CAP-001")
@pytest.mark.parametrize("there", [True, False], ids=["held", "violated"])
def test_it(check, there):
    check("CAP-001", there, expected=1, seen=2)
"""


def listed(suite: Suite, entries: str, system: str = "reference") -> str:
    file = suite.folder / "known.toml"
    file.write_text(f'system = "{system}"\n{entries}', encoding="utf-8")
    return f"--known-failures={file}"


def run_with(suite: Suite, scenarios: str, entries: str, *more: str, all_of_it: bool = True) -> Ran:
    return suite.run(scenarios, listed(suite, entries), *more, all_of_it=all_of_it)


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["plain", "two workers"])
def test_a_listed_failure_is_known_and_fails_no_run(suite: Suite, workers: tuple[str, ...]) -> None:
    ran = run_with(suite, VIOLATED, '[CAP-001]\nreason = "stores every attempt"', *workers)
    assert (ran.status, ran.verdicts) == (0, {"CAP-001": "known", "CAP-002": "pass"})
    line = ran.result("CAP-001")
    assert (line["gates"], line["reason"], line["expected"], line["seen"]) == (False, "stores every attempt", 1, 2)
    assert "KNOWN CAP-001 (MUST)" in ran.output
    assert "stores every attempt" in ran.output
    assert "1 xfailed" in ran.output


def test_what_is_not_listed_still_fails_beside_what_is(suite: Suite) -> None:
    scenario = VIOLATED.replace('"CAP-002", True', '"CAP-002", False')
    ran = run_with(suite, scenario, '[CAP-001]\nreason = "r"')
    assert (ran.status, ran.verdicts) == (1, {"CAP-001": "known", "CAP-002": "fail"})


def test_a_known_failure_explains_what_was_not_reached_behind_it(suite: Suite) -> None:
    scenario = VIOLATED.replace('check("CAP-001"', 'check.need("CAP-001"')
    ran = run_with(suite, scenario, '[CAP-001]\nreason = "r"')
    assert (ran.status, ran.verdicts) == (0, {"CAP-001": "known", "CAP-002": "inconclusive"})


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["plain", "two workers"])
def test_a_listed_requirement_that_holds_is_stale(suite: Suite, workers: tuple[str, ...]) -> None:
    ran = run_with(suite, HELD, '[CAP-001]\nreason = "stores every attempt"', *workers)
    assert (ran.status, ran.verdicts) == (3, {"CAP-001": "stale", "CAP-002": "pass"})
    assert "take CAP-001 off the known failures" in ran.output


def test_a_listed_requirement_is_not_stale_while_it_fails_somewhere(suite: Suite) -> None:
    ran = run_with(suite, TWICE, '[CAP-001]\nreason = "r"')
    verdicts = {line["scenario"][-9:]: line["verdict"] for line in ran.lines if line["kind"] == "result"}
    assert (ran.status, verdicts) == (0, {"violated]": "known", "_it[held]": "pass"})


@pytest.mark.parametrize(
    ("seen_in", "status"),
    [
        pytest.param("", 0, id="nobody knows where it failed"),
        pytest.param('seen_in = ["test_here.py::test_it[violated]"]', 0, id="where it failed was not played"),
        pytest.param('seen_in = ["test_here.py::test_it[held]"]', 3, id="where it failed it passed"),
    ],
)
def test_a_part_of_the_scenarios_makes_an_entry_stale_only_where_it_failed(
    suite: Suite, seen_in: str, status: int
) -> None:
    ran = run_with(suite, TWICE, f'[CAP-001]\nreason = "r"\n{seen_in}', "-k", "held")
    assert ran.status == status


def test_a_run_that_is_cut_cannot_tell_what_is_stale_where_nobody_knows_where_it_failed(suite: Suite) -> None:
    scenario = HELD + '@covers("CAP-003")\ndef test_next(check):\n    check("CAP-003", False)\n'
    scenario += '@covers("CAP-001")\ndef test_never_played(check):\n    check("CAP-001", False)\n'
    ran = run_with(suite, scenario, '[CAP-001]\nreason = "r"', "-x", "-p", "no:randomly")
    assert ran.verdicts == {"CAP-001": "pass", "CAP-002": "pass", "CAP-003": "fail"}
    assert ran.lines[-1]["cut"] is True


@pytest.mark.parametrize("why", ["skipped", "not played"])
def test_a_listed_requirement_that_was_not_judged_is_neither_known_nor_stale(suite: Suite, why: str) -> None:
    scenario = VIOLATED.replace("False", "True") if why == "skipped" else '@covers("CAP-002")\ndef test_it(check):\n'
    scenario = scenario if why == "skipped" else scenario + '    check("CAP-002", True)\n'
    capabilities = '["chat"]' if why == "skipped" else '["chat", "records-disk"]'
    profile = suite.folder / "acme.toml"
    profile.write_text(
        f'name = "acme"\nkind = "proxy"\ncapabilities = {capabilities}\n[start]\ncommand = ["true"]\n[routing]\n'
        '[retrieval]\nrecords_on_disk = "*.json"\n'
    )
    (suite.folder / "acme.known_failures.toml").write_text('system = "acme"\n[CAP-001]\nreason = "r"\n')
    ran = suite.run(scenario, f"--system={profile}", all_of_it=True)
    assert ran.verdicts.get("CAP-001", "skip") == "skip"
    assert ran.status == (5 if why == "skipped" else 0)


@pytest.mark.parametrize("scenario", [VIOLATED, HELD], ids=["violated", "held"])
def test_what_is_disputed_is_shown_with_its_link_and_gates_neither_way(suite: Suite, scenario: str) -> None:
    ran = run_with(suite, scenario, '[CAP-001]\nreason = "r"\ndisputed = "https://example.org/17"')
    assert ran.status == 0
    line = ran.result("CAP-001")
    assert (line["gates"], line["disputed"]) == (False, "https://example.org/17")
    assert "https://example.org/17" in ran.output


def test_an_entry_may_cover_what_a_system_keeps_from_being_judged(suite: Suite) -> None:
    scenario = '@covers("CAP-001")\ndef test_it(check):\n    raise Inconclusive("nothing came")\n'
    plain = run_with(suite, scenario, '[CAP-001]\nreason = "r"')
    assert (plain.status, plain.verdicts) == (1, {"CAP-001": "inconclusive"})
    covered = run_with(suite, scenario, '[CAP-001]\nreason = "r"\ninconclusive = true')
    assert (covered.status, covered.verdicts) == (0, {"CAP-001": "known"})


def test_none_judges_as_if_nothing_were_known(suite: Suite) -> None:
    profile = suite.folder / "acme.toml"
    profile.write_text(
        'name = "acme"\nkind = "rebuild"\ncapabilities = ["rebuild-session"]\n[start]\ncommand = ["true"]\n'
    )
    (suite.folder / "acme.known_failures.toml").write_text('system = "acme"\n[REB-001]\nreason = "r"\n')
    scenario = VIOLATED.replace("CAP", "REB")
    assert suite.run(scenario, f"--system={profile}").status == 0
    assert suite.run(scenario, f"--system={profile}", "--known-failures=none").status == 1


def test_a_list_made_of_a_run_makes_the_next_one_end_as_expected(suite: Suite) -> None:
    file = suite.folder / "known.toml"
    system = ("--system=reference", f"--known-failures={file}")
    assert suite.run(TWICE, *system, "--write-known-failures", all_of_it=True).status == 1
    made = form.load(file)
    assert made.system == "reference"
    entry = made.entries["CAP-001"]
    assert (entry.reason, entry.seen_in) == ("expected 1, seen 2", ("test_here.py::test_it[violated]",))
    assert suite.run(TWICE, *system, all_of_it=True).status == 0


def test_writing_keeps_words_and_links_of_what_still_fails_and_drops_what_holds(suite: Suite) -> None:
    file = suite.folder / "known.toml"
    entries = (
        '[CAP-001]\nreason = "by hand"\nevidence = "see 17"\ndisputed = "https://example.org/17"\n'
        '[CAP-002]\nreason = "was so once"\n[CAP-003]\nreason = "not played here"\n'
    )
    comment = "# what Jo wrote"
    file.write_text(f'{comment}\nsystem = "reference"\n{entries}', encoding="utf-8")
    ran = suite.run(
        VIOLATED, "--system=reference", f"--known-failures={file}", "--write-known-failures", all_of_it=True
    )
    assert ran.status == 3
    assert "2 known failures of reference, 0 new, 1 dropped" in ran.output
    after = form.load(file)
    assert file.read_text().startswith(comment)
    assert set(after.entries) == {"CAP-001", "CAP-003"}
    kept = after.entries["CAP-001"]
    assert (kept.reason, kept.evidence, kept.disputed) == ("by hand", "see 17", "https://example.org/17")
    assert after.entries["CAP-003"].reason == "not played here"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("system = ", "is not TOML", id="not TOML"),
        pytest.param('[CAP-001]\nreason = "r"', "system: is missing; expected a string", id="no system"),
        pytest.param('system = "acme"', "system: 'acme' is not judged by this run", id="another system"),
        pytest.param(
            'system = "reference"\nsystems = "x"', "systems: expected system, version, or", id="a strange key"
        ),
        pytest.param('system = "reference"\n[CAP-001]', "CAP-001.reason: is missing", id="no reason"),
        pytest.param(
            'system = "reference"\n[CAP-001]\nreason = "r"\nwhy = "x"',
            "CAP-001.why: unknown key; allowed here: disputed, evidence, inconclusive, reason, seen_in",
            id="a strange key of an entry",
        ),
        pytest.param('system = "reference"\n[CAP-999]\nreason = "r"', "CAP-999: no such requirement", id="no such id"),
        pytest.param(
            'system = "reference"\n[REB-001]\nreason = "r"',
            "REB-001: speaks of a rebuild; reference is a proxy",
            id="of another kind",
        ),
        pytest.param(
            'system = "reference"\n[CAP-001]\nreason = "r"\ndisputed = "ask Jo"',
            "CAP-001.disputed: expected a link",
            id="no link",
        ),
    ],
)
def test_a_wrong_list_is_refused_in_one_line_that_names_file_key_and_what_is_allowed(
    tmp_path: Path, text: str, told: str
) -> None:
    file = tmp_path / "known.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ProfileError) as raised:
        lists_for(str(file), choose([]), load(), writing=False)
    assert told in str(raised.value)
    assert "known.toml: " in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_wrong_list_ends_a_run_with_status_2(suite: Suite) -> None:
    ran = run_with(suite, HELD, "[CAP-999]\nreason = 'r'")
    assert (ran.status, ran.lines) == (2, [])
    assert "CAP-999: no such requirement" in ran.output
    assert "Traceback" not in ran.output


def test_none_cannot_be_written_since_that_would_lose_what_people_wrote(suite: Suite) -> None:
    ran = suite.run(HELD, "--known-failures=none", "--write-known-failures")
    assert (ran.status, ran.lines) == (2, [])
    assert "--known-failures none: is not to be written" in ran.output


def test_a_list_that_is_not_there_ends_with_one_line_and_status_2(suite: Suite) -> None:
    ran = suite.run(HELD, f"--known-failures={Path(suite.folder, 'gone.toml')}")
    assert ran.status == 2
    assert "gone.toml: cannot be read: No such file or directory" in ran.output


def test_each_list_that_ships_is_of_a_profile_that_ships_and_names_what_is_judged() -> None:
    shipped = sorted(form.HERE.glob("*.toml"))
    assert {path.stem for path in shipped} <= set(names())
    for path in shipped:
        read = lists_for(None, choose([path.stem]), load(), writing=False)
        assert [known.file for known in read.values()] == [path]


def test_a_folder_of_lists_has_a_file_for_each_system_that_has_one(tmp_path: Path) -> None:
    (tmp_path / "reference.toml").write_text('system = "reference"\n[CAP-001]\nreason = "r"\n', encoding="utf-8")
    read = lists_for(str(tmp_path), choose([]), load(), writing=False)
    assert {known.system: list(known.entries) for known in read.values() if known.entries} == {"reference": ["CAP-001"]}
    assert all(known.file.parent == tmp_path for known in read.values())


def test_what_is_written_reads_back_the_same_whatever_a_system_said(tmp_path: Path) -> None:
    odd = 'a "quoted" \\ back\\slash \x7f \x1b[31m ⟦000001:00:0000⟧ é = [x] # no comment'
    entries = {
        "CAP-001": form.KnownFailure(odd, odd, (odd, "b"), "https://example.org/17", inconclusive=True),
        "CAP-002": form.KnownFailure("r"),
    }
    file = tmp_path / "known.toml"
    file.write_text(text_of("reference", odd, entries, "# kept"), encoding="utf-8")
    read = form.load(file)
    assert (read.system, read.version, read.entries) == ("reference", odd, entries)
    assert form.comment_of(file) == "# kept"
