"""Known failures as the text of their file."""

import json
from collections.abc import Mapping

from conformance.systems.known_failures.form import KnownFailure

ABOUT = """\
# What this system is known to fail, and why. A listed failure fails no run; a listed requirement that holds again does.
# Made by --write-known-failures, which keeps the reasons and links of what still fails: write them for people."""


def text_of(system: str, version: str | None, entries: Mapping[str, KnownFailure], comment: str = "") -> str:
    """The whole file, entries in the order of their ids."""
    head = [comment or ABOUT, "", f"system = {_quoted(system)}"]
    if version is not None:
        head.append(f"version = {_quoted(version)}")
    tables = [_table(identity, entries[identity]) for identity in sorted(entries)]
    return "\n\n".join(["\n".join(head), *tables]) + "\n"


def _table(identity: str, entry: KnownFailure) -> str:
    lines = [f"[{identity}]", f"reason = {_quoted(entry.reason)}"]
    if entry.evidence:
        lines.append(f"evidence = {_quoted(entry.evidence)}")
    if entry.seen_in:
        lines += ["seen_in = [", *(f"  {_quoted(scenario)}," for scenario in entry.seen_in), "]"]
    if entry.disputed is not None:
        lines.append(f"disputed = {_quoted(entry.disputed)}")
    if entry.inconclusive:
        lines.append("inconclusive = true")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """A basic string of TOML. JSON's escapes are TOML's too, but for DEL and for half characters, which TOML lacks."""
    whole = text.encode("utf-8", "replace").decode()
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")
