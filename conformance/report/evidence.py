"""What a verdict rests on, kept beside the report: the hops, records and ledger rows of one scenario."""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from conformance.report import har
from conformance.report.plain import JSON, elide, encode, plain
from conformance.report.redact import redacted
from conformance.report.results import suite_version

EVIDENCE_VERSION = 1

LARGEST = 512 * 1024
"""Bytes of one evidence file. What is larger is shortened inside, each time with a remark of what is left out."""

_BOUNDS = ((256, 32_768), (64, 8192), (32, 2048), (16, 512), (8, 128), (4, 48), (2, 16))
"""Items of a list and characters of a string, tried in this order until the file is small enough."""

_SCALAR = rb'(?:-?[0-9][0-9.eE+-]*|null|true|false|"\xe2\x80\xa6 [0-9]+ of [0-9]+ items left out \xe2\x80\xa6")'
_SCALARS = re.compile(rb"\[\s+(" + _SCALAR + rb"(?:,\s+" + _SCALAR + rb")*+)\s+\]")
"""A list of numbers that spans lines, shortened or not. No string looks like one: they hold no raw line break."""


def write(report_folder: Path, scenario: str, parts: Mapping[str, object]) -> str:
    """Writes ``parts`` (``hops``, ``records``, ``ledger``, …) as one JSON file, and the hops as HAR beside it.

    Credentials are hidden in both. Returns the path of the first relative to ``report_folder``, with forward slashes,
    as a result line names it.
    """
    relative = f"evidence/{file_name(scenario)}"
    path = report_folder / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    shown = {name: redacted(plain(part)) for name, part in parts.items()}
    path.write_bytes(bounded(scenario, shown) + b"\n")
    drawn = har.archive(scenario, shown, suite_version())
    if drawn is not None:
        path.with_suffix(".har").write_bytes(drawn + b"\n")
    return relative


def file_name(scenario: str) -> str:
    """A file name that reads like the scenario's and differs for every other scenario."""
    digest = hashlib.sha256(scenario.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    readable = re.sub(r"[^A-Za-z0-9_]+", "-", scenario.rsplit("/", 1)[-1]).strip("-")
    return f"{readable[:100]}-{digest}.json"


def bounded(scenario: str, parts: dict[str, JSON], largest: int = LARGEST) -> bytes:
    """The file's text. ``shortened`` is null for a whole file, else the bounds that lists and strings were held to."""
    size = len(encode(parts))
    if size <= largest and len(whole := _encoded(scenario, None, parts)) <= largest:
        return whole
    for items, chars in _BOUNDS:
        shortened: dict[str, JSON] = {"items": items, "characters": chars, "whole_bytes": size}
        text = _encoded(scenario, shortened, {name: elide(part, items, chars) for name, part in parts.items()})
        if len(text) <= largest:
            return text
    sizes: dict[str, JSON] = {name: f"… left out, {len(encode(part))} bytes …" for name, part in parts.items()}
    return _encoded(scenario, {"whole_bytes": size}, sizes)


def _encoded(scenario: str, shortened: JSON, parts: dict[str, JSON]) -> bytes:
    head: dict[str, JSON] = {"v": EVIDENCE_VERSION, "scenario": scenario, "shortened": shortened}
    return _SCALARS.sub(_on_one_line, encode({**head, **parts}, indent=1))


def _on_one_line(found: re.Match[bytes]) -> bytes:
    return b"[" + b" ".join(found[1].split()) + b"]"
