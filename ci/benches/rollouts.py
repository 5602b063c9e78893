"""Many rollouts at once on one node: a proxy each, as far as memory goes, and then all behind one.

Run as ``ci/bench rollouts -n 1024``. Rollouts are those of the reference runner, engines are fakes, agents are tiny.
Every sampled token is compared with the engines' ledgers. A rollout under way needs some 60 MB with a proxy of its own,
and 25 MB without; 1,024 of them take about five minutes on two idle cores. Ends with 1 if a token is lost, mixed or
withheld, or if not as many were at once as there is room for.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from ci.benches.parts.figures import told  # noqa: E402
from ci.benches.parts.runner import Runner, Watch  # noqa: E402
from ci.benches.parts.sampled import compared, ledgers_of  # noqa: E402
from conformance.systems import profiles, routing  # noqa: E402
from conformance.systems.engine import EngineRefused, FakeEngine, start_engine  # noqa: E402
from conformance.systems.proxy_start import start_proxy  # noqa: E402
from conformance.systems.routing import Route  # noqa: E402

JSON = Any
MODEL = "policy-model"
AGENT = ROOT / "conformance" / "scenarios" / "scale" / "agent.py"
LOOKING = ROOT / "ci" / "benches" / "parts" / "looking.py"
MEMORY_DISK = Path("/dev/shm")
ASK_SECONDS = 0.1
GATE = "all-there"
HELD_SECONDS = 600.0
"""For the first wave to have come to its last call, and for its first rollout to wait there for the last one."""
WAIT = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1])"
"""In a process of its own: to read a thousand rows would keep this one from hearing what the runner says."""
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
    with subprocess.Popen(
        [sys.executable, str(LOOKING), str(runner.process.pid)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as looking:
        _ask_until_answered(name, runner, count, wave, began)
        watch.wall = time.perf_counter() - began
        seen = json.loads(looking.communicate()[0])
    watch.most_files, watch.proxies = seen["most_files"], seen["proxies"]
    return watch


def _ask_until_answered(name: str, runner: Runner, count: int, wave: int, began: float) -> None:
    watch = runner.watch
    asked = shown = 0
    while len(watch.lines) < count and runner.process.poll() is None:
        time.sleep(ASK_SECONDS)
        runner.no_op(f"no-op-{asked}", len(watch.started) < wave)
        asked += 1
        done = len(watch.lines)
        if done - shown >= max(8, count // 8):
            shown = done
            sys.stderr.write(f"{name}: {done} of {count} after {time.perf_counter() - began:.0f} s\n")


def _let_go(engines: list[FakeEngine], wave: list[int], watch: Watch, before: float) -> None:
    """Opens the gate before the last call once the first wave is there: so many are under way at once."""
    wave_of = [(engine, count) for engine, count in zip(engines, wave, strict=True) if count]
    asking = [
        subprocess.Popen([sys.executable, "-c", WAIT, _all_held(engine, count)], stderr=subprocess.DEVNULL)
        for engine, count in wave_of
    ]
    there = [process.wait() == 0 for process in asking]
    watch.held = sum(count for held, (_, count) in zip(there, wave_of, strict=True) if held)
    watch.memory = (psutil.virtual_memory().used - before) / 1e6

    async def let_go() -> None:
        await asyncio.gather(*(engine.open_gate("main", GATE) for engine in engines))

    with suppress(EngineRefused):  # where the engines are ended meanwhile
        asyncio.run(let_go())


def _all_held(engine: FakeEngine, count: int) -> str:
    return f"{engine.url}/_fake/wait?tenant=main&state=held&count={count}&timeout={HELD_SECONDS:g}"


async def _scripted(engines: list[FakeEngine], first_run: int, count: int, turns: int) -> None:
    told = [{"text": f"Step {number} of the work. {{tag}}"} for number in range(turns - 1)]
    playbook = {"about": "Says some words.", "scopes": {"main": {"turns": [*told, {"text": "Done.", "gate": GATE}]}}}
    for engine in engines:
        await engine.tenant("main", {"models": [MODEL], "reasoning_parser": None})
        for begin in range(0, count, 64):
            runs = range(first_run + begin, first_run + min(begin + 64, count))
            await asyncio.gather(*(engine.play("main", run, playbook) for run in runs))


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
    each = own + 30  # a task, two keepers with their wardens and the agent beside it
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
        verdict = compared(watch.answers, asyncio.run(ledgers_of(engines)), first_run, given.turns, given.n)
        together = watch.held >= min(given.n, most)
        good = good and together and not (verdict.broken or verdict.lost or verdict.mixed)
        out("\n".join(told(name, watch, verdict)) + "\n")
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
