"""What the oracle says of one thing it looked at."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Judgement:
    """``expected`` and ``seen`` are short JSON values to compare; ``where`` names the record, row or frame."""

    ok: bool
    expected: Any = None
    seen: Any = None
    where: str | None = None

    def __bool__(self) -> bool:
        return self.ok
