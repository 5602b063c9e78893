"""Rollouts written in one of the formats."""

import json
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, TextIO

from conformance.contract.rebuilds import RebuildAnswer
from conformance.exports.atif import atif
from conformance.exports.columns import write_arrow, write_parquet
from conformance.exports.errors import ExportError
from conformance.exports.responses import responses
from conformance.exports.rows import rows

JSON = Any


class Format(StrEnum):
    """``ndjson``, ``arrow`` and ``parquet`` hold one row a training sequence; the others one document each."""

    NDJSON = "ndjson"
    ARROW = "arrow"
    PARQUET = "parquet"
    RESPONSES = "responses"
    ATIF = "atif"


def write(answers: Iterable[RebuildAnswer], form: Format, to: Path | None, out: TextIO) -> int:
    """Into a file, or onto ``out`` where none is named; returns how many sequences. Raises ExportError.

    A file that could not be finished is taken away again, so that no half of one is ever taken for a whole.
    """
    counted = _Counted()
    if form in (Format.ARROW, Format.PARQUET):
        if to is None:
            raise ExportError(f"{form} is not for a terminal: name a file with --to")
        columnar = write_arrow if form is Format.ARROW else write_parquet
        _finished(to, lambda part: columnar(counted(rows(answers)), part))
        return counted.number
    lines = (json.dumps(one, separators=(",", ":")) + "\n" for one in counted(_documents(answers, form)))
    if to is None:
        out.writelines(lines)
    else:
        _finished(to, lambda part: _write_lines(part, lines))
    return counted.number


def _documents(answers: Iterable[RebuildAnswer], form: Format) -> Iterator[JSON]:
    if form is Format.NDJSON:
        yield from rows(answers)
        return
    for answer in answers:
        for number, one in enumerate(answer.trajectories):
            if one.items:
                yield responses(answer, one) if form is Format.RESPONSES else atif(answer, one, number)


def _write_lines(file: Path, lines: Iterable[str]) -> None:
    with file.open("w", encoding="utf-8") as opened:
        opened.writelines(lines)


def _finished(to: Path, put: Callable[[Path], None]) -> None:
    part = to.with_name(f".{to.name}.part")
    try:
        put(part)
        part.replace(to)
    except OSError as error:
        raise ExportError(f"{to}: {error.strerror or error}") from None
    finally:
        part.unlink(missing_ok=True)


class _Counted:
    def __init__(self) -> None:
        self.number = 0

    def __call__(self, given: Iterable[JSON]) -> Iterator[JSON]:
        for one in given:
            self.number += 1
            yield one
