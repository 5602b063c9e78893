"""``results.ndjson``: a header, a line per verdict and suite error, a footer. Everything else is drawn from it."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from conformance.contract.vocabulary import Level, Verdict
from conformance.report.plain import JSON, elide, encode, plain
from conformance.report.results import (
    KINDS,
    REPORT_VERSION,
    Footer,
    Header,
    Line,
    Report,
    Result,
    SuiteError,
)

SHOWN_ITEMS, SHOWN_CHARS = 64, 4000
"""Bounds on lists and strings in ``expected`` and ``seen``: a line is for reading, the rest is evidence."""


class ReportError(ValueError):
    """Raised when a report cannot be trusted or written. Its text is one line: file, line number, what is wrong.

    Line 0 is none: the whole file is meant.
    """

    def __init__(self, path: Path | str, line: int, problem: str) -> None:
        super().__init__(f"{path}:{line}: {problem}" if line else f"{path}: {problem}")
        self.line = line


def to_line(line: Line) -> dict[str, JSON]:
    """The JSON object of one line, with ``kind`` first. Also what a pytest worker sends to its controller."""
    values = {each.name: getattr(line, each.name) for each in fields(line)}
    shown = {
        name: elide(plain(value), SHOWN_ITEMS, SHOWN_CHARS) if name in ("expected", "seen") else plain(value)
        for name, value in values.items()
    }
    return {"kind": line.kind, **shown}


def from_line(value: dict[str, JSON]) -> Line:
    """The line a JSON object stands for, without a look at its form; unknown keys are ignored."""
    kind = KINDS[str(value["kind"])]
    known = {each.name for each in fields(kind)}
    given: dict[str, object] = {name: inner for name, inner in value.items() if name in known}
    if kind is Result:
        given["level"], given["verdict"] = Level(str(given["level"])), Verdict(str(given["verdict"]))
    return kind(**given)  # type: ignore[arg-type]  # the schema has judged the fields


class Writer:
    """Writes a report line by line, each on disk at once, so that a run that dies leaves what it knew.

    The header is written on opening, the footer by ``close``; ``read`` refuses a report that was never closed.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self.path = path
        self._pairs: set[tuple[str, str]] = set()
        self._counts: Counter[Verdict] = Counter()
        self._lines = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO = path.open("wb")
        self._put(header)

    def result(self, result: Result) -> None:
        """Raises `ReportError` for a second verdict on the same requirement in the same scenario."""
        pair = (result.requirement, result.scenario)
        if pair in self._pairs:
            raise ReportError(self.path, self._lines + 1, _repeated(result))
        self._pairs.add(pair)
        self._counts[result.verdict] += 1
        self._put(result)

    def error(self, error: SuiteError) -> None:
        self._put(error)

    def close(self, footer: Footer) -> Footer:
        """Writes the footer with the verdicts counted while writing, and gives it back."""
        whole = replace(footer, verdicts={each.value: self._counts[each] for each in Verdict})
        self._put(whole)
        self._file.close()
        return whole

    def _put(self, line: Line) -> None:
        self._file.write(encode(to_line(line)) + b"\n")
        self._file.flush()
        self._lines += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def write(
    path: Path, header: Header, results: Iterable[Result], errors: Iterable[SuiteError], footer: Footer
) -> Report:
    """Writes a whole report and gives it back as `read` would."""
    with Writer(path, header) as writer:
        results, errors = tuple(results), tuple(errors)
        for result in results:
            writer.result(result)
        for error in errors:
            writer.error(error)
        return Report(header, results, errors, writer.close(footer))


def read(path: Path) -> Report:
    """The report in a file. Raises `ReportError` when it was cut, repeats a verdict, or has another form."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as problem:
        raise ReportError(path, 0, f"cannot be read: {problem.strerror}") from problem
    header: Header | None = None
    footer: Footer | None = None
    results: dict[tuple[str, str], Result] = {}
    errors: list[SuiteError] = []
    for number, raw in enumerate(lines, 1):
        line = _judged(path, number, raw)
        if footer is not None:
            raise ReportError(path, number, "a line after the footer; a report ends with its footer")
        if (header is None) is not isinstance(line, Header):
            raise ReportError(path, number, "the header must be the first line, and only the first")
        match line:
            case Header():
                header = line
            case Result():
                pair = (line.requirement, line.scenario)
                if pair in results:
                    raise ReportError(path, number, _repeated(line))
                results[pair] = line
            case SuiteError():
                errors.append(line)
            case Footer():
                footer = line
    if header is None:
        raise ReportError(path, 1, "no header; the file is empty")
    if footer is None:
        raise ReportError(path, len(lines), "no footer after this line; the run was cut, run it again")
    _counts_agree(path, len(lines), results.values(), footer)
    return Report(header, tuple(results.values()), tuple(errors), footer)


def _judged(path: Path, number: int, raw: bytes) -> Line:
    from conformance.report.schema import fits, problem_of  # pydantic and jsonschema are needed by readers only

    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as problem:
        raise ReportError(path, number, f"not JSON: {problem}") from problem
    found = None if fits(value, raw) else problem_of(value)
    if found is not None:
        raise ReportError(path, number, found)
    line = from_line(value)
    if isinstance(line, Header) and line.v != REPORT_VERSION:
        raise ReportError(path, number, f"report version {line.v}; this release reads {REPORT_VERSION}")
    return line


def _counts_agree(path: Path, number: int, results: Iterable[Result], footer: Footer) -> None:
    counted = Counter(result.verdict.value for result in results)
    told = {name: count for name, count in footer.verdicts.items() if count}
    if told != dict(counted):
        raise ReportError(path, number, f"the footer counts {told}, the lines hold {dict(counted)}")


def _repeated(result: Result) -> str:
    return f"a second verdict on {result.requirement} in {result.scenario}; give one per scenario"
