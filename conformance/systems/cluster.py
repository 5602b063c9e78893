"""A Ray cluster for the suite: nodes on loopback addresses, whose environment holds nothing of ours.

Its interpreter is this one by another path, and its PATH has no program of ours, so that a runner that leaves to
chance which interpreter or program a worker takes is seen.
"""

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from conformance.systems import guard
from conformance.systems.servers import SystemNotStarted

START_SECONDS = 120.0
POLL_SECONDS = 0.05
STARTED = "Ray runtime started"
"""What ``ray start`` writes when a node has joined; it has no other way of saying so."""
STAYS = ("sh", "-c", '"$@" && exec sleep infinity', "node")
"""Not ``ray start --block``: that ends a node wholly when one of its processes dies, as no real one does."""
STORE_BYTES = 150_000_000


class Cluster:
    """A head node, started at once, and further nodes on demand. Blocks; raises :class:`SystemNotStarted`.

    One that is there already, at ``address``, is used and left as it is.
    """

    def __init__(self, files: Path, address: str | None = None) -> None:
        """``files`` is an existing folder for logs."""
        self._files = files
        # Sockets are made below, and their paths must be short.
        self._place = Path(tempfile.mkdtemp(prefix="tgc-", dir="/tmp"))
        self._nodes: list[guard.Started] = []
        (self._place / "env").symlink_to(Path(sys.executable).parent.parent, target_is_directory=True)
        self.python = str(self._place / "env" / "bin" / Path(sys.executable).name)
        if address is not None:
            self.address = address
            return
        try:
            head = self._start("--head", "--port=0", "--include-dashboard=false", f"--temp-dir={self._place / 'ray'}")
            self.address = self._address(head)
        except BaseException:
            self.close()
            raise

    def add_node(self) -> guard.Started:
        """One more; it may be lost."""
        return self._start(f"--address={self.address}")

    def lose(self, node: guard.Started) -> None:
        """Kills the node's own process and nothing else, as a machine's agent may die: what runs there is not told."""
        for pid in self.processes(node, "raylet"):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def processes(self, node: guard.Started, name: str | None = None) -> list[int]:
        """What runs on a node, or what of it is a program of that name."""
        import psutil

        with suppress(psutil.NoSuchProcess):
            # Ray's own processes leave the command that started them, and come to the guard's supervisor.
            found = psutil.Process(node.pid).parents()[0].children(recursive=True)
            return [child.pid for child in found if name is None or child.name() == name]
        return []

    def close(self) -> None:
        """Nodes with all that runs on them, and their folder."""
        for node in reversed(self._nodes):
            node.stop()
        shutil.rmtree(self._place, ignore_errors=True)

    def _start(self, *arguments: str) -> guard.Started:
        number = len(self._nodes) + 2
        home = self._place / f"home-{number}"
        home.mkdir()
        env = {**guard.environment(home), "PATH": "/usr/bin:/bin", "TMPDIR": "/tmp", "RAY_USAGE_STATS_ENABLED": "0"}
        words = [*STAYS, self.python, "-m", "ray.scripts.scripts", "start", "--disable-usage-stats", "--num-cpus=2"]
        # Ray takes 127.0.0.1 for the machine's own address; any other of the loopback stays what it is.
        sizes = [f"--node-ip-address=127.0.0.{number}", f"--object-store-memory={STORE_BYTES}"]
        log = self._files / f"node-{number}.log"
        try:
            node = guard.start([*words, *sizes, *arguments], log=log, env=env, cwd=home)
        except guard.CannotRun as error:
            raise SystemNotStarted("ray", str(error)) from None
        self._nodes.append(node)
        _until(node, lambda: STARTED in node.output())
        return node

    def _address(self, head: guard.Started) -> str:
        """Written down a moment after the head says that it has started."""
        file = self._place / "ray" / "ray_current_cluster"
        _until(head, lambda: file.is_file() and bool(file.read_text(encoding="utf-8").strip()))
        return file.read_text(encoding="utf-8").strip()


def _until(node: guard.Started, holds: Callable[[], bool]) -> None:
    """Raises SystemNotStarted where it does not in time, or the node has ended."""
    deadline = time.monotonic() + START_SECONDS
    while not holds():
        if node.wait(POLL_SECONDS) is not None or time.monotonic() > deadline:
            raise SystemNotStarted("ray", "its node did not come up", node.tail())
