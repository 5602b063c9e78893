"""Known failures in a run: which lists count, what they make of a verdict, and which of their entries are stale."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.contract.vocabulary import SystemKind, Verdict
from conformance.report.results import Result
from conformance.report.summary import explains
from conformance.requirements.catalogue import Catalogue
from conformance.systems.known_failures.form import NONE, KnownFailure, KnownFailures, load, place_of
from conformance.systems.profile import Profile
from conformance.systems.tables import ProfileError

Lists = Mapping[SystemKind, KnownFailures]
"""One a system of the run; empty where nothing is known of it, and then ``file`` is where it would be written."""

NOT_HELD = (Verdict.FAIL, Verdict.KNOWN, Verdict.ERROR, Verdict.INCONCLUSIVE)


def lists_for(asked: str | None, profiles: Mapping[SystemKind, Profile], whole: Catalogue, writing: bool) -> Lists:
    """``asked`` is a file, a folder with a file NAME.toml a system, ``none``, or None for where a list belongs.

    Raises :class:`ProfileError`. A file that is asked for has to be there, unless it is about to be written.
    """
    if asked == NONE and writing:
        raise ProfileError("--known-failures none", "", "is not to be written; leave it out, or name the file to write")
    if asked == NONE:
        return {kind: KnownFailures(place_of(profile), profile.name) for kind, profile in profiles.items()}
    if asked is None:
        places = {kind: place_of(profile) for kind, profile in profiles.items()}
    elif Path(asked).is_dir():
        places = {kind: Path(asked, f"{profile.file.stem}.toml") for kind, profile in profiles.items()}
    else:
        return _from_file(Path(asked), profiles, whole, writing)
    return {kind: _read(place, profiles[kind], whole) for kind, place in places.items()}


def _from_file(path: Path, profiles: Mapping[SystemKind, Profile], whole: Catalogue, writing: bool) -> Lists:
    names = {profile.name: kind for kind, profile in profiles.items()}
    if writing and not path.exists():
        if len(profiles) > 1:
            raise ProfileError(str(path), "", f"is one file; give a folder, since the run judges {', '.join(names)}")
        system = next(iter(names))
    else:
        system = load(path).system
    if system not in names:
        raise ProfileError(str(path), "system", f"{system!r} is not judged by this run; it judges {', '.join(names)}")
    mine = {names[system]: _read(path, profiles[names[system]], whole)}
    others = {kind: KnownFailures(place_of(its), its.name) for kind, its in profiles.items() if kind not in mine}
    return {**others, **mine}


def _read(path: Path, profile: Profile, whole: Catalogue) -> KnownFailures:
    if not path.exists():
        return KnownFailures(path, profile.name)
    read = load(path)
    shown = "/".join(path.parts[-2:])
    if read.system != profile.name:
        raise ProfileError(shown, "system", f"expected {profile.name!r}, seen {read.system!r}")
    for identity in read.entries:
        if identity not in whole:
            raise ProfileError(shown, identity, "no such requirement; see trackgauge requirements")
        requirement = whole[identity]
        if not requirement.checkable:
            raise ProfileError(shown, identity, "is not judged any more; take it off the list")
        if requirement.applies_to is not profile.kind:
            raise ProfileError(
                shown, identity, f"speaks of a {requirement.applies_to}; {read.system} is a {profile.kind}"
            )
    return read


def with_known(results: Sequence[Result], entry_of: Mapping[str, KnownFailure]) -> list[Result]:
    """The lines of one scenario, listed failures as ``known``; ``entry_of`` holds the entries by requirement.

    So is, for entries that say so, what the scenario could not judge while nothing in it failed that explains it.
    """
    failed = [line for line in results if line.verdict is Verdict.FAIL]
    return [_as_known(line, entry_of.get(line.requirement), failed) for line in results]


def _as_known(line: Result, entry: KnownFailure | None, failed: Sequence[Result]) -> Result:
    if entry is None:
        return line
    explained = any(explains(failure, line) for failure in failed)
    unjudged = line.verdict is Verdict.INCONCLUSIVE and entry.inconclusive and not explained
    if line.verdict is not Verdict.FAIL and not unjudged:
        return line
    return replace(line, verdict=Verdict.KNOWN, gates=False, reason=entry.reason, disputed=entry.disputed)


def with_stale(results: Iterable[Result], entry_of: Mapping[str, KnownFailure], whole_run: bool) -> list[Result]:
    """All lines of a run, those of listed requirements that hold now as ``stale``.

    Such a requirement passed somewhere and neither failed nor stayed open anywhere. A run that played only some of the
    scenarios can tell that only of entries whose every ``seen_in`` passed in it.
    """
    results = list(results)
    by_requirement: dict[str, list[Result]] = {}
    for line in results:
        if line.requirement in entry_of:
            by_requirement.setdefault(line.requirement, []).append(line)
    stale = {
        identity: its for identity, its in by_requirement.items() if _holds_now(its, entry_of[identity], whole_run)
    }
    return [_as_stale(line, entry_of[line.requirement]) if line.requirement in stale else line for line in results]


def _holds_now(lines: Sequence[Result], entry: KnownFailure, whole_run: bool) -> bool:
    passed = {line.scenario for line in lines if line.verdict is Verdict.PASS}
    if not passed or any(line.verdict in NOT_HELD for line in lines):
        return False
    skipped = {line.scenario for line in lines if line.verdict is Verdict.SKIP}
    if whole_run:
        return not skipped.intersection(entry.seen_in)
    return bool(entry.seen_in) and passed.issuperset(entry.seen_in)


def _as_stale(line: Result, entry: KnownFailure) -> Result:
    if line.verdict is not Verdict.PASS:
        return line
    reason = f"listed as a known failure ({entry.reason}), and it holds wherever it was judged"
    return replace(line, verdict=Verdict.STALE, gates=entry.disputed is None, reason=reason, disputed=entry.disputed)


def entries_of(lists: Lists) -> dict[str, KnownFailure]:
    """Of all systems of a run: a requirement speaks of one kind of system only."""
    return {identity: entry for known in lists.values() for identity, entry in known.entries.items()}


def is_whole(config: pytest.Config) -> bool:
    """Whether nothing narrows this run to some of the scenarios, which all lie below one folder ``scenarios``.

    What is not certain is narrowed. Of a run that is cut short, see ``Collected.cut``.
    """
    narrowing = ("keyword", "covering", "deselect", "lf", "failedfirst", "stepwise", "ignore", "ignore_glob")
    if any(getattr(config.option, name, None) for name in narrowing):
        return False
    return all(Path(word).name == "scenarios" for word in config.args)
