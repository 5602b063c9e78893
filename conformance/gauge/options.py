"""The options that the plugin adds to pytest, and what they say once they were judged."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from conformance.contract.vocabulary import SystemKind
from conformance.gauge.known import Lists, is_whole, lists_for
from conformance.requirements.catalogue import Catalogue, load
from conformance.requirements.form import CatalogueError
from conformance.systems.profile import Profile
from conformance.systems.profiles import choose
from conformance.systems.tables import ProfileError


@dataclass(frozen=True, slots=True)
class Chosen:
    """What this run judges and by what. ``catalogue`` may be cut to a frozen set; ``whole`` never is.

    ``asked`` are the only requirements that the run stands or falls by, whatever their level; all where it is empty.
    ``whole_run`` says that no option narrows the run to some of the scenarios.
    """

    profiles: dict[SystemKind, Profile]
    catalogue: Catalogue
    whole: Catalogue
    covering: frozenset[str]
    asked: frozenset[str]
    smoke: bool
    strict: bool
    with_project: bool
    report: Path | None
    engine: str | None
    real_engine: str | None
    first_run: int
    known: Lists = field(default_factory=dict)
    write_known: bool = False
    whole_run: bool = True
    drawings: bool = True


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("trackgauge", "conformance of token-capture proxies and rollout rebuilds")
    group.addoption(
        "--system",
        action="append",
        default=[],
        metavar="FILE|NAME",
        help="the profile of a system to judge; once per kind (proxy, rebuild, rollout). Default: the reference",
    )
    group.addoption("--requirements", default=None, metavar="SET", help="judge by a frozen set, like 2026-12")
    group.addoption(
        "--covering", default="", metavar="IDS", help="only scenarios that judge one of these: STR-007,CAP-002 or STR"
    )
    group.addoption(
        "--judging", default="", metavar="IDS", help="only these can fail the run, whatever their level and origin"
    )
    group.addoption("--smoke", action="store_true", help="with --covering: the smoke scenarios too")
    group.addoption("--strict-levels", action="store_true", help="SHOULD and MAY fail the run too")
    group.addoption(
        "--with-project", action="store_true", help="this project's own decisions count for foreign systems too"
    )
    group.addoption(
        "--known-failures",
        default=None,
        metavar="FILE|DIR|none",
        help="what the system is known to fail: a file, a folder with NAME.toml, or none. Default: the one that ships, "
        "or that lies beside the profile as NAME.known_failures.toml",
    )
    group.addoption(
        "--write-known-failures", action="store_true", help="write that file from this run; its reasons are kept"
    )
    group.addoption(
        "--engine", default=None, metavar="URL", help="a fake vLLM that runs already, its tenants registered"
    )
    group.addoption(
        "--real-engine",
        default=None,
        metavar="URL",
        help="a real vLLM, as trackgauge engine-recorder --help starts it, in the place of the fake: what only a fake "
        "can play is skipped, what asks no engine is left out",
    )
    group.addoption(
        "--ray-cluster", default=None, metavar="HOST:PORT", help="a Ray cluster for scenarios that lose no node of it"
    )
    group.addoption(
        "--hold", action="store_true", help="keep everything running after a scenario in which something did not hold"
    )
    group.addoption("--first-run", type=int, default=0, help="with --engine: the number that runs are counted from")
    group.addoption("--report", default=None, metavar="DIR", help="the folder that the report goes to")
    group.addoption("--no-drawings", action="store_true", help="only results.ndjson, summary.json and junit.xml")


def judge_options(config: pytest.Config) -> Chosen:
    """Raises pytest.UsageError, one line, on anything that is wrong with the options or the files they name."""
    try:
        whole = load()
        set_name = config.getoption("--requirements")
        catalogue = whole if set_name is None else load(set_name)
        profiles = choose(config.getoption("--system"))
        writing = config.getoption("--write-known-failures")
        known = lists_for(config.getoption("--known-failures"), profiles, whole, writing)
    except (CatalogueError, ProfileError) as error:
        raise pytest.UsageError(str(error)) from None
    report = config.getoption("--report")
    asked = _named(config.getoption("--judging"), whole, "--judging")
    return Chosen(
        profiles=profiles,
        catalogue=catalogue,
        whole=whole,
        covering=_named(config.getoption("--covering"), whole, "--covering"),
        asked=asked,
        smoke=config.getoption("--smoke"),
        strict=config.getoption("--strict-levels") or bool(asked),
        with_project=config.getoption("--with-project"),
        engine=config.getoption("--engine"),
        real_engine=config.getoption("--real-engine"),
        first_run=config.getoption("--first-run"),
        known=known,
        write_known=writing,
        whole_run=is_whole(config),
        drawings=not config.getoption("--no-drawings"),
        report=None if report is None else Path(report).absolute(),
    )


def _named(text: str, whole: Catalogue, option: str) -> frozenset[str]:
    wanted: set[str] = set()
    for word in filter(None, (part.strip() for part in text.split(","))):
        found = {word} if word in whole else {identity for identity in whole if whole[identity].family == word}
        if not found:
            raise pytest.UsageError(f"{option} {word}: no such requirement or family; see trackgauge requirements")
        wanted |= found
    return frozenset(wanted)
