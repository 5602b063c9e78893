"""Runs every mutant against the scenarios of the requirement it breaks, and says which were caught, and by what."""

import asyncio
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from conformance.contract.vocabulary import Verdict
from conformance.mutants.covering import SCENARIOS, files_by_requirement
from conformance.mutants.nursery import QUIET, Nursery
from conformance.mutants.patch import Mutant, MutantError, load
from conformance.report import ndjson
from conformance.report.results import Report, family_of
from conformance.report.summary import ExitStatus
from conformance.systems import routing
from conformance.systems.cluster import Cluster
from conformance.systems.engine import FakeEngine, start_engine
from conformance.systems.guard import CannotRun

HOUSE = Path(__file__).parent.parent
PROFILES = HOUSE / "systems" / "profiles"
REFERENCES = {
    "proxy": ("reference.toml", "conformance.reference.capture"),
    "rebuild": ("reference-rebuild.toml", "conformance.reference.rebuild"),
    "rollout": ("reference-rollout.toml", "conformance.reference.rollout"),
}
PATIENCE_SECONDS = 180.0
RUNS_PER_MUTANT = 1000
RUN_BLOCKS = 1_000_000 // RUNS_PER_MUTANT
SMOKE = "test_smoke.py"
"""The scenarios that every mutant plays too: a plain conversation has to work in spite of the fault."""


@dataclass(frozen=True, slots=True)
class Caught:
    """What became of one mutant. ``why_not`` is None where it was killed as it should be."""

    mutant: Mutant
    why_not: str | None

    def line(self) -> str:
        verdict = "killed" if self.why_not is None else f"NOT KILLED: {self.why_not}"
        return f"{self.mutant.name:<44} {self.mutant.violates}  {verdict}"


@dataclass(frozen=True, slots=True)
class Lane:
    """What runs one after the other have in common: the engine, what they are forked from, a Ray cluster's address.

    Runs side by side share no engine: scenarios close its idle connections, whose ever they are.
    """

    engine: FakeEngine
    nursery: Nursery
    cluster: str | None = None


Lanes = SimpleQueue[Lane]


def hunt(names: Sequence[str], jobs: int) -> int:
    """0 if all were killed, else 1. Prints a line a mutant as it is decided.

    Told to end, it ends once the mutants under way are done; it leaves no process and no folder.
    """
    chosen = pick(names)
    survivors: list[Caught] = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    files = files_by_requirement()
    plays = [files.get(mutant.violates, [SCENARIOS]) for mutant in chosen]
    with _cluster(plays) as cluster, _lanes(min(jobs, len(chosen)), cluster) as lanes, _pool(jobs) as pool:
        waiting = [
            pool.submit(in_a_lane, lanes, mutant, block, there)
            for block, (mutant, there) in enumerate(zip(chosen, plays, strict=True))
        ]
        for count, done in enumerate(as_completed(waiting), start=1):
            caught = done.result()
            say(f"[{count}/{len(chosen)}] {caught.line()}")
            if caught.why_not is not None:
                survivors.append(caught)
    killed = len(chosen) - len(survivors)
    say(f"\n{killed} of {len(chosen)} mutants killed")
    for caught in survivors:
        say(caught.line())
    say(f"mutants: {killed} passed, {len(survivors)} failed")
    return 1 if survivors else 0


def pick(names: Sequence[str]) -> list[Mutant]:
    """Mutants by name, by what they violate or by its family; all without names. Raises MutantError."""
    mutants = load()
    known = {name for one in mutants.values() for name in _names(one)}
    for name in names:
        if name not in known:
            raise MutantError(
                f"no mutant, family or violated requirement {name!r}; trackgauge mutants --list names them"
            )
    chosen = [one for one in mutants.values() if not names or _names(one) & set(names)]
    if not chosen:
        raise MutantError("there are no mutants")
    return chosen


def _names(mutant: Mutant) -> set[str]:
    return {mutant.name, mutant.violates, family_of(mutant.violates)}


def table(names: Sequence[str]) -> str:
    return "\n".join(f"{one.name:<44} {one.violates}  {one.about}" for one in pick(names))


@contextmanager
def _pool(jobs: int) -> Iterator[ThreadPoolExecutor]:
    pool = ThreadPoolExecutor(max_workers=max(1, jobs))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _lanes(jobs: int, cluster: str | None) -> Iterator[Lanes]:
    """One for each run at a time."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="nurseries-"))
        free: Lanes = SimpleQueue()
        for number in range(max(1, jobs)):
            nursery = Nursery(Path(folder, f"{number}.log"))
            stack.callback(nursery.close)
            free.put(Lane(stack.enter_context(_engine()), nursery, cluster))
        yield free


@contextmanager
def _engine() -> Iterator[FakeEngine]:
    """One fake vLLM for many mutants: they differ in the proxy, and play in blocks of run numbers of their own."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        engine = start_engine(Path(folder))
        try:
            for name, body in routing.tenants().items():
                asyncio.run(engine.tenant(name, body))
            yield engine
        finally:
            engine.close()


@contextmanager
def _cluster(plays: Sequence[Sequence[Path]]) -> Iterator[str | None]:
    """The address of one Ray cluster for all mutants, each with workers of its own; None if no rollout runs on one."""
    if not any(file.parent == SCENARIOS / "ray" for files in plays for file in files):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        cluster = Cluster(Path(folder))
        try:
            yield cluster.address
        finally:
            cluster.close()


def in_a_lane(lanes: Lanes, mutant: Mutant, block: int, files: Sequence[Path]) -> Caught:
    """Waits for a free one."""
    lane = lanes.get()
    try:
        return try_one(mutant, lane, block, files)
    finally:
        lanes.put(lane)


def try_one(mutant: Mutant, lane: Lane, block: int, files: Sequence[Path]) -> Caught:
    """Run the scenarios that judge what the mutant violates, in ``files``, and the smoke scenarios against it."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        profile, ran = Path(folder, "mutant.toml"), Path(folder, "ran")
        profile.write_text(profile_of(mutant, ran), encoding="utf-8")
        options = {
            "--system": profile,
            "--covering": mutant.violates,
            "--report": folder,
            "--engine": lane.engine.url,
            "--basetemp": Path(folder, "files"),
            "--first-run": block % RUN_BLOCKS * RUNS_PER_MUTANT,
            **({} if lane.cluster is None else {"--ray-cluster": lane.cluster}),
        }
        arguments = [f"{name}={value}" for name, value in options.items()]
        places = list(dict.fromkeys(map(str, [SCENARIOS / SMOKE, *files])))
        switches = ("--smoke", "--no-drawings")
        words = ["-m", "e2e or ray", *switches, *arguments, *QUIET, *places]
        log = Path(folder, "run.log")
        try:
            status = lane.nursery.run(words, cwd=Path(folder), log=log, seconds=PATIENCE_SECONDS)
        except CannotRun as error:
            return Caught(mutant, str(error))
        if status is None:
            return Caught(mutant, f"its run did not end within {PATIENCE_SECONDS:g} s")
        report_file = Path(folder, "results.ndjson")
        if not report_file.exists():
            return Caught(mutant, f"no report (status {status}): {_last_line(log)}")
        return Caught(mutant, judge(mutant, ndjson.read(report_file), ran.exists()))


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.exists() else []
    return next((line for line in reversed(lines) if line.strip()), "it said nothing")


def judge(mutant: Mutant, report: Report, ran: bool) -> str | None:
    """None if exactly the named requirements failed, nothing broke, and a plain conversation still works."""
    if report.footer.exit_status == ExitStatus.NO_SYSTEM:
        return "the reference did not start with it"
    if report.errors:
        return f"the suite broke: {report.errors[0].reason}"
    errors = [line for line in report.results if line.verdict is Verdict.ERROR]
    if errors:
        return f"{errors[0].requirement} ended in an error: {errors[0].reason}"
    if not ran:
        return "its changed line never ran"
    failed = [line for line in report.results if line.verdict is Verdict.FAIL]
    if mutant.violates not in {line.requirement for line in failed}:
        return f"{mutant.violates} did not fail{_instead(mutant, report)}"
    smoked = [line for line in failed if line.scenario.startswith(SMOKE)]
    if mutant.smoke and smoked:
        return f"the smoke scenario failed too ({smoked[0].requirement}); say smoke = false if it has to"
    named = {mutant.violates, *mutant.also}
    surplus = {line.requirement for line in failed if line not in smoked and line.requirement not in named}
    if surplus:
        return f"{', '.join(sorted(surplus))} failed too; name it under also if it follows from the fault"
    return None


def _instead(mutant: Mutant, report: Report) -> str:
    """What became of the requirement, where that is more than a pass."""
    lines = [line for line in report.results if line.requirement == mutant.violates]
    told = next((line for line in lines if line.reason), None)
    return f", it was {told.verdict}: {told.reason}" if told else ""


def profile_of(mutant: Mutant, ran: Path) -> str:
    """The reference's own profile, with its command started through the mutant. Raises MutantError if that is gone."""
    file, module = REFERENCES[mutant.kind]
    text = (PROFILES / file).read_text(encoding="utf-8")
    before = f'"{module}"'
    if text.count(before) != 1:
        raise MutantError(f"{file}: its command does not name {module} once")
    return text.replace(before, f'"conformance.mutants", "{mutant.name}", "{ran}"')


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - this is what the command shows
