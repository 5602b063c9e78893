"""How many calls were injected, and why the others were not."""

from collections import Counter

from conformance.reference.capture.continuity.reasons import Fallback, Plain, Reason
from conformance.reference.capture.jsontext import JSONObject


class Counts:
    """Counts recorded calls, each once. ``None`` is the reason of an injected call."""

    def __init__(self) -> None:
        self._counts: Counter[Reason | None] = Counter()

    def add(self, reason: Reason | None) -> None:
        self._counts[reason] += 1

    def told(self) -> JSONObject:
        """The counts by reason."""
        plain = {reason.value: self._counts[reason] for reason in Plain if self._counts[reason]}
        fallback = {reason.value: self._counts[reason] for reason in Fallback if self._counts[reason]}
        return {"injected": self._counts[None], "plain": plain, "fallback": fallback}
