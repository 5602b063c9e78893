"""What the oracle says of one thing it looked at."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Judgement:
    """``expected`` and ``seen`` are short JSON values to compare; ``where`` names the record, row or frame.

    ``lacking`` names what there was none of to look at. Nothing was found wrong then, and nothing right either.
    """

    ok: bool
    expected: Any = None
    seen: Any = None
    where: str | None = None
    lacking: str | None = None

    def __bool__(self) -> bool:
        return self.ok


def nothing_to_judge(lacking: str) -> Judgement:
    """``lacking`` is a noun, such as ``record``."""
    return Judgement(True, lacking=lacking)
