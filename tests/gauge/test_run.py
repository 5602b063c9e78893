"""``trackgauge run`` in a process of its own, on scenarios that need no system: verdicts, report and exit status."""

import socket
import subprocess
import sys

import pytest

from tests.gauge.suite import Suite

BROKEN = """
name = "broken"
kind = "proxy"
capabilities = ["chat", "records-disk"]
[start]
command = ["{python}", "-c", "import sys; sys.exit('no licence')"]
[routing]
[retrieval]
records_on_disk = "sessions/{sha256}/*.json"
"""


ATTACHED = """
name = "attached"
kind = "proxy"
capabilities = ["chat"]
[attach]
url = "http://127.0.0.1:1"
engine = "http://127.0.0.1:PORT"
"""


def test_a_scenario_whose_checks_hold_passes_and_the_run_ends_as_expected(suite: Suite) -> None:
    ran = suite.run('@covers("CAP-001")\ndef test_it(check):\n    check("CAP-001", True, expected=1, seen=1)\n')
    assert (ran.status, ran.verdicts) == (0, {"CAP-001": "pass"})
    assert [line["kind"] for line in ran.lines] == ["header", "result", "footer"]


def test_a_violated_must_fails_the_run_and_says_what_was_expected_and_seen(suite: Suite) -> None:
    ran = suite.run('@covers("CAP-001")\ndef test_it(check):\n    check("CAP-001", False, expected=[1], seen=[2])\n')
    assert ran.status == 1
    line = ran.result("CAP-001")
    assert (line["verdict"], line["gates"], line["expected"], line["seen"]) == ("fail", True, [1], [2])
    assert "trackgauge repro CAP-001" in ran.output
    assert "Traceback" not in ran.output


def test_a_violated_should_fails_the_run_only_when_levels_are_strict(suite: Suite) -> None:
    scenario = '@covers("CAP-005")\ndef test_it(check):\n    check("CAP-005", False)\n'
    assert suite.run(scenario).status == 0
    assert suite.run(scenario, "--strict").status == 1


def test_checks_go_on_after_a_violation_and_what_is_not_reached_is_inconclusive(suite: Suite) -> None:
    ran = suite.run(
        '@covers("CAP-001", "CAP-002", "CAP-003")\ndef test_it(check):\n'
        '    check("CAP-001", False)\n    check("CAP-002", True)\n    [][0]\n'
    )
    assert ran.verdicts == {"CAP-001": "fail", "CAP-002": "inconclusive", "CAP-003": "inconclusive"}
    assert ran.status == 1


def test_a_scenario_that_breaks_is_an_error_of_the_suite_and_fails_the_run(suite: Suite) -> None:
    ran = suite.run('@covers("CAP-001")\ndef test_it(check):\n    [][0]\n')
    assert (ran.status, ran.verdicts) == (1, {"CAP-001": "error"})
    assert "IndexError" in ran.result("CAP-001")["reason"]


def test_a_requirement_that_is_never_checked_is_an_error_of_the_suite(suite: Suite) -> None:
    ran = suite.run('@covers("CAP-001", "CAP-002")\ndef test_it(check):\n    check("CAP-001", True)\n')
    assert (ran.status, ran.verdicts) == (1, {"CAP-001": "pass", "CAP-002": "error"})


def test_a_check_of_a_requirement_that_is_not_covered_is_an_error_of_the_suite(suite: Suite) -> None:
    ran = suite.run('@covers("CAP-001")\ndef test_it(check):\n    check("CAP-002", True)\n')
    assert ran.status == 1
    assert "CAP-002" in ran.output


def test_a_need_that_is_not_met_is_told_without_a_traceback(suite: Suite) -> None:
    ran = suite.run('@covers("CAP-001", "CAP-002")\ndef test_it(check):\n    check.need("CAP-001", False)\n')
    assert ran.verdicts == {"CAP-001": "fail", "CAP-002": "inconclusive"}
    assert "in need" not in ran.output
    assert "direct cause" not in ran.output


def test_an_inconclusive_scenario_is_never_a_pass(suite: Suite) -> None:
    ran = suite.run('@covers("CAP-001")\ndef test_it(check):\n    raise Inconclusive("the control did not hold")\n')
    assert (ran.status, ran.verdicts) == (1, {"CAP-001": "inconclusive"})


def test_a_declared_retrieval_that_hands_out_nothing_is_the_systems_fault_and_named(suite: Suite) -> None:
    ran = suite.run(
        "from conformance.systems.retrieval import RetrievalFailed\n"
        '@covers("CAP-001")\ndef test_it(check):\n    raise RetrievalFailed("expected 200, seen 404")\n'
    )
    assert (ran.status, ran.verdicts) == (1, {"CAP-001": "inconclusive", "RET-001": "fail"})


@pytest.mark.parametrize("where", ["scenario", "fixture"])
def test_what_a_system_does_not_do_is_no_error_of_the_suite(suite: Suite, where: str) -> None:
    stop = "raise SystemFailed('no answer came')"
    ran = suite.run(
        "from conformance.systems.calls import SystemFailed\n"
        f"@pytest.fixture\ndef there():\n    {stop if where == 'fixture' else 'pass'}\n"
        f'@covers("CAP-001")\ndef test_it(check, there):\n    check("CAP-001", True)\n    {stop}\n'
    )
    assert (ran.status, ran.verdicts) == (1, {"CAP-001": "inconclusive"})
    assert "no answer came" in ran.result("CAP-001")["reason"]
    assert [line for line in ran.lines if line["kind"] == "error"] == []


def test_a_report_folder_that_cannot_be_written_ends_with_one_line_before_anything_runs(suite: Suite) -> None:
    place = suite.folder / "a file"
    place.touch()
    command = [sys.executable, "-m", "conformance.cli", "run", "--report", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"--report {place}: File exists; give a folder that can be written\n"


def test_a_broken_fixture_is_an_error_of_the_suite(suite: Suite) -> None:
    ran = suite.run(
        "@pytest.fixture\ndef broken():\n    raise OSError('no room')\n"
        '@covers("CAP-001")\ndef test_it(check, broken):\n    check("CAP-001", True)\n'
    )
    assert (ran.status, ran.verdicts) == (1, {"CAP-001": "error"})


def test_what_a_system_does_not_declare_is_skipped_with_the_reason_and_nothing_ran_is_no_success(suite: Suite) -> None:
    scenario = '@covers("CAP-001")\ndef test_it(check):\n    check("CAP-001", True)\n'
    ran = suite.run(scenario, "--system", "reference-rebuild")
    assert (ran.status, ran.verdicts) == (5, {"CAP-001": "skip"})
    assert ran.result("CAP-001")["reason"] == "no proxy system was given"


def test_a_selection_that_matches_nothing_is_no_success(suite: Suite) -> None:
    scenario = '@covers("CAP-001")\ndef test_it(check):\n    check("CAP-001", True)\n'
    assert suite.run(scenario, "-k", "nothing_of_that_name").status == 5


@pytest.mark.parametrize(
    "arguments",
    [("--system", "no-such-system"), ("--covering", "XYZ"), ("--requirements", "1999-01"), ("--no-such-flag",)],
    ids=["system", "covering", "set", "flag"],
)
def test_a_wrong_option_ends_with_one_line_and_status_2(suite: Suite, arguments: tuple[str, ...]) -> None:
    ran = suite.run('@covers("CAP-001")\ndef test_it(check):\n    check("CAP-001", True)\n', *arguments)
    assert ran.status == 2
    assert "Traceback" not in ran.output
    assert len([line for line in ran.output.splitlines() if arguments[-1] in line]) >= 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--strct"], "trackgauge run: no such option --strct; did you mean --strict? see trackgauge run --help"),
        (["-k", "x", "--zzz=1"], "trackgauge run: no such option --zzz; see trackgauge run --help"),
        (["-n", "many"], "trackgauge run: argument -n/--numprocesses: "),
        (["--report"], "trackgauge run: Option '--report' requires an argument; see trackgauge run --help"),
    ],
    ids=["mistyped", "unknown", "wrong value", "no value"],
)
def test_a_mistyped_option_is_one_line_that_knows_what_was_meant(arguments: list[str], told: str) -> None:
    command = [sys.executable, "-m", "conformance.cli", "run", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.strip().splitlines()
    assert line.removeprefix("ERROR: ").startswith(told)


@pytest.mark.parametrize("arguments", [("--system", "no-such-system"), ("--no-such-flag",)], ids=["system", "flag"])
def test_a_wrong_option_costs_no_earlier_report(suite: Suite, arguments: tuple[str, ...]) -> None:
    scenario = '@covers("CAP-001")\ndef test_it(check):\n    check("CAP-001", {})\n'
    earlier = suite.run(scenario.format(False))
    held = sorted((suite.folder / "report").iterdir())
    refused = suite.run(scenario.format(True), *arguments)
    assert (refused.status, refused.lines) == (2, earlier.lines)
    assert suite.run(scenario.format(True)).verdicts == {"CAP-001": "pass"}
    assert sorted((suite.folder / "report").iterdir()) == [path for path in held if path.name != "repro"]


def test_an_unknown_requirement_in_covers_ends_with_status_2(suite: Suite) -> None:
    ran = suite.run('@covers("CAP-999")\ndef test_it(check):\n    check("CAP-999", True)\n')
    assert ran.status == 2
    assert "CAP-999" in ran.output


def test_workers_bring_their_lines_together(suite: Suite) -> None:
    scenario = "".join(
        f'@covers("CAP-00{n}")\ndef test_{n}(check):\n    check("CAP-00{n}", True)\n' for n in range(1, 7)
    )
    ran = suite.run(scenario, "-n", "2")
    assert ran.status == 0
    assert ran.verdicts == {f"CAP-00{n}": "pass" for n in range(1, 7)}


ABSENT = 'name = "away"\nkind = "rebuild"\ncapabilities = ["rebuild-session"]\n[start]\ncommand = {command}\n'


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_a_program_that_is_not_there_is_told_in_one_line_before_anything_starts(
    suite: Suite, workers: tuple[str, ...]
) -> None:
    profile = suite.folder / "away.toml"
    profile.write_text(ABSENT.format(command='["no-such-program"]'), encoding="utf-8")
    suite.run('@covers("CAP-001")\ndef test_it(check):\n    check("CAP-001", True)\n')
    ran = suite.run(
        '@covers("REB-001")\ndef test_it(check):\n    check("REB-001", True)\n', f"--system={profile}", *workers
    )
    told = f"away did not start: {profile}: start.command: no-such-program is not on PATH; install it, or give"
    [line] = ran.output.strip().splitlines()
    assert line.startswith(f"ERROR: {told}")
    assert (ran.status, [each["kind"] for each in ran.lines]) == (4, ["header", "footer"])
    assert "away did not start" in (suite.folder / "report" / "summary.md").read_text()
    assert suite.run("", "--covering", "XYZ").status == 2


def test_a_system_that_does_not_start_ends_with_status_4_and_the_end_of_its_log(suite: Suite) -> None:
    profile = suite.folder / "broken.toml"
    profile.write_text(BROKEN, encoding="utf-8")
    ran = suite.run(
        '@covers("CAP-001")\nasync def test_it(proxy, check):\n    check("CAP-001", True)\n'
        "test_it = pytest.mark.anyio(test_it)\n"
        '@pytest.fixture\ndef anyio_backend():\n    return "asyncio"\n',
        "--system",
        str(profile),
    )
    assert ran.status == 4
    assert "broken did not start: it ended with exit code 1" in ran.output
    assert "no licence" in ran.output
    told = (suite.folder / "report" / "summary.md").read_text()
    assert "**broken did not start: it ended with exit code 1 before it was ready**" in told
    assert "no licence" not in told


def test_the_command_that_runs_a_scenario_again_can_be_pasted_whatever_the_profile_is_called(suite: Suite) -> None:
    profile = suite.folder / "my broken.toml"
    profile.write_text(BROKEN, encoding="utf-8")
    ran = suite.run('@covers("CAP-001")\ndef test_it(check):\n    check("CAP-001", False)\n', f"--system={profile}")
    assert f"trackgauge repro CAP-001 --system '{profile}'" in ran.output


def test_an_engines_address_that_is_taken_is_told_before_anything_is_started(suite: Suite) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        profile = suite.folder / "attached.toml"
        profile.write_text(ATTACHED.replace("PORT", str(port)), encoding="utf-8")
        ran = suite.run('@covers("ERR-001")\nasync def test_it(scene):\n    pass\n', f"--system={profile}")
    assert ran.status == 4
    assert f"attach.engine: http://127.0.0.1:{port} is taken" in ran.output


def test_a_test_of_somebody_elses_that_asks_too_much_of_a_system_ends_in_a_line(suite: Suite) -> None:
    profile = suite.folder / "attached.toml"
    profile.write_text(ATTACHED.replace("PORT", "1"), encoding="utf-8")
    ran = suite.run(
        "from conformance.systems.proxy import NotOurs\n"
        'def test_it():\n    raise NotOurs("acme at http://127.0.0.1:1 runs outside of the suite")\n'
        "def test_rebuild(rebuild):\n    pass\n",
        f"--system={profile}",
        "-rsE",
        "--tb=short",
    )
    assert "Traceback" not in ran.output
    assert "acme at http://127.0.0.1:1 runs outside of the suite; this test asks it of the system" in ran.output
    assert "this run judges no rebuild" in ran.output
    assert "world.py" not in ran.output
