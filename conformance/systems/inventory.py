"""Which systems there are to judge, and in which state each is."""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from conformance.systems import needs, profiles
from conformance.systems.profile import Profile
from conformance.systems.versions import version_of

BUILT_IN = "built in"
INSTALLED = "installed"
NOT_INSTALLED = "not installed"
ATTACHED = "runs elsewhere"


@dataclass(frozen=True, slots=True)
class Entry:
    """``lacking`` is one line on what to do, None for a system that can be judged now."""

    name: str
    kind: str
    state: str
    version: str | None
    about: str
    lacking: str | None

    def as_json(self) -> dict[str, str | None]:
        return asdict(self)


def inventory(chosen: list[Profile] | None = None) -> list[Entry]:
    """Of the profiles that ship, unless told which. Asks those that are there for their version: some 0.1 s each."""
    found = [profiles.find(name) for name in profiles.names()] if chosen is None else chosen
    with tempfile.TemporaryDirectory() as files, ThreadPoolExecutor() as pool:
        return list(pool.map(lambda profile: _entry(profile, Path(files)), found))


def table(entries: list[Entry]) -> str:
    """For people: a line each, and below it what to do."""
    wide = max((len(entry.name) for entry in entries), default=0)
    lines = []
    for entry in entries:
        lines.append(f"{entry.name:{wide}}  {entry.kind:7}  {entry.state:14}  {entry.version or '-'}")
        if entry.lacking is not None:
            lines.append(f"{'':{wide}}  {entry.lacking}")
    return "\n".join(lines)


def _entry(profile: Profile, files: Path) -> Entry:
    lacking = None if profile.install is None else needs.lacking(profile.install)
    state = BUILT_IN if profile.install is None else INSTALLED if lacking is None else NOT_INSTALLED
    if profile.attach is not None:
        state = ATTACHED
    version = version_of(profile, files) if lacking is None else None
    return Entry(profile.name, profile.kind.value, state, version, profile.about, lacking)
