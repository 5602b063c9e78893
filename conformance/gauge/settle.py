"""From rulings to result lines: what the catalogue and the systems add to a verdict."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field

from conformance.contract.vocabulary import Level, SystemKind, Verdict
from conformance.gauge.known import Lists, entries_of, with_known
from conformance.gauge.verdicts import Ruling
from conformance.report.plain import JSON, elide, plain
from conformance.report.results import NOT_IN_PLAY, Result, SuiteError, may_gate
from conformance.requirements.catalogue import Catalogue


@dataclass(frozen=True, slots=True)
class Judge:
    """What is needed to turn rulings into lines.

    ``own`` tells which systems answer for this project's own decisions (requirements of origin ``project``). Where
    ``asked`` names requirements, these gate and no others.
    """

    catalogue: Catalogue
    whole: Catalogue
    names: Mapping[SystemKind, str]
    own: Mapping[SystemKind, bool]
    strict: bool
    known: Lists = field(default_factory=dict)
    asked: frozenset[str] = frozenset()

    def settle(self, scenario: str, rulings: Iterable[Ruling], seconds: float, evidence: str | None) -> list[Result]:
        lines = [self._settle_one(scenario, ruling, seconds, evidence) for ruling in rulings]
        return with_known(lines, entries_of(self.known))

    def _settle_one(self, scenario: str, ruling: Ruling, seconds: float, evidence: str | None) -> Result:
        requirement = self.catalogue.get(ruling.requirement) or self.whole[ruling.requirement]
        kind = requirement.applies_to
        answers_for_it = requirement.gates_others or self.own.get(kind, True)
        by_itself = may_gate(requirement.level, self.strict) and answers_for_it
        checked = ruling.checked
        told = checked is not None and ruling.verdict in (Verdict.PASS, Verdict.FAIL)
        return Result(
            requirement=requirement.id,
            level=Level(requirement.level),
            scenario=scenario,
            system=self.names.get(kind, NOT_IN_PLAY),
            verdict=ruling.verdict,
            gates=requirement.id in self.asked if self.asked else by_itself,
            expected=_short(checked.expected) if checked is not None and told else None,
            seen=_short(checked.seen) if checked is not None and told else None,
            where=checked.where if checked is not None and told else None,
            reason=ruling.reason,
            evidence=evidence if ruling.verdict not in (Verdict.PASS, Verdict.SKIP) else None,
            seconds=round(seconds, 4),
        )


def pack(results: Iterable[Result], errors: Iterable[SuiteError]) -> str:
    """The lines of one scenario as text, to travel from a worker to the controller."""
    return json.dumps({"results": [asdict(one) for one in results], "errors": [asdict(one) for one in errors]})


def unpack(text: str) -> tuple[list[Result], list[SuiteError]]:
    lines = json.loads(text)
    results = [
        Result(**{**one, "level": Level(one["level"]), "verdict": Verdict(one["verdict"])}) for one in lines["results"]
    ]
    return results, [SuiteError(**one) for one in lines["errors"]]


def _short(value: object) -> JSON:
    return elide(plain(value), items=16, chars=400)
