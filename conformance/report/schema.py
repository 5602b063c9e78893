"""The published form of ``results.ndjson``, exported from the types, and the judgement of a line by it."""

import json
import sys
from collections.abc import Iterable
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.report import board
from conformance.report.results import KINDS, Line

if TYPE_CHECKING:
    from jsonschema.protocols import Validator
    from pydantic import TypeAdapter

SCHEMA = Path(__file__).with_name("results.schema.json")


def exported() -> dict[str, Any]:
    """JSON Schema of one line, made from the dataclasses. Every known key is there; further ones are allowed."""
    from pydantic import TypeAdapter

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "One line of results.ndjson",
        "description": "A report is a header, then results and suite errors in any order, then a footer.",
        **_form(TypeAdapter(Line), [line.__name__ for line in KINDS.values()]),
    }


def exported_board() -> dict[str, Any]:
    """JSON Schema of one line of ``scoreboard.ndjson``."""
    from pydantic import TypeAdapter

    return {
        "title": "One line of scoreboard.ndjson",
        "description": "A board is its header, then a line a system, then a line a system and requirement.",
        **_form(TypeAdapter(board.Line), ["BoardHeader", "System", "Cell"]),
    }


def _form(types: "TypeAdapter[Any]", lines: Iterable[str]) -> dict[str, Any]:
    """Writers write each field, those with a default too; so readers may count on them."""
    schema: dict[str, Any] = types.json_schema(mode="serialization")
    for name in lines:
        form = schema["$defs"][name]
        form["required"] = list(form["properties"])
        for its in form["properties"].values():
            its.pop("default", None)
    return schema


@cache
def _validators() -> dict[str, "Validator"]:
    from jsonschema import Draft202012Validator

    definitions = json.loads(SCHEMA.read_text("utf-8"))["$defs"]
    return {
        kind: Draft202012Validator({"$ref": f"#/$defs/{line.__name__}", "$defs": definitions})
        for kind, line in KINDS.items()
    }


@cache
def _types() -> dict[str, "TypeAdapter[Line]"]:
    from pydantic import TypeAdapter

    return {kind: TypeAdapter(line) for kind, line in KINDS.items()}


def fits(value: object, raw: bytes) -> bool:
    """Whether a line, given parsed and raw, is certainly of the published form: the types it is exported from say so.

    A hundred times faster than the schema, which has the word on all others (`problem_of`).
    """
    from pydantic import ValidationError

    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(kind, str) or kind not in KINDS:
        return False
    if not value.keys() >= {each.name for each in fields(KINDS[kind])}:
        return False
    try:
        _types()[kind].validate_json(raw, strict=True)
    except ValidationError:
        return False
    return True


def problem_of(value: object) -> str | None:
    """What is wrong with one line, in one line; None when it is of the published form."""
    if not isinstance(value, dict):
        return f"a line must be an object; seen {type(value).__name__}"
    kind = value.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        return f"kind must be one of {', '.join(KINDS)}; seen {kind!r}"
    found = next(iter(_validators()[kind].iter_errors(value)), None)
    if found is None:
        return None
    place = ".".join(str(step) for step in found.absolute_path) or kind
    return f"{place}: {' '.join(found.message.split())[:300]}"


if __name__ == "__main__":
    sys.stdout.write(json.dumps(exported(), indent=2) + "\n")
