"""The version of a system: told by its profile, by itself, or honestly unknown."""

from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from conformance.systems import profiles
from conformance.systems.versions import version_of

REFERENCE = profiles.find("reference")


def test_the_reference_tells_its_own_version(tmp_path: Path) -> None:
    assert version_of(REFERENCE, tmp_path) == version("trackgauge")


def test_what_the_profile_says_is_taken_without_a_process(tmp_path: Path) -> None:
    assert version_of(replace(REFERENCE, version="1.2.3"), tmp_path) == "1.2.3"


@pytest.mark.parametrize(
    ("command", "seen"),
    [
        ((), "unknown"),
        (("false",), "unknown (its version command ended with exit code 1)"),
        (("no-such-command",), "unknown (cannot run no-such-command: not found or not executable)"),
        (("sh", "-c", "echo a warning; echo 4.5; echo"), "4.5"),
    ],
)
def test_an_unknown_version_is_no_reason_to_lose_a_run(tmp_path: Path, command: tuple[str, ...], seen: str) -> None:
    assert version_of(replace(REFERENCE, version_command=command), tmp_path) == seen
