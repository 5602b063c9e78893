"""Imports go one way only: whoever judges knows nothing of what is judged."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

ALLOWED: dict[str, set[str]] = {
    "fakes": set(),
    "harness_shims": {"fakes"},
    "conformance.contract": set(),
    "conformance.requirements": {"conformance.contract"},
    "conformance.systems": {"conformance.contract"},
    "conformance.oracle": {"conformance.contract"},
    "conformance.report": {"conformance.contract"},
    "conformance.reference": {"conformance.contract"},
    "conformance.mutants": {
        "conformance.contract",
        "conformance.reference",
        "conformance.report",
        "conformance.systems",
    },
    "conformance.gauge": {
        "conformance.contract",
        "conformance.oracle",
        "conformance.report",
        "conformance.requirements",
        "conformance.systems",
        "fakes",
        "harness_shims",
    },
    "conformance.demo": {"conformance.oracle", "conformance.systems", "fakes"},
    "conformance.exports": {"conformance.contract", "conformance.oracle", "conformance.systems"},
    "conformance.shapes": {"conformance.contract", "conformance.oracle", "conformance.systems", "fakes"},
    "conformance.plugin": {"conformance.gauge", "conformance.systems"},
    "conformance.scenarios": {
        "conformance.contract",
        "conformance.gauge",
        "conformance.oracle",
        "conformance.systems",
        "fakes",
        "harness_shims",
    },
}
"""What each part may import of ours besides itself. ``cli``, ``commands`` and ``schemas`` may import all."""


def parts() -> Iterator[tuple[str, Path]]:
    for part in ALLOWED:
        place = ROOT / part.replace(".", "/")
        yield from ((part, path) for path in ([place.with_suffix(".py")] if place.with_suffix(".py").exists() else []))
        yield from ((part, path) for path in sorted(place.rglob("*.py")) if place.is_dir())


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def inside(module: str, part: str) -> bool:
    return module == part or module.startswith(f"{part}.")


def is_ours(module: str) -> bool:
    return any(inside(module, top) for top in ("conformance", "fakes", "harness_shims", "tests"))


@pytest.mark.parametrize("part", ALLOWED)
def test_a_part_imports_only_what_its_arrows_allow(part: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for owner, path in parts()
        if owner == part
        for module in imported(path)
        if is_ours(module)
        and module != "conformance"
        and not any(inside(module, allowed) for allowed in (part, *ALLOWED[part]))
    ]
    assert wrong == []


def test_every_python_file_of_the_product_belongs_to_a_part() -> None:
    free = {"conformance/__init__.py", "conformance/cli.py", "conformance/schemas.py"}
    commands = ROOT / "conformance" / "commands"
    owned = {path for _, path in parts()}
    product = {path for top in ("conformance", "fakes", "harness_shims") for path in (ROOT / top).rglob("*.py")}
    strays = {one.relative_to(ROOT).as_posix() for one in product - owned if commands not in one.parents} - free
    assert strays == set()
