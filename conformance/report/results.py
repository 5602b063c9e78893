"""What a run says: a header, a line per requirement and scenario, a footer. Published as JSON Lines."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal, Protocol

from conformance.contract.vocabulary import Level, Verdict

REPORT_VERSION = 1

NOT_IN_PLAY = "none"
"""The system's name in a line about a kind of system that this run did not have."""


@dataclass(frozen=True, slots=True)
class Header:
    """What was judged by what. ``systems`` maps kind (proxy, rebuild, …) to ``name version``."""

    suite_version: str
    contract_version: str
    requirement_set: str
    systems: dict[str, str]
    fakes: dict[str, str]
    started_at: str
    strict: bool = False
    kind: Literal["header"] = "header"
    v: int = REPORT_VERSION


@dataclass(frozen=True, slots=True)
class Result:
    """The verdict on one requirement in one scenario.

    ``expected`` and ``seen`` are short JSON values a reader can compare; ``where`` names the record, frame or file.
    ``reason`` says why a verdict other than pass or fail was given; ``evidence`` is a path below the report folder.
    ``gates`` says whether this line can fail the run. ``disputed`` is a link to where the requirement is in question.
    """

    requirement: str
    level: Level
    scenario: str
    system: str
    verdict: Verdict
    gates: bool
    expected: Any = None
    seen: Any = None
    where: str | None = None
    reason: str | None = None
    evidence: str | None = None
    seconds: float = 0.0
    disputed: str | None = None
    kind: Literal["result"] = "result"


@dataclass(frozen=True, slots=True)
class SuiteError:
    """Something broke that no requirement speaks of: a fixture, a playbook, a scenario's own code."""

    scenario: str
    reason: str
    seconds: float = 0.0
    kind: Literal["error"] = "error"


@dataclass(frozen=True, slots=True)
class Footer:
    """Closes the report; one without it died. ``cut`` tells of a run that ended before all was played, as by Ctrl-C."""

    seconds: float
    servers_started: int
    starts_refused: int
    scenarios: int
    exit_status: int
    verdicts: dict[str, int] = field(default_factory=dict)
    cut: bool = False
    kind: Literal["footer"] = "footer"


Line = Header | Result | SuiteError | Footer
"""One line of ``results.ndjson``."""

KINDS: dict[str, type[Line]] = {"header": Header, "result": Result, "error": SuiteError, "footer": Footer}
"""By the ``kind`` that a line names."""


@dataclass(frozen=True, slots=True)
class Report:
    """A whole run, as ``results.ndjson`` tells it. Results stand in the order in which they were given."""

    header: Header
    results: tuple[Result, ...]
    errors: tuple[SuiteError, ...]
    footer: Footer


def suite_version() -> str:
    """Of the Trackgauge that writes the report."""
    try:
        return version("trackgauge")
    except PackageNotFoundError:
        return "0+unknown"


def may_gate(level: Level, strict: bool) -> bool:
    """Whether a requirement of this level can fail the run."""
    return strict or level is Level.MUST


def family_of(requirement: str) -> str:
    """``STR-007`` → ``STR``."""
    return requirement.partition("-")[0]


class Sentence(Protocol):
    """What a report says of a requirement beside its verdict."""

    @property
    def statement(self) -> str: ...
    @property
    def harm(self) -> str: ...
    @property
    def level(self) -> Level: ...


Sentences = Mapping[str, Sentence]
"""Sentences by requirement id. An id without a sentence is told so, never an error."""
