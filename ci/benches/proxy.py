"""What a capture proxy costs: the same calls straight to a fake vLLM, through the reference, and through a peer.

Run as ``ci/bench proxy``. All systems are measured in turns in one run, so that ratios hold on a busy machine; absolute
figures want an idle one. Records lie on a tmpfs where there is one. Takes under
three minutes, and installs the peer once.
"""

import argparse
import asyncio
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import psutil

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from ci.benches.parts import load  # noqa: E402
from conformance.systems import needs, profiles  # noqa: E402
from conformance.systems.engine import FakeEngine, start_engine  # noqa: E402
from conformance.systems.install import CannotInstall, install  # noqa: E402
from conformance.systems.profile import Profile  # noqa: E402
from conformance.systems.proxy import ProxyUnderTest  # noqa: E402
from conformance.systems.proxy_start import start_proxy  # noqa: E402
from conformance.systems.routing import Route  # noqa: E402
from conformance.systems.tables import ProfileError  # noqa: E402

PEER = "rllm-model-gateway"
QUIET = {PEER: ["--log-level", "warning"]}
"""So that no system is slow because it writes a line a call."""

MEMORY_DISK = Path("/dev/shm")
MODEL = "policy-model"
TASK = "⟦000001:00:0000⟧ "
PLAYBOOK = {
    "about": "A short answer.",
    "scopes": {"main": {"turns": [{"calls": [{"name": "bash", "arguments": {"command": "ls  # {tag}"}}]}]}},
}
WORDS = {"small": 200, "100k": 100_000}
CLIENTS = (1, 16, 64)
DIRECT = "direct"


@dataclass
class Figures:
    """One system in one cell: milliseconds a call, seconds in all, CPU seconds of the system."""

    taken: list[float] = field(default_factory=list)
    wall: float = 0.0
    cpu: float = 0.0
    failed: int = 0
    lost: int = 0

    @property
    def p50(self) -> float:
        return statistics.median(self.taken)

    @property
    def p99(self) -> float:
        return sorted(self.taken)[int(len(self.taken) * 0.99)]

    @property
    def rate(self) -> float:
        return len(self.taken) / self.wall

    @property
    def cpu_ms(self) -> float:
        return self.cpu * 1e3 / len(self.taken)


@dataclass(frozen=True)
class Cell:
    """One way to call: a prompt by name, streamed or not, by so many clients at once."""

    prompt: str
    streamed: bool
    clients: int

    @property
    def name(self) -> str:
        return f"{self.prompt:5} {'streamed' if self.streamed else 'buffered'} {self.clients:2} clients"


@dataclass(frozen=True)
class System:
    """``proxy`` is None for the fake vLLM itself; ``start_cpu`` is in seconds, ``idle`` in MB."""

    name: str
    url: str
    proxy: ProxyUnderTest | None = None
    start_wall: float = 0.0
    start_cpu: float = 0.0
    idle: float = 0.0

    def head(self) -> str:
        path: str = "/t/main/v1"
        headers: tuple[tuple[str, str], ...] = ()
        if self.proxy is not None:
            carried = self.proxy.carry("{session}")
            path, headers = carried.base_path.replace("%7B", "{").replace("%7D", "}"), carried.headers
        lines = [f"POST {path}/chat/completions HTTP/1.1", "host: bench", "content-type: application/json"]
        return "\r\n".join([*lines, *(f"{name}: {value}" for name, value in headers)])

    def cpu(self) -> float:
        return 0.0 if self.proxy is None else _cpu(self.proxy.pid)


def _cpu(pid: int) -> float:
    tree = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    return sum(sum(each.cpu_times()[:2]) for each in tree)


def _resident_mb(pid: int) -> float:
    tree = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    return sum(each.memory_info().rss for each in tree) / 1e6


def available(profile: Profile) -> Profile:
    """The profile, its system installed if it was not. Raises CannotInstall."""
    if profile.install is not None and needs.lacking(profile.install) is not None:
        sys.stderr.write(f"installing {profile.name} into {profile.install.place}, once\n")
        install(profile.install)
    return profile


@contextmanager
def started(profile: Profile, engine: FakeEngine, folder: Path) -> Iterator[System]:
    """The system as its profile starts it, with its start measured."""
    began = time.perf_counter()
    log_dir = folder / profile.name
    log_dir.mkdir()
    proxy = start_proxy(
        profile,
        engine.url,
        log_dir,
        routes=[Route(MODEL, target=MODEL)],
        arguments=lambda words: [*words, *QUIET.get(profile.name, [])],
    )
    try:
        wall, cpu = time.perf_counter() - began, _cpu(proxy.pid)
        time.sleep(0.5)  # what it still allocates once it listens is part of what it needs
        yield System(profile.name, proxy.url, proxy, wall, cpu, _resident_mb(proxy.pid))
    finally:
        proxy.close()


def body(cell: Cell) -> str:
    asked: dict[str, object] = {
        "model": MODEL,
        "messages": [{"role": "user", "content": TASK + "look " * WORDS[cell.prompt]}],
        "logprobs": True,
        "top_logprobs": 0,
        "return_token_ids": True,
    }
    return json.dumps(asked | ({"stream": True} if cell.streamed else {}), ensure_ascii=False)


def measure(system: System, cell: Cell, seconds: float, number: int, figures: Figures) -> None:
    """One turn of a system; adds to its figures."""
    address = urlsplit(system.url)
    name = f"b{number}"
    cpu = system.cpu()
    # Records of long prompts weigh a megabyte each, on a disk that is memory.
    most = 1_000_000 if cell.prompt == "small" else max(30, 2 * cell.clients)
    plan = load.Plan(
        address.hostname or "", address.port or 0, system.head(), body(cell), cell.clients, seconds, most, name=name
    )
    outcome = load.run(plan)
    figures.cpu += system.cpu() - cpu
    figures.taken += outcome.taken
    figures.wall += outcome.wall
    figures.failed += outcome.failed
    if outcome.failed:
        sys.stderr.write(f"{system.name}: {outcome.failed} calls failed, the first with {outcome.first_failure!r}\n")
    figures.lost += _lost(system, len(outcome.taken))


def _lost(system: System, answered: int) -> int:
    """Calls that were answered and left no record on disk; 0 where the system keeps none there. Clears them away."""
    if system.proxy is None or system.proxy.log_dir is None or "records-disk" not in system.proxy.capabilities:
        return 0
    sessions = system.proxy.log_dir / "sessions"
    kept = len(list(sessions.glob("*/*.json")))
    for each in sessions.iterdir():
        shutil.rmtree(each)
    return answered - kept


def play(
    systems: list[System], engine: FakeEngine, cells: list[Cell], rounds: int, seconds: float
) -> dict[Cell, dict[str, Figures]]:
    """All cells, the systems taking turns in each."""
    table: dict[Cell, dict[str, Figures]] = {cell: {each.name: Figures() for each in systems} for cell in cells}
    number = 0
    for done, cell in enumerate(cells):
        sys.stderr.write(f"{done}/{len(cells)} {cell.name}\n")
        for _ in range(rounds):
            for system in systems:
                measure(system, cell, seconds, number, table[cell][system.name])
                asyncio.run(engine.forget(tenant="main"))
                number += 1
    return table


GOALS = """\
goals of the reference (ratios hold on a busy machine; ms, s and MB want an idle one)"""


def goals(systems: list[System], table: dict[Cell, dict[str, Figures]]) -> Iterator[str]:
    """What the reference has to reach, and whether it did: short calls, since long ones are mostly the fake's work."""
    ours = systems[1]
    short = {cell: row for cell, row in table.items() if cell.prompt == "small"}
    alone = {cell: row[ours.name].p50 - row[DIRECT].p50 for cell, row in short.items() if cell.clients == 1}
    reached = [
        ("CPU until it is ready", ours.start_cpu, "at most", 1.0, "s"),
        ("resident when idle", ours.idle, "at most", 70.0, "MB"),
        *[(f"added median, {cell.name}", added, "at most", 1.5, "ms") for cell, added in alone.items()],
    ]
    for other in systems[2:]:
        for cell, row in short.items():
            mine, theirs = row[ours.name], row[other.name]
            added = (mine.p50 - row[DIRECT].p50) / (theirs.p50 - row[DIRECT].p50)
            if cell.clients > 1:
                faster = mine.rate / theirs.rate
                reached.append((f"throughput, {cell.name}", faster, "at least", 2.0, f"x {other.name}"))
            reached.append((f"added median, {cell.name}", added, "at most", 0.5, f"x {other.name}"))
    yield GOALS
    for what, seen, sense, limit, unit in reached:
        met = seen <= limit if sense == "at most" else seen >= limit
        yield f"  {'met   ' if met else 'MISSED'}  {what}: {seen:.2f} {unit} ({sense} {limit:g})"
    yield ""


def told(systems: list[System], table: dict[Cell, dict[str, Figures]]) -> Iterator[str]:
    """The report: ratios first, then figures."""
    ours, *others = [each.name for each in systems if each.name != DIRECT]
    for other in others:
        yield f"{ours} beside {other}, in the same run:"
        for cell, row in table.items():
            added = row[ours].p50 - row[DIRECT].p50, row[other].p50 - row[DIRECT].p50
            yield (
                f"  {cell.name}  throughput {row[ours].rate / row[other].rate:5.2f} x   "
                f"added median {added[0] / added[1]:5.2f} x   CPU a call {row[ours].cpu_ms / row[other].cpu_ms:5.2f} x"
            )
        yield ""
    yield "start"
    for each in systems:
        if each.proxy is not None:
            yield (
                f"  {each.name:20} ready after {each.start_wall:.2f} s, {each.start_cpu:.2f} s of CPU; "
                f"resident {each.idle:.0f} MB idle, {_resident_mb(each.proxy.pid):.0f} MB at the end"
            )
    yield ""
    yield (
        f"{'cell':26} {'system':20} {'p50 ms':>8} {'p99 ms':>8} {'added':>7} {'calls/s':>8} {'CPU ms':>7} "
        f"{'calls':>6} failed lost"
    )
    for cell, row in table.items():
        for name, figures in row.items():
            more = "" if name == DIRECT else f"{figures.p50 - row[DIRECT].p50:7.2f}"
            yield (
                f"{cell.name:26} {name:20} {figures.p50:8.2f} {figures.p99:8.2f} {more:>7} {figures.rate:8.0f} "
                f"{figures.cpu_ms:7.2f} {len(figures.taken):6} {figures.failed:6} {figures.lost:4}"
            )


def main() -> int:
    parser = argparse.ArgumentParser(prog="ci/bench proxy", description=__doc__)
    parser.add_argument(
        "--system", action="append", metavar="PROFILE", help="a proxy's profile to measure too; may be repeated"
    )
    parser.add_argument("--without-peer", action="store_true", help="neither install nor start rLLM's gateway")
    parser.add_argument("--rounds", type=int, default=2, help="turns of each system a cell (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a turn (default: %(default)s)")
    parser.add_argument("--only", default="", help="only cells whose name holds this, as 'small buffered'")
    given = parser.parse_args()
    os.environ.setdefault(needs.CACHE_VARIABLE, str(ROOT / ".cache"))
    try:
        wanted = [] if given.without_peer else [profiles.find(PEER)]
        wanted += [profiles.find(each) for each in given.system or []]
        chosen = [profiles.find("reference"), *map(available, wanted)]
    except (ProfileError, CannotInstall) as error:
        sys.stderr.write(f"bench proxy: {error}\n")
        return 2
    cells = [Cell(prompt, streamed, clients) for prompt in WORDS for streamed in (False, True) for clients in CLIENTS]
    cells = [each for each in cells if given.only in each.name]
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None, prefix="bench-") as name:
        folder = Path(name)
        engine = start_engine(folder)
        try:
            asyncio.run(engine.tenant("main", {"models": [MODEL], "max_model_len": 200_000}))
            asyncio.run(engine.play("main", 1, PLAYBOOK))
            _run(chosen, engine, folder, cells, given.rounds, given.seconds)
        finally:
            engine.close()
    return 0


def _run(
    chosen: list[Profile], engine: FakeEngine, folder: Path, cells: list[Cell], rounds: int, seconds: float
) -> None:
    with ExitStack() as stack:
        systems = [System(DIRECT, engine.url)]
        systems += [stack.enter_context(started(profile, engine, folder)) for profile in chosen]
        table = play(systems, engine, cells, rounds, seconds)
        for line in [*goals(systems, table), *told(systems, table)]:
            sys.stdout.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
