"""Many rollouts at once on one node: a proxy each, as far as memory goes, and then all behind one.

Run as ``ci/bench rollouts -n 1024``. Rollouts are those of the reference runner, engines are fakes, agents are tiny.
Every sampled token is compared with the engines' ledgers. A rollout under way needs some 50 MB with a proxy of its own,
and 15 MB without; 1,024 of them take about five minutes on two idle cores. Ends with 1 if a token is lost, mixed or
withheld, or if not as many were at once as there is room for.
"""

import argparse
import asyncio
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from ci.benches.parts.runner import Runner, Watch  # noqa: E402
from conformance.systems import profiles, routing  # noqa: E402
from conformance.systems.engine import EngineLate, EngineRefused, FakeEngine, start_engine  # noqa: E402
from conformance.systems.proxy_start import start_proxy  # noqa: E402
from conformance.systems.routing import Route  # noqa: E402

JSON = Any
MODEL = "policy-model"
AGENT = ROOT / "conformance" / "scenarios" / "scale" / "agent.py"
MEMORY_DISK = Path("/dev/shm")
NO_OP_SECONDS = 0.1
ASK_SECONDS = 0.1
LOOK_SECONDS = 5.0
"""To look at a few thousand processes is work too."""
GATE = "all-there"
HELD_SECONDS = 600.0
"""For the first wave to have come to its last call, and for its first rollout to wait there for the last one."""
RESERVE_MB = 3000
"""Of memory, for engines, records and everybody else."""

PROXY = {"spawn": {"command": ["trackgauge", "proxy"], "profile": "", "variables": {}, "starts_in_flight": 8}}


@dataclass(frozen=True)
class Setup:
    """What all rollouts share."""

    engines: list[FakeEngine]
    folder: Path
    turns: int
    first_run: int

    def request(self, number: int, proxy: dict[str, JSON]) -> dict[str, JSON]:
        run = self.first_run + number
        return {
            "id": f"r{run}",
            "op": "rollout",
            "folder": str(self.folder / f"r{run}"),
            "model": MODEL,
            "backends": [engine.address("main").removesuffix("/v1") for engine in self.engines],
            "proxy": proxy,
            "harness": {
                "name": "bench",
                "command": [
                    *("{python}", "-I", "-S", str(AGENT), "{base_url}", "{model}", "{session}"),
                    *(f"⟦{run:06d}:00:0000⟧ Fix it.", str(self.turns)),
                ],
                "metrics": "metrics.json",
            },
        }


def played(name: str, runner: Runner, setup: Setup, count: int, at_once: int, proxy: dict[str, JSON]) -> Watch:
    """Blocks until all rollouts are answered, asking the runner for a no-op ten times a second."""
    watch = runner.watch
    runner.no_op("ready", True)
    while not watch.no_ops_at_begin and runner.process.poll() is None:
        with runner.changed:
            runner.changed.wait(0.2)
    watch.no_ops_at_begin.clear()  # that one waited for imports
    wave = min(count, at_once)
    shares = [wave // len(setup.engines) + (place < wave % len(setup.engines)) for place in range(len(setup.engines))]
    if "attach" in proxy:
        shares = [wave, *[0] * (len(setup.engines) - 1)]
    before = psutil.virtual_memory().used
    opener = threading.Thread(target=_let_go, args=(setup.engines, shares, watch, before), daemon=True)
    opener.start()
    began = time.perf_counter()
    for number in range(count):
        runner.send(setup.request(number, proxy))
    asked = told = 0
    next_look = began + 1
    while len(watch.answers) < count and runner.process.poll() is None:
        time.sleep(ASK_SECONDS)
        runner.no_op(f"no-op-{asked}", len(watch.started) < wave)
        asked += 1
        if time.perf_counter() > next_look:
            _look(runner, watch)
            next_look = time.perf_counter() + LOOK_SECONDS
        done = len(watch.answers)
        if done - told >= max(8, count // 8):
            told = done
            sys.stderr.write(f"{name}: {done} of {count} after {time.perf_counter() - began:.0f} s\n")
    watch.wall = time.perf_counter() - began
    return watch


def _let_go(engines: list[FakeEngine], wave: list[int], watch: Watch, before: float) -> None:
    """Opens the gate before the last call once the first wave is there: so many are under way at once."""

    async def let_go() -> None:
        there = [engine.wait("held", tenant="main", count=count, seconds=HELD_SECONDS) for engine, count in wave_of]
        with suppress(EngineLate, EngineRefused):  # told as 0 at once; refused where the engine is ended
            watch.held = sum(map(len, await asyncio.gather(*there)))
        watch.memory = (psutil.virtual_memory().used - before) / 1e6
        await asyncio.gather(*(engine.open_gate("main", GATE) for engine in engines))

    wave_of = [(engine, count) for engine, count in zip(engines, wave, strict=True) if count]
    asyncio.run(let_go())


def _look(runner: Runner, watch: Watch) -> None:
    """Memory and descriptors of what runs now; a few proxies stand for all."""
    with suppress(psutil.Error):
        watch.most_files = max(watch.most_files, psutil.Process(runner.process.pid).num_fds())
    proxies = [each.pid for each in psutil.process_iter(["cmdline"]) if _is_proxy(each.info["cmdline"])]
    for pid in proxies[:: max(1, len(proxies) // 5)]:
        with suppress(OSError, psutil.Error):
            watch.proxies.append(_own_mb(pid))


def _is_proxy(words: list[str] | None) -> bool:
    return (
        bool(words)
        and "proxy" in (words or [])
        and "--rl-log-dir" in (words or [])
        and not re.search("keeper|supervise", str(words))
    )


def _own_mb(pid: int) -> float:
    """Proportional set size: what is shared with other processes counts in part."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    found = re.search(r"^Pss: +(\d+) kB", text, re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0


@dataclass
class Verdict:
    """Sampled tokens of all rollouts against the ledgers."""

    calls: int = 0
    lost: int = 0
    mixed: int = 0
    broken: list[str] = field(default_factory=list)


def compared(watch: Watch, ledgers: dict[int, list[JSON]], setup: Setup, count: int) -> Verdict:
    """Ids and log probs, to the last bit, in their order."""
    verdict = Verdict()
    for number in range(count):
        run = setup.first_run + number
        rows = [row for row in ledgers.get(run, []) if row["state"] == "finished"]
        verdict.calls += len(rows)
        sampled = [pair for row in rows for pair in _pairs(row)]
        answer = watch.answers.get(f"r{run}", {"outcome": None, "trajectories": [], "error": "no answer"})
        trained = [
            (token, probability)
            for each in answer["trajectories"]
            for token, mask, probability in zip(each["tokens"], each["mask"], each["log_probs"], strict=True)
            if mask
        ]
        known = set(sampled)
        verdict.lost += len(rows) if not trained else sum(_missing(row, set(trained)) for row in rows)
        verdict.mixed += sum(pair not in known for pair in trained)
        if answer["outcome"] != "clean" or trained != sampled or len(rows) != setup.turns:
            why = answer.get("error") or answer.get("reason") or f"{len(trained)} of {len(sampled)} tokens"
            verdict.broken.append(f"r{run}: {answer['outcome']}, {len(rows)} calls, {why}")
    return verdict


def _missing(row: JSON, trained: set[tuple[int, float]]) -> bool:
    return any(pair not in trained for pair in _pairs(row))


def _pairs(row: JSON) -> list[tuple[int, float]]:
    return list(zip(row["generation_token_ids"], row["generation_log_probs"], strict=True))


async def _scripted(engines: list[FakeEngine], first_run: int, count: int, turns: int) -> None:
    told = [{"text": f"Step {number} of the work. {{tag}}"} for number in range(turns - 1)]
    playbook = {"about": "Says some words.", "scopes": {"main": {"turns": [*told, {"text": "Done.", "gate": GATE}]}}}
    for engine in engines:
        await engine.tenant("main", {"models": [MODEL], "reasoning_parser": None})
        for begin in range(0, count, 64):
            runs = range(first_run + begin, first_run + min(begin + 64, count))
            await asyncio.gather(*(engine.play("main", run, playbook) for run in runs))


async def _ledgers(engines: list[FakeEngine]) -> dict[int, list[JSON]]:
    found: dict[int, list[JSON]] = {}
    for engine in engines:
        for row in await engine.ledger(tenant="main"):
            if row["endpoint"] == "chat":
                found.setdefault(row["run"], []).append(row)
    return found


def files_opened(profile: Path, folder: Path) -> str:
    """How many files a proxy opens until it is ready, by strace where that is there."""
    if shutil.which("strace") is None:
        return "not known: strace is not there"
    trace = folder / "opened"
    command = [str(Path(sys.executable).parent / "trackgauge"), "proxy", "-c", str(profile), "--enable-rl-logging"]
    command += ["--rl-log-dir", str(folder / "opened-records"), "--", "serve", "--port", "0"]
    traced = ["strace", "-f", "-qq", "-e", "trace=openat,open", "-o", str(trace), *command]
    with subprocess.Popen(traced, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout
        process.stdout.readline()
        for child in psutil.Process(process.pid).children():
            child.terminate()
    lines = trace.read_text(errors="replace").splitlines()
    opened = sum("= -1" not in line for line in lines)
    return f"{opened} files opened, {len(lines) - opened} tried in vain"


def told(name: str, watch: Watch, verdict: Verdict, setup: Setup) -> Iterator[str]:
    count = len(watch.answers)
    ready = sorted(
        answer["metrics"]["began"] - watch.started[key]
        for key, answer in watch.answers.items()
        if "began" in answer["metrics"] and key in watch.started
    )
    yield f"{name}: {count} rollouts in {watch.wall:.1f} s, {watch.held} of them at once before their last call"
    yield (
        f"  calls {verdict.calls}, {verdict.calls / watch.wall:.0f} a second; lost {verdict.lost}, "
        f"mixed {verdict.mixed}, rollouts not as the ledger has them {len(verdict.broken)}"
    )
    if ready:
        yield (
            f"  from task to harness p50 {statistics.median(ready):.2f} s, p90 {ready[int(len(ready) * 0.9)]:.2f} s "
            "(waiting for one of 8 starts in flight included)"
        )
    if watch.proxies:
        yield f"  memory a proxy {statistics.median(watch.proxies):.1f} MB (PSS, median of {len(watch.proxies)} looks)"
    yield _lateness("while rollouts are begun", watch.no_ops_at_begin)
    yield _lateness("while they run and are collected", watch.no_ops)
    yield (
        f"  descriptors of the runner at most {watch.most_files}; memory of all with {watch.held} at once "
        f"{watch.memory / 1000:.1f} GB, {watch.memory / max(1, watch.held):.0f} MB a rollout"
    )
    yield from (f"  ! {each}" for each in verdict.broken[:10])


def _lateness(when: str, asked: list[float]) -> str:
    if not asked:
        return f"  no-op of the runner {when}: none asked"
    taken = sorted(each * 1e3 for each in asked)
    p50, p99 = statistics.median(taken), taken[int(len(taken) * 0.99)]
    late = sum(each > NO_OP_SECONDS * 1e3 for each in taken)
    return (
        f"  no-op of the runner {when}: p50 {p50:.1f} ms, p99 {p99:.1f}, worst {taken[-1]:.1f}; "
        f"{late} of {len(taken)} later than {NO_OP_SECONDS * 1e3:.0f} ms"
    )


@contextmanager
def engines_of(folder: Path, number: int) -> Iterator[list[FakeEngine]]:
    engines: list[FakeEngine] = []
    try:
        for place in range(number):
            (folder / f"engine{place}").mkdir()
            engines.append(start_engine(folder / f"engine{place}"))
        yield engines
    finally:
        for engine in engines:
            engine.close()


def room_for(folder: Path, profile: Path) -> tuple[int, float]:
    """How many rollouts with a proxy each fit into memory, and the MB that one takes: a proxy, two keepers, a task."""
    command = [str(Path(sys.executable).parent / "trackgauge"), "proxy", "-c", str(profile), "--enable-rl-logging"]
    command += ["--rl-log-dir", str(folder / "one"), "--", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout
        process.stdout.readline()
        own = psutil.Process(process.pid).memory_full_info().uss / 1e6
        process.terminate()
    each = own + 24  # a task, two keepers and the agent beside it
    return max(8, int((psutil.virtual_memory().available / 1e6 - RESERVE_MB) / each)), own


def main() -> int:
    parser = argparse.ArgumentParser(prog="ci/bench rollouts", description=__doc__)
    parser.add_argument("-n", type=int, default=64, help="rollouts (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=3, help="model calls a rollout (default: %(default)s)")
    parser.add_argument("--engines", type=int, default=2, help="fake engines (default: %(default)s)")
    parser.add_argument("--at-once", type=int, default=0, help="with a proxy each; default: what memory allows")
    parser.add_argument("--only", choices=["own", "shared"], help="only with a proxy each, or only behind one")
    given = parser.parse_args()
    scratch = MEMORY_DISK if MEMORY_DISK.is_dir() else None
    with (
        tempfile.TemporaryDirectory(dir=scratch, prefix="rollouts-") as name,
        engines_of(Path(name), given.engines) as e,
    ):
        return _run(given, Path(name), e)


def _run(given: argparse.Namespace, folder: Path, engines: list[FakeEngine]) -> int:
    profile = folder / "routes.yaml"
    shared = Route(MODEL, target=MODEL, base_url="${BENCH_BACKEND}/v1", timeout_secs=HELD_SECONDS)
    profile.write_text(routing.configuration([shared], "", {"format": "openai"}), encoding="utf-8")
    fixed = folder / "fixed.yaml"
    fixed.write_text(profile.read_text().replace("${BENCH_BACKEND}", engines[0].address("main").removesuffix("/v1")))
    room, own_mb = room_for(folder, fixed)
    at_once = given.at_once or min(given.n, room)
    out = sys.stdout.write
    out(f"a proxy: {own_mb:.0f} MB of its own, {files_opened(fixed, folder)} at its start; room for {room} at once\n")
    good = True
    spawn = {**PROXY["spawn"], "profile": str(profile), "variables": {"BENCH_BACKEND": "{backend}"}}
    for name, first_run, most in (("a proxy each", 1, at_once), ("one proxy for all", 100_000, given.n)):
        if given.only and given.only not in ("own" if first_run == 1 else "shared"):
            continue
        setup = Setup(engines, folder, given.turns, first_run)
        asyncio.run(_scripted(engines, first_run, given.n, given.turns))
        with _proxy(name, engines, folder, spawn) as proxy:
            runner = Runner(folder, most)
            try:
                watch = played(name, runner, setup, given.n, most, proxy)
            finally:
                runner.close()
        verdict = compared(watch, asyncio.run(_ledgers(engines)), setup, given.n)
        together = watch.held >= min(given.n, most)
        good = good and together and not (verdict.broken or verdict.lost or verdict.mixed)
        out("\n".join(told(name, watch, verdict, setup)) + "\n")
    return 0 if good else 1


@contextmanager
def _proxy(name: str, engines: list[FakeEngine], folder: Path, spawn: dict[str, JSON]) -> Iterator[dict[str, JSON]]:
    if name == "a proxy each":
        yield {"spawn": spawn}
        return
    routes = [Route(MODEL, target=MODEL, timeout_secs=HELD_SECONDS)]
    proxy = start_proxy(profiles.find("reference"), engines[0].url, folder / "shared", routes=routes)
    try:
        yield {"attach": proxy.url}
        sys.stdout.write(f"the shared proxy at its end: {psutil.Process(proxy.pid).memory_info().rss / 1e6:.0f} MB\n")
    finally:
        proxy.close()


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
