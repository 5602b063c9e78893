"""What a profile may claim, and which claims cannot stand alone."""

import tomllib
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

FILE = Path(__file__).parent.parent / "requirements" / "capabilities.toml"

_A_REBUILD = ("rebuild-session",)
_A_WAY_TO_READ = ("records-disk", "retrieval-http")

RESTS_ON: Mapping[str, tuple[str, ...]] = {
    "streams": ("chat",),
    "count-tokens": ("messages",),
    "record-form": _A_WAY_TO_READ,
    "durable": _A_WAY_TO_READ,
    "shared-dir": _A_WAY_TO_READ,
    "delivery-mark": (*_A_WAY_TO_READ, *_A_REBUILD),
    "rebuild-records": _A_REBUILD,
    "rebuild-directory": _A_REBUILD,
    "rebuild-url": _A_REBUILD,
    "rebuild-tree": _A_REBUILD,
    "segments": _A_REBUILD,
    "branches": _A_REBUILD,
    "trainer-view": _A_REBUILD,
    "ray": ("rollout",),
}
"""A capability with those of which at least one has to be claimed too. Without it, what rests on the claim would be
skipped or fail for a reason that nobody would look for there."""


@cache
def known() -> tuple[str, ...]:
    """The closed list that requirements and profiles share."""
    return tuple(tomllib.loads(FILE.read_text(encoding="utf-8")))


def unfounded(declared: Collection[str]) -> tuple[str, tuple[str, ...]] | None:
    """The first of these capabilities that rests on none of what it has to rest on, and what that is."""
    for name in declared:
        bases = RESTS_ON.get(name, ())
        if bases and not set(bases) & set(declared):
            return name, bases
    return None
