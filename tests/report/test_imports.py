"""Reports are drawn inside every pytest run, so they must cost nothing until asked for."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

REPORT = Path(__file__).parents[2] / "conformance" / "report"
HEAVY = ("aiohttp", "starlette", "uvicorn", "tiktoken", "ray", "jinja2")


def loaded_by(*modules: str) -> set[str]:
    code = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return set(done.stdout.split())


def test_no_server_or_tokenizer_is_imported_by_any_part_of_a_report() -> None:
    parts = sorted(path.stem for path in REPORT.glob("[a-z]*.py"))
    loaded = loaded_by(*(f"conformance.report.{part}" for part in parts), "conformance.contract.difference")
    assert {"conformance.report.terminal", "rich"} <= loaded
    assert not loaded & set(HEAVY)


def test_writing_a_report_needs_neither_the_schema_nor_the_terminal() -> None:
    loaded = loaded_by("conformance.report.folder", "conformance.report.evidence")
    assert not loaded & {"rich", "jsonschema", "pydantic", *HEAVY}
