"""A mutant's fault really gets into the reference, and a mutant whose target is gone refuses to load."""

import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.mutants.loader import faulty, install
from conformance.mutants.patch import Mutant, MutantError, Patch, load

SOURCE = '''
LIMIT = 3


def allowed(count: int) -> bool:
    """Whether a count is allowed."""
    for step in range(count):
        if step > 10:
            return False
    if count < LIMIT:
        return True
    return False
'''


def mutant(old: str, new: str) -> Patch:
    return Patch("some.module", old, new)


def run_faulty(one: Patch, count: int) -> tuple[bool, bool]:
    """What ``allowed`` says with the fault, and whether the fault told that it ran."""
    told: list[bool] = []
    space: dict[str, object] = {"__trackgauge_mutant_ran__": lambda: told.append(True)}
    exec(faulty([one], SOURCE, "somewhere.py"), space)
    function = space["allowed"]
    assert callable(function)
    return bool(function(count)), bool(told)


def test_the_changed_line_takes_effect_and_tells_that_it_ran() -> None:
    assert run_faulty(mutant("count < LIMIT", "count <= LIMIT"), 3) == (True, True)


def test_a_changed_line_that_is_never_reached_does_not_tell() -> None:
    assert run_faulty(mutant("step > 10:\n            return False", "step > 10:\n            return True"), 2) == (
        True,
        True,
    )
    assert run_faulty(mutant("            return False\n    if", "            return True\n    if"), 2) == (True, False)


def test_a_changed_constant_counts_as_run_once_the_module_is_imported() -> None:
    assert run_faulty(mutant("LIMIT = 3", "LIMIT = 9"), 5) == (True, True)


@pytest.mark.parametrize("old", ["count > LIMIT", "return False"], ids=["gone", "standing-twice"])
def test_a_target_that_is_not_there_exactly_once_is_refused(old: str) -> None:
    with pytest.raises(MutantError, match="stands"):
        faulty([mutant(old, "pass")], SOURCE, "somewhere.py")


def test_a_change_that_does_not_parse_is_refused_in_one_line() -> None:
    with pytest.raises(MutantError, match="does not parse"):
        faulty([mutant("return True", "return (")], SOURCE, "somewhere.py")


def test_a_fault_is_in_place_also_where_the_package_imports_its_module_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "eager_package"
    package.mkdir()
    (package / "__init__.py").write_text("from eager_package.limits import LIMIT as TAKEN\n")
    (package / "limits.py").write_text("LIMIT = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    patch = Patch("eager_package.limits", "LIMIT = 3", "LIMIT = 9")
    install(Mutant("more-allowed", "Allows more.", (patch,), "CAP-001"), tmp_path / "ran")
    assert importlib.import_module("eager_package").TAKEN == 9
    assert (tmp_path / "ran").exists()


def test_two_patches_of_one_module_both_take_effect() -> None:
    space: dict[str, object] = {"__trackgauge_mutant_ran__": lambda: None}
    both = [mutant("LIMIT = 3", "LIMIT = 9"), mutant("count < LIMIT", "count <= LIMIT")]
    exec(faulty(both, SOURCE, "somewhere.py"), space)
    function = space["allowed"]
    assert callable(function)
    assert function(9) is True


@pytest.mark.parametrize("name", list(load()))
def test_a_mutant_of_the_suite_still_fits_the_reference(name: str) -> None:
    for patch in load()[name].patches:
        spec = importlib.util.find_spec(patch.module)
        assert spec is not None
        assert spec.origin is not None
        faulty([patch], Path(spec.origin).read_text(encoding="utf-8"), spec.origin)


def test_an_unknown_mutant_ends_with_a_usage_error() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "conformance.mutants", "no-such-fault", "ran"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
