"""The hooks of a run: choose scenarios, let each end in verdicts, bring the workers' lines together, report."""

import contextlib
import inspect
import time
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conformance.contract.vocabulary import SystemKind
from conformance.gauge import renew, telling
from conformance.gauge.case import CASE, Case, NotConforming
from conformance.gauge.check import Inconclusive, NoSuchSystem, Unmet
from conformance.gauge.collect import COLLECTED, UNASKED, Collected
from conformance.gauge.covers import covered_by, needs_the_fake, refuse_unknown, skips
from conformance.gauge.hold import hold, is_due
from conformance.gauge.limit import limited, patiently, seconds_of
from conformance.gauge.options import Chosen, judge_options
from conformance.gauge.settle import Judge, pack, unpack
from conformance.report import terminal
from conformance.report.folder import PAGE, RESULTS
from conformance.report.results import Report, SuiteError
from conformance.systems import guard
from conformance.systems.absent import absent
from conformance.systems.calls import SystemFailed
from conformance.systems.profiles import DEFAULT_NAMES
from conformance.systems.proxy import NotOurs
from conformance.systems.servers import SystemNotStarted

if TYPE_CHECKING:
    from conformance.gauge.world import World

CHOSEN = pytest.StashKey[Chosen]()
LINES = "trackgauge"
NOT_STARTED = "trackgauge_not_started"
COUNTS = "trackgauge_counts"
ASKS_AN_ENGINE = frozenset({"scene", "proxy", "own_proxy", "recording", "fake_vllm"})
"""The fixtures behind which an engine stands."""


def chosen_of(config: pytest.Config) -> Chosen:
    """What this run judges; read at first need, so that a foreign project's tests pay nothing."""
    if CHOSEN not in config.stash:
        config.stash[CHOSEN] = judge_options(config)
    return config.stash[CHOSEN]


def worker_number(config: pytest.Config) -> int:
    """0 without xdist, else 0 for gw0, 1 for gw1, …"""
    return int(_worker_input(config).get("workerid", "gw0").removeprefix("gw"))


def watch(item: pytest.Item, world: "World") -> None:
    """From now on a system that dies is the named cause of what it spoils."""
    case = item.stash.get(CASE, None)
    if case is not None:
        case.dead, case.own_death, case.broken_engine = world.dead, world.own_death, world.engine_dead
        case.note_silence = world.note_silence
        case.whereabouts = world.whereabouts


class Session:
    """One per pytest process: the controller's collects, a worker's hands over."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._counts: Counter[str] = Counter()
        self._began = time.monotonic()
        options = config.option
        if config.getoption("--system") or config.getoption("--covering") or "e2e" in (options.markexpr or ""):
            chosen_of(config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """What is not there is told before a worker or a server starts, with a report for whoever publishes it."""
        if CHOSEN not in self._config.stash or _worker_input(self._config) or self._config.option.collectonly:
            return
        lacking = next(filter(None, map(absent, chosen_of(self._config).profiles.values())), None)
        if lacking is None:
            return
        self._collected.not_started = lacking
        with contextlib.suppress(OSError):
            telling.write(self._collected, self._collected.close(), self._folder)
        raise pytest.UsageError(lacking)

    # Choosing

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        if not any(covered_by(item) for item in items):
            return
        chosen = chosen_of(config)
        declared = {kind: profile.capabilities for kind, profile in chosen.profiles.items()}
        left_out = [item for item in items if not _is_asked_for(item, chosen)]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if item not in set(left_out)]
        for item in items:
            covered = covered_by(item)
            if covered:
                refuse_unknown(item, chosen.whole)
                skipped = skips(covered, chosen.catalogue, declared)
                if chosen.real_engine is not None:
                    skipped |= dict.fromkeys(covered, why) if (why := needs_the_fake(item)) is not None else {}
                    patiently(item)
                item.stash[CASE] = self._case(item, covered, skipped, chosen)

    def _case(self, item: pytest.Item, covered: tuple[str, ...], skipped: dict[str, str], chosen: Chosen) -> Case:
        judge = Judge(
            catalogue=chosen.catalogue,
            whole=chosen.whole,
            names={kind: profile.name for kind, profile in chosen.profiles.items()},
            own={
                kind: chosen.with_project or _is_reference(kind, profile.name)
                for kind, profile in chosen.profiles.items()
            },
            strict=chosen.strict,
            known=chosen.known,
            asked=chosen.asked,
        )
        return Case(_scenario_name(item), covered, skipped, judge, self._folder)

    # Running

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        case = item.stash.get(CASE, None)
        if case is None:
            return
        case.began = time.monotonic()
        if case.all_skipped is not None:
            case.skip()
            pytest.skip(case.all_skipped)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        case = item.stash.get(CASE, None)
        if case is None:
            return (yield from _played_elsewhere())
        raised: BaseException | None = None
        if inspect.iscoroutinefunction(getattr(item, "obj", None)) and not item.config.getoption("usepdb"):
            item.obj = limited(item.obj, seconds_of(item))  # type: ignore[attr-defined]  # of pytest's functions, which items of ours are
        try:
            yield
        except (KeyboardInterrupt, SystemExit, pytest.exit.Exception):
            raise
        except BaseException as error:
            raised = error
        bad = case.end(raised)
        if is_due(item, bad):
            hold(item, case, bad)
        if bad is None:
            return None
        if case.only_known:
            raise pytest.xfail.Exception(bad) from raised
        raise NotConforming(bad) from raised

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        case = item.stash.get(CASE, None)
        error = call.excinfo.value if call.excinfo is not None else None
        if case is None:
            if report.when == "setup" and isinstance(error, NoSuchSystem | SystemFailed):
                report.longrepr = str(error)
            return report
        if isinstance(error, SystemNotStarted):
            setattr(report, NOT_STARTED, str(error))
            report.longrepr = error.why
            item.session.shouldstop = "a system did not start"
        elif report.when == "setup" and isinstance(error, SystemFailed):
            case.give_up(str(error).partition("\n")[0])
            report.longrepr = str(error)
        elif report.failed and report.when != "call":
            case.break_down(f"{report.when}: {type(error).__name__}: {error}", judged=report.when == "teardown")
        if isinstance(error, NotConforming) and isinstance(error.__cause__, Unmet | Inconclusive | None):
            report.longrepr = str(error)
        if report.when == "call" or not report.passed:
            setattr(report, LINES, pack(case.results, case.errors))
            case.results, case.errors = [], []
        return report

    # Bringing together

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if _worker_input(self._config):
            return
        not_started = getattr(report, NOT_STARTED, None)
        lines = getattr(report, LINES, None)
        if not_started is not None:
            self._collected.not_started = not_started
        elif lines is not None:
            self._collected.add(*unpack(lines))
        elif report.failed and report.when not in ("setup", "call", "teardown"):
            self._collected.add([], [SuiteError(report.nodeid, "the worker that played it died")])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and CHOSEN in self._config.stash and not _worker_input(self._config):
            self._collected.add([], [SuiteError(report.nodeid or "collection", _last_line(report.longreprtext))])

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        self._counts.update(getattr(node, "workeroutput", {}).get(COUNTS, {}))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        mine = {"server": guard.counts.server, "refused": guard.counts.refused}
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output[COUNTS] = mine
            return
        self._counts.update(mine)
        if COLLECTED in self._config.stash:
            self._collected.servers = self._counts
            self._collected.cut = _was_cut(session, exitstatus)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        collected = self._config.stash.get(COLLECTED, None)
        if collected is None:
            return
        chosen, folder = collected.chosen, self._folder
        if collected.not_started is not None:
            terminalreporter.write_line("")
            terminalreporter.write_line(collected.not_started, red=True)
        report = collected.close()
        try:
            telling.write(collected, report, folder)
        except OSError as error:
            terminalreporter.write_line(f"{folder}: the report cannot be written: {error.strerror or error}", red=True)
        if chosen.write_known and collected.not_started is None:
            self._write_known(report, chosen, terminalreporter)
        with contextlib.suppress(BrokenPipeError):
            terminal.show(
                report, chosen.whole, terminalreporter._tw._file, str(folder / RESULTS), telling.again(chosen)
            )
            if (folder / PAGE).exists():
                terminalreporter.write_line(f"page    {folder / PAGE}")

    def _write_known(self, report: Report, chosen: Chosen, terminalreporter: pytest.TerminalReporter) -> None:
        try:
            for line in renew.write(report, chosen.known, chosen.whole):
                terminalreporter.write_line(line)
        except OSError as error:
            terminalreporter.write_line(f"the known failures cannot be written: {error}", red=True)

    @property
    def _folder(self) -> Path:
        return chosen_of(self._config).report or Path(self._config.rootpath, UNASKED)

    @property
    def _collected(self) -> Collected:
        if COLLECTED not in self._config.stash:
            self._config.stash[COLLECTED] = Collected(chosen_of(self._config), began=self._began)
        return self._config.stash[COLLECTED]


def _played_elsewhere() -> Generator[None, object, object]:
    """A test that covers nothing, as of a project that only uses the fixtures."""
    try:
        return (yield)
    except NotOurs as error:
        raise pytest.skip.Exception(f"{error}; this test asks it of the system") from None


def _is_asked_for(item: pytest.Item, chosen: Chosen) -> bool:
    if chosen.real_engine is not None and not ASKS_AN_ENGINE & set(getattr(item, "fixturenames", ())):
        return False
    if not chosen.covering or chosen.covering & set(covered_by(item)):
        return True
    return chosen.smoke and item.get_closest_marker("smoke") is not None


def _is_reference(kind: SystemKind, name: str) -> bool:
    return name in DEFAULT_NAMES


def _scenario_name(item: pytest.Item) -> str:
    """``streams/test_chat.py::test_a_…[id]``, the same from whichever folder pytest was started."""
    _, _, inside = item.nodeid.rpartition("scenarios/")
    return inside or item.nodeid


def _was_cut(session: pytest.Session, exitstatus: int) -> bool:
    """Whether scenarios that were chosen were not played."""
    cut_short = (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR)
    return bool(session.shouldstop or session.shouldfail) or exitstatus in cut_short


def _worker_input(config: pytest.Config) -> dict[str, str]:
    found: dict[str, str] = getattr(config, "workerinput", {})
    return found


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "could not be collected"
