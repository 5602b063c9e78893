"""How the checks of one scenario become one verdict per covered requirement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.contract.vocabulary import Verdict


@dataclass(frozen=True, slots=True)
class Checked:
    """One call of ``check``: what was expected, what was seen and where to look."""

    requirement: str
    ok: bool
    expected: Any = None
    seen: Any = None
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Ruling:
    """The verdict on one requirement in one scenario, before it knows of systems and levels."""

    requirement: str
    verdict: Verdict
    checked: Checked | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """How a scenario's body ended.

    ``out_of_reach`` says why the suite cannot do to this system what the scenario needs done; ``died`` names the
    system that stopped serving meanwhile; ``unmet`` is the prerequisite that ended the scenario early by its own
    word; ``stopped`` is what the system did not do, so that the scenario could not go on; ``broken`` is an exception
    that nothing explains.
    """

    out_of_reach: str | None = None
    died: str | None = None
    unmet: str | None = None
    stopped: str | None = None
    broken: str | None = None


NOTHING_UNSEEN: Mapping[str, str] = {}


def rule(
    covered: Sequence[str],
    skipped: Mapping[str, str],
    checks: Sequence[Checked],
    ending: Ending,
    unseen: Mapping[str, str] = NOTHING_UNSEEN,
) -> list[Ruling]:
    """One ruling per covered requirement, in the order of ``covered``.

    ``unseen`` says of requirements what there was nothing of to judge them by; they may fail, but not pass.

    A requirement that was never reached is inconclusive when something names the cause (an earlier failed check, a
    dead system, an unmet prerequisite); without a cause the suite itself is at fault, which is ``error``.
    """
    failed = [one for one in checks if not one.ok]
    return [_rule_one(identity, skipped, checks, failed, ending, unseen.get(identity)) for identity in covered]


def _rule_one(
    identity: str,
    skipped: Mapping[str, str],
    checks: Sequence[Checked],
    failed: Sequence[Checked],
    ending: Ending,
    unseen: str | None,
) -> Ruling:
    if identity in skipped:
        return Ruling(identity, Verdict.SKIP, reason=skipped[identity])
    mine = [one for one in checks if one.requirement == identity]
    for one in mine:
        if not one.ok:
            return Ruling(identity, Verdict.FAIL, one)
    if not mine and not failed and ending.out_of_reach is not None:
        return Ruling(identity, Verdict.SKIP, reason=ending.out_of_reach)
    cause = _cause(failed, ending)
    if unseen is not None and ending.died is None and ending.stopped is None and (failed or ending.broken is None):
        since = f", since {failed[0].requirement} failed" if failed else ""
        return Ruling(identity, Verdict.INCONCLUSIVE, reason=f"{unseen}{since}")
    if mine and ending.broken is None and ending.died is None and ending.stopped is None:
        return Ruling(identity, Verdict.PASS, mine[-1])
    if cause is not None:
        return Ruling(identity, Verdict.INCONCLUSIVE, reason=cause)
    if ending.broken is not None:
        return Ruling(identity, Verdict.ERROR, reason=f"the scenario broke: {ending.broken}")
    return Ruling(identity, Verdict.ERROR, reason="the scenario ended without checking it")


def _cause(failed: Sequence[Checked], ending: Ending) -> str | None:
    if ending.died is not None:
        return ending.died
    if ending.stopped is not None:
        return ending.stopped
    if failed:
        return f"not reached, since {failed[0].requirement} failed"
    return ending.unmet
