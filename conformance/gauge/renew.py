"""The lists of known failures, made anew from what a run found: ``--write-known-failures``."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from conformance.contract.vocabulary import SystemKind, Verdict
from conformance.gauge.known import Lists
from conformance.report.lines import contrast, printable
from conformance.report.results import Report, Result
from conformance.report.summary import unexplained
from conformance.requirements.catalogue import Catalogue
from conformance.systems.known_failures.form import KnownFailure, KnownFailures, comment_of
from conformance.systems.known_failures.text import text_of

LONGEST = 120
"""Characters of a value within a reason that nobody has written yet."""

FAILED = (Verdict.FAIL, Verdict.KNOWN)


def write(report: Report, lists: Lists, catalogue: Catalogue) -> list[str]:
    """Writes the lists that hold anything or exist already; returns a line to show for each. Raises OSError."""
    told = []
    for kind, before in lists.items():
        its = {identity for identity in catalogue if catalogue[identity].applies_to is kind}
        after = renewed(before, report.results, its)
        if not after and not before.file.exists():
            told.append(f"nothing that {before.system} is known to fail: {before.file} is not written")
            continue
        version = _version(report.header.systems, kind, before.system)
        before.file.write_text(text_of(before.system, version, after, comment_of(before.file)), encoding="utf-8")
        open_ones = sum(entry.inconclusive for entry in after.values())
        added, dropped = len(after.keys() - before.entries.keys()), len(before.entries.keys() - after.keys())
        told.append(
            f"{before.file}: {len(after)} known failures of {before.system}, {added} new, {dropped} dropped"
            + (f"; {open_ones} could not be judged, see why" if open_ones else "")
        )
    return told


def renewed(before: KnownFailures, results: Sequence[Result], its: Collection[str]) -> dict[str, KnownFailure]:
    """The entries after a run: what failed is in, what went stale is out, what was not judged stays as it is.

    ``its`` are the requirements that speak of this kind of system. Reasons, evidence and links of entries that stay are
    kept word for word.
    """
    stale = {line.requirement for line in results if line.verdict is Verdict.STALE}
    entries = {identity: entry for identity, entry in before.entries.items() if identity not in stale}
    listed = [line for line in results if line.verdict in FAILED] + unexplained(results)
    all_lines = _by_requirement(results)
    for identity, lines in _by_requirement(line for line in listed if line.requirement in its).items():
        judged = {line.scenario for line in all_lines[identity] if line.verdict is not Verdict.SKIP}
        known = entries.get(identity) or _first_entry(lines[0])
        seen = {line.scenario for line in lines} | (set(known.seen_in) - judged)
        open_too = any(line.verdict is Verdict.INCONCLUSIVE for line in lines)
        entries[identity] = replace(known, seen_in=tuple(sorted(seen)), inconclusive=known.inconclusive or open_too)
    return entries


def _first_entry(line: Result) -> KnownFailure:
    """What a run can say by itself; the reason is for people to write better."""
    place = line.scenario if line.where is None else f"{line.scenario}: {line.where}"
    if line.verdict is Verdict.INCONCLUSIVE:
        return KnownFailure(f"cannot be judged: {_one_line(line.reason or 'it was not reached')}", _one_line(place))
    expected, seen = contrast(line.expected, line.seen, LONGEST)
    return KnownFailure(f"expected {_one_line(expected)}, seen {_one_line(seen)}", _one_line(place))


def _by_requirement(results: Iterable[Result]) -> dict[str, list[Result]]:
    found: dict[str, list[Result]] = {}
    for line in results:
        found.setdefault(line.requirement, []).append(line)
    return found


def _version(systems: Mapping[str, str], kind: SystemKind, name: str) -> str | None:
    return systems.get(kind.value, name).removeprefix(name).strip() or None


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))
