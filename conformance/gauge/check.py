"""``check``: the only thing in the suite that can say that a requirement is violated."""

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.contract.difference import tree_difference
from conformance.gauge.verdicts import Checked
from conformance.oracle.judgement import Judgement


class Unmet(Exception):
    """Raised by ``check.need`` when the rest of a scenario would make no sense; the failed check is already noted."""


class Inconclusive(Exception):
    """Raised when the world did not show what a scenario needs to see, such as a negative control that did not hold."""


class NoSuchSystem(Exception):
    """Raised when a test asks for a kind of system that this run was not given; a scenario should have been skipped."""


class NotCovered(Exception):
    """Raised when a scenario checks a requirement that its ``covers`` does not name: a mistake of the scenario."""

    def __init__(self, requirement: str, scenario: str) -> None:
        super().__init__(f"{scenario} checks {requirement} without naming it in covers(); add it there")


class Check:
    """Collects what a scenario found; the scenario goes on after a violation and fails at its end.

    A requirement that is skipped for this system is taken silently, so that scenarios need no conditions.
    """

    def __init__(self, scenario: str, covered: Sequence[str], skipped: Mapping[str, str]) -> None:
        self._scenario = scenario
        self._covered = frozenset(covered)
        self._skipped = skipped
        self.noted: list[Checked] = []
        self.unseen: dict[str, str] = {}

    def __call__(
        self, requirement: str, ok: bool, *, expected: Any = None, seen: Any = None, where: str | None = None
    ) -> bool:
        """Note whether the requirement holds here. Returns ``ok``, or True for a requirement skipped here."""
        if not self._applies(requirement):
            return True
        self.noted.append(Checked(requirement, bool(ok), expected, seen, where))
        return bool(ok)

    def equal(self, requirement: str, *, expected: Any, seen: Any, where: str | None = None) -> bool:
        """Note whether ``seen`` equals ``expected``, in value and in JSON type."""
        return self(requirement, tree_difference(expected, seen) is None, expected=expected, seen=seen, where=where)

    def that(self, requirement: str, judgement: Judgement, where: str | None = None) -> bool:
        """Note what the oracle judged. ``where`` names the variant of the scenario that it looked at."""
        if judgement.lacking is not None:
            return self.nothing(requirement, judgement.lacking)
        return self(
            requirement,
            judgement.ok,
            expected=judgement.expected,
            seen=judgement.seen,
            where=": ".join(filter(None, (where, judgement.where))) or None,
        )

    def nothing(self, requirement: str, lacking: str) -> bool:
        """Note that there was no ``lacking`` to judge the requirement by, somewhere in the scenario.

        It cannot pass any more, whatever else of it holds: it ends inconclusive unless it fails. Returns True.
        """
        if self._applies(requirement):
            self.unseen.setdefault(requirement, f"there was no {lacking} to judge it by")
        return True

    def _applies(self, requirement: str) -> bool:
        if requirement not in self._covered:
            raise NotCovered(requirement, self._scenario)
        return requirement not in self._skipped

    def need(
        self, requirement: str, ok: bool, *, expected: Any = None, seen: Any = None, where: str | None = None
    ) -> None:
        """Like a call, but a violation ends the scenario here: nothing after it could be judged."""
        noted = self(requirement, ok, expected=expected, seen=seen, where=where)
        if not (noted and ok):
            raise Unmet(f"{requirement} does not hold, and the rest of the scenario stands on it")

    @property
    def failed(self) -> list[Checked]:
        return [one for one in self.noted if not one.ok]
