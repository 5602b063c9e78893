"""The file of known failures: a table for each requirement, with the reason in one line and what shows it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from conformance.systems.profile import Profile
from conformance.systems.profiles import PROFILES
from conformance.systems.tables import ProfileError, Table

HERE = Path(__file__).parent

NONE = "none"
"""In the place of a file: judge as if nothing were known."""

HEAD_KEYS = ("system", "version")
LINKS = ("https://", "http://")


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """One requirement that a system is known to violate.

    ``seen_in`` are the scenarios in which it failed when the entry was written; empty for one written by hand.
    ``disputed`` is a link to where the requirement itself is in question: it is shown, and whether the requirement
    fails or passes, the run's status does not depend on it. ``inconclusive`` also covers scenarios that it keeps from
    judging it, where no failure explains that.
    """

    reason: str
    evidence: str = ""
    seen_in: tuple[str, ...] = ()
    disputed: str | None = None
    inconclusive: bool = False


@dataclass(frozen=True, slots=True)
class KnownFailures:
    """Of one system, by requirement id. ``version`` is the system's when they were last written."""

    file: Path
    system: str
    version: str | None = None
    entries: Mapping[str, KnownFailure] = field(default_factory=dict)


def load(path: Path) -> KnownFailures:
    """Raises :class:`ProfileError`, one line that names file, key and what is allowed."""
    table = Table.read(path)
    system, version = table.take("system", str), table.optional("version", str)
    entries = {name: _entry(_table_of(table, name)) for name in table.names()}
    return KnownFailures(path, system, version, entries)


def place_of(profile: Profile) -> Path:
    """Where the list of a system lies unless another is named: with those that ship, or beside the user's profile."""
    if profile.file.absolute().parent == PROFILES:
        return HERE / profile.file.name
    return profile.file.with_name(f"{profile.file.stem}.known_failures.toml")


def comment_of(path: Path) -> str:
    """The lines of comment that a file begins with; they are kept when it is written anew."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    head = []
    for line in lines:
        if not line.startswith("#"):
            break
        head.append(line)
    return "\n".join(head)


def _table_of(table: Table, name: str) -> Table:
    """An entry; a key of the head that is misspelt is told as such."""
    try:
        return table.table(name)
    except ProfileError as error:
        hint = f"expected {', '.join(HEAD_KEYS)}, or a table [ID] a requirement"
        raise ProfileError(table.file, name, f"{hint} ({str(error).rpartition(': ')[2]})") from None


def _entry(table: Table) -> KnownFailure:
    entry = KnownFailure(
        reason=table.take("reason", str),
        evidence=table.take("evidence", str, ""),
        seen_in=table.strings("seen_in", ()),
        disputed=table.optional("disputed", str),
        inconclusive=table.take("inconclusive", bool, False),
    )
    table.done()
    if not entry.reason.strip() or "\n" in entry.reason:
        raise table.wrong("reason", f"expected a text of one line, not blank; seen {entry.reason!r}")
    if "\n" in entry.evidence:
        raise table.wrong("evidence", f"expected a text of one line; seen {entry.evidence!r}")
    if entry.disputed is not None and not entry.disputed.startswith(LINKS):
        raise table.wrong("disputed", f"expected a link, https://…, to where it is discussed; seen {entry.disputed!r}")
    return entry
