"""The reference with one fault in it, as a profile."""

from dataclasses import replace
from pathlib import Path

from conformance.mutants.patch import load
from conformance.systems.profile import Profile
from conformance.systems.profiles import find


def faulty(name: str, ran: Path) -> Profile:
    """The reference with that fault in it."""
    kind = load()[name].kind
    profile = find("reference-rebuild" if kind == "rebuild" else "reference")
    assert profile.start is not None
    module = "conformance.reference." + ("rebuild" if kind == "rebuild" else "capture")
    words = list(profile.start.command)
    at = words.index(module)
    words[at : at + 1] = ["conformance.mutants", name, str(ran)]
    return replace(profile, start=replace(profile.start, command=tuple(words)))
