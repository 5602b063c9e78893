"""The schemas under docs/schemas are those of the code, and are schemas."""

import json
from pathlib import Path

import jsonschema
import pytest

from conformance.schemas import SCHEMAS, text

PUBLISHED = Path(__file__).parents[2] / "docs" / "schemas"


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_published_schema_is_what_the_code_exports(name: str) -> None:
    file = PUBLISHED / f"{name}.schema.json"
    assert file.read_text(encoding="utf-8") == text(name), f"trackgauge schema {name} > docs/schemas/{file.name}"
    jsonschema.Draft202012Validator.check_schema(json.loads(text(name)))


def test_nothing_is_published_that_the_code_does_not_export() -> None:
    assert {file.name for file in PUBLISHED.iterdir()} == {f"{name}.schema.json" for name in SCHEMAS}
